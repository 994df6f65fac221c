"""LSTM, GRU and RNN as ONNX defines them, for host calls.

The onnx package's own references leave out lengths of sequences, clip and activations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

from satura.rewrite.types.tensor_type import Array, DType

Floats = NDArray[np.float64]
State = tuple[Floats, Floats]
"""The hidden and the cell state; GRU and RNN carry the second along unchanged."""

Activation = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Side:
    """Weights and activation functions of one direction."""

    inputs: Floats
    states: Floats
    input_bias: Floats
    state_bias: Floats
    peepholes: list[Floats]
    functions: tuple[Activation, ...]
    clip: float | None

    def sums(self, x: Floats, h: Floats) -> Floats:
        """Weighted sums of all gates, side by side."""
        return x @ self.inputs.T + h @ self.states.T + self.input_bias + self.state_bias

    def gate(self, number: int, sums: Floats) -> Floats:
        """Activation function `number` of clipped sums."""
        clipped = sums if self.clip is None else np.clip(sums, -self.clip, self.clip)
        return self.functions[number](clipped)


class _Recurrent(OpRun):
    """The loop over directions and steps; a sequence that has ended keeps its state."""

    op_domain = ""
    gates: int
    default: tuple[str, ...]

    def step(self, side: Side, x: Floats, state: State, variant: bool) -> State:
        """The state after the inputs `x` of one step."""
        raise NotImplementedError

    def _run(
        self,
        x: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        lengths: Array | None = None,
        h: Array | None = None,
        c: Array | None = None,
        p: Array | None = None,
        activation_alpha: Sequence[float] | None = None,
        activation_beta: Sequence[float] | None = None,
        activations: Sequence[str] | None = None,
        clip: float | None = None,
        direction: str = "forward",
        hidden_size: int | None = None,
        layout: int = 0,
        linear_before_reset: int = 0,
        input_forget: int = 0,
    ) -> tuple[Array, ...]:
        dtype = DType.of(x.dtype)
        sides, hidden = r.shape[0], r.shape[2]
        rows = _widen(np.swapaxes(x, 0, 1) if layout else x)
        steps, batch = rows.shape[:2]
        counts = np.full(batch, steps) if lengths is None else np.asarray(lengths, np.int64)
        zeros = np.zeros((batch, sides, hidden) if layout else (sides, batch, hidden), x.dtype)
        first = [_widen(zeros if state is None else state) for state in (h, c)]
        if layout:
            first = [np.swapaxes(state, 0, 1) for state in first]
        bias = _widen(np.zeros((sides, 2 * self.gates * hidden), x.dtype) if b is None else b)
        holes = _widen(np.zeros((sides, 3 * hidden), x.dtype) if p is None else p)
        names = activations or self.default * sides
        functions = iter(_activations(names, activation_alpha or (), activation_beta or ()))
        result = np.zeros((steps, sides, batch, hidden), dtype.compute.numpy)
        last: list[State] = []
        for at in range(sides):
            input_bias, state_bias = np.split(bias[at], 2)
            side = Side(
                _widen(w[at]), _widen(r[at]), input_bias, state_bias, np.split(holes[at], 3),
                tuple(next(functions) for _ in self.default), clip,
            )  # fmt: skip
            backward = direction == "reverse" or at == 1
            state = (first[0][at], first[1][at])
            for step in range(steps):
                runs = step < counts
                place = np.where(runs, counts - 1 - step if backward else step, 0)
                seen = rows[place, np.arange(batch)]
                new = self.step(side, seen, state, bool(linear_before_reset or input_forget))
                kept = runs[:, None]
                state = (np.where(kept, new[0], state[0]), np.where(kept, new[1], state[1]))
                result[place[runs], at, np.flatnonzero(runs)] = state[0][runs]
            last.append(state)
        finals = [np.stack([state[k] for state in last]) for k in (0, 1)]
        if layout:
            result = np.transpose(result, (2, 0, 1, 3))
            finals = [np.swapaxes(final, 0, 1) for final in finals]
        return tuple(output.astype(x.dtype) for output in (result, *finals))


def _widen(x: Array) -> Floats:
    """x in the type that it is computed in."""
    wide: Floats = x.astype(DType.of(x.dtype).compute.numpy)
    return wide


class LSTM(_Recurrent):
    """Gates in the order input, output, forget, cell; the variant couples input and forget."""

    gates = 4
    default = ("Sigmoid", "Tanh", "Tanh")

    def step(self, side: Side, x: Floats, state: State, variant: bool) -> State:
        (h, c), (hole_i, hole_o, hole_f) = state, side.peepholes
        sum_i, sum_o, sum_f, sum_c = np.split(side.sums(x, h), 4, axis=-1)
        enter = side.gate(0, sum_i + hole_i * c)
        forget = 1 - enter if variant else side.gate(0, sum_f + hole_f * c)
        cell = forget * c + enter * side.gate(1, sum_c)
        # As onnxruntime does, the cell is not clipped: it is not a sum of a gate.
        return side.gate(0, sum_o + hole_o * cell) * side.functions[2](cell), cell


class GRU(_Recurrent):
    """Gates in the order update, reset, hidden; the variant resets after the linear map."""

    gates = 3
    default = ("Sigmoid", "Tanh")

    def step(self, side: Side, x: Floats, state: State, variant: bool) -> State:
        h, c = state
        sum_z, sum_r, _ = np.split(side.sums(x, h), 3, axis=-1)
        update, reset = side.gate(0, sum_z), side.gate(0, sum_r)
        inputs, states, input_bias, state_bias = (
            np.split(weights, 3)[2]
            for weights in (side.inputs, side.states, side.input_bias, side.state_bias)
        )
        if variant:
            recalled = reset * (h @ states.T + state_bias)
        else:
            recalled = (reset * h) @ states.T + state_bias
        hidden = side.gate(1, x @ inputs.T + input_bias + recalled)
        return (1 - update) * hidden + update * h, c


class RNN(_Recurrent):
    """One gate."""

    gates = 1
    default = ("Tanh",)

    def step(self, side: Side, x: Floats, state: State, variant: bool) -> State:
        h, c = state
        return side.gate(0, side.sums(x, h)), c


RECURRENT: tuple[type[OpRun], ...] = (LSTM, GRU, RNN)


def _activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[Activation]:
    """The functions called `names`, as `with_numbers` says."""
    return [
        partial(_activate, _FUNCTIONS[key], alpha, beta)
        for key, alpha, beta in with_numbers(names, alphas, betas)
    ]


def with_numbers(
    names: Iterable[str], alphas: Sequence[float], betas: Sequence[float]
) -> Iterator[tuple[str, float, float]]:
    """Each name in small letters, with its alpha and beta.

    Numbers are given in order to those functions that take one; others have their defaults.
    """
    rest_alpha, rest_beta = list(alphas), list(betas)
    for key in (name.lower() for name in names):
        alpha, beta = _ALPHA.get(key, 0.0), _BETA.get(key, 0.0)
        if key in _ALPHA and rest_alpha:
            alpha = rest_alpha.pop(0)
        if key in _BETA and rest_beta:
            beta = rest_beta.pop(0)
        yield key, alpha, beta


def _activate(
    function: Callable[[Floats, float, float], Floats], alpha: float, beta: float, x: Floats
) -> Floats:
    return np.asarray(function(x, alpha, beta), x.dtype)


_ALPHA = {
    "affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0,
    "hardsigmoid": 0.2, "elu": 1.0,
}  # fmt: skip
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
_FUNCTIONS: dict[str, Callable[[Floats, float, float], Floats]] = {
    "relu": lambda x, a, b: np.maximum(x, 0),
    "tanh": lambda x, a, b: np.tanh(x),
    "sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a, b: np.where(x >= a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.logaddexp(0, x),
}
