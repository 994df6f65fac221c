"""Lowerings of LSTM, GRU and RNN: their steps one after another, each a matmul and activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.program.recurrent import with_numbers
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType

_MOST_STEPS = 64
"""Steps of both directions that are written out: each is a dozen nodes. More run on the host, and
as many as a size says."""

Activation = Callable[[int], int]
Step = Callable[["_Side", int, "State"], "State"]
State = tuple[int, int]
"""The hidden and the cell state; GRU and RNN carry the second along unchanged."""


@dataclass(frozen=True)
class _Side:
    """One direction: weights as [from, to], biases as vectors or None, functions of gates."""

    build: Tensors
    hidden: Dim
    inputs: int
    states: int
    input_bias: int | None
    state_bias: int | None
    peepholes: list[int]
    functions: tuple[Activation, ...]
    clip: float | None
    variant: bool

    def gate(self, number: int, sums: int) -> int:
        """Activation function `number` of clipped sums."""
        if self.clip is not None:
            most = self.build.apply_number("max", sums, -self.clip)
            sums = self.build.apply_number("min", most, self.clip)
        return self.functions[number](sums)

    def part(self, x: int, number: int) -> int:
        """Columns of gate `number`."""
        return self.build.one_axis_slice(
            x, self.build.rank(x) - 1, number * self.hidden, self.hidden
        )

    def biased(self, x: int, bias: int | None) -> int:
        return x if bias is None else self.build.apply("add", x, bias)


def _lstm_step(side: _Side, x: int, state: State) -> State:
    """Gates in the order input, output, forget, cell; the variant couples input and forget."""
    build, (h, c) = side.build, state
    sums = build.binary("add", x, side.biased(build.matmul(h, side.states), side.state_bias))

    def seen(number: int, hole: int, cell: int) -> int:
        part = side.part(sums, number)
        if not side.peepholes:
            return part
        return build.binary("add", part, build.apply("mul", cell, side.peepholes[hole]))

    enter = side.gate(0, seen(0, 0, c))
    if side.variant:
        forget = build.binary("sub", build.number(1, enter), enter)
    else:
        forget = side.gate(0, seen(2, 2, c))
    fresh = build.binary("mul", enter, side.gate(1, side.part(sums, 3)))
    cell = build.binary("add", build.binary("mul", forget, c), fresh)
    # As onnxruntime does, the cell is not clipped: it is not a sum of a gate.
    return build.binary("mul", side.gate(0, seen(1, 1, cell)), side.functions[2](cell)), cell


def _gru_step(side: _Side, x: int, state: State) -> State:
    """Gates in the order update, reset, hidden; the variant resets after the linear map."""
    build, (h, c) = side.build, state
    bias = side.state_bias
    gate_bias, last_bias = (None, None) if bias is None else (bias, side.part(bias, 2))
    sums = side.biased(build.matmul(h, side.states), gate_bias)
    update, reset = (
        side.gate(0, build.binary("add", side.part(x, at), side.part(sums, at))) for at in (0, 1)
    )
    if side.variant:
        recalled = build.binary("mul", reset, side.part(sums, 2))
    else:
        weights = side.part(side.states, 2)
        product = build.matmul(build.binary("mul", reset, h), weights)
        recalled = side.biased(product, last_bias)
    hidden = side.gate(1, build.binary("add", side.part(x, 2), recalled))
    rest = build.binary("sub", build.number(1, update), update)
    mixed = build.binary("mul", rest, hidden)
    return build.binary("add", mixed, build.binary("mul", update, h)), c


def _rnn_step(side: _Side, x: int, state: State) -> State:
    """One gate."""
    build, (h, c) = side.build, state
    product = side.biased(build.matmul(h, side.states), side.state_bias)
    return side.gate(0, build.binary("add", x, product)), c


@lowering("LSTM")
@computed_wide
def lstm(node: Context) -> Sequence[int]:
    """Long short-term memory."""
    return _recurrent(node, _lstm_step, 4, ("Sigmoid", "Tanh", "Tanh"))


@lowering("GRU")
@computed_wide
def gru(node: Context) -> Sequence[int]:
    """Gated recurrent units; the last result, a cell state, is none of its outputs."""
    return _recurrent(node, _gru_step, 3, ("Sigmoid", "Tanh"))[:2]


@lowering("RNN")
@computed_wide
def rnn(node: Context) -> Sequence[int]:
    """A single gate."""
    return _recurrent(node, _rnn_step, 1, ("Tanh",))[:2]


def _recurrent(
    node: Context, step: Step, gates: int, default: tuple[str, ...]
) -> tuple[int, int, int]:
    """All hidden states, the last one, and the last cell state."""
    build, x = node.build, node[0]
    by_batch = bool(node.integer("layout"))
    x = build.transpose(x, (1, 0, 2)) if by_batch else x
    extent, batch, width = build.shape(x)
    sides, hidden, _ = (build.shape(node[2])[0], build.shape(node[2])[2], gates)
    if isinstance(extent, SymbolicDim):
        raise NoLowering
    steps, count = node.static([extent, sides], "the number of steps and of directions")
    if not 0 < steps * count <= _MOST_STEPS:
        raise NoLowering
    running = _running(node, steps, build, (batch, hidden))
    functions = _activations(node, default * count)
    weights = build.reshape(x, (steps * batch, width))
    results: list[list[int]] = []
    last: list[State] = []
    for at in range(count):
        side = _side(node, at, gates, tuple(next(functions) for _ in default))
        shifted = side.biased(build.matmul(weights, side.inputs), side.input_bias)
        sums = build.reshape(shifted, (steps, batch, gates * hidden))
        state = (_first(node, 5, at, by_batch, hidden), _first(node, 6, at, by_batch, hidden))
        rows: dict[int, int] = {}
        backward = node.text("direction", "forward") == "reverse" or at == 1
        for number in range(steps)[:: -1 if backward else 1]:
            seen = build.drop(build.one_axis_slice(sums, 0, number, 1), [0])
            new = step(side, seen, state)
            rows[number] = new[0]
            if running is not None:  # a sequence that has ended keeps its state
                goes_on = running[number]
                rows[number] = build.select(goes_on, new[0], build.number(0, new[0]))
                new = (
                    build.select(goes_on, new[0], state[0]),
                    build.select(goes_on, new[1], state[1]),
                )
            state = new
        results.append([rows[number] for number in range(steps)])
        last.append(state)
    lead = 1 if by_batch else 0
    every = [
        build.concat([build.reshape(row, (1, 1, batch, hidden)) for row in rows], 1)
        for rows in zip(*results, strict=True)
    ]
    whole = build.concat(every, 0)
    finals = [
        build.concat([build.insert(state[part], lead) for state in last], lead) for part in (0, 1)
    ]
    return (build.transpose(whole, (2, 0, 1, 3)) if by_batch else whole, finals[0], finals[1])


def _side(node: Context, at: int, gates: int, functions: tuple[Activation, ...]) -> _Side:
    """The direction number `at`."""
    build = node.build
    hidden = build.shape(node[2])[2]

    def of_side(x: int) -> int:
        return build.drop(build.one_axis_slice(x, 0, at, 1), [0])

    biases: list[int | None] = [None, None]
    bias = node.optional(3)
    if bias is not None:
        line = of_side(bias)
        size = gates * hidden
        biases = [build.one_axis_slice(line, 0, first, size) for first in (0 * size, size)]
    holes = node.optional(7)
    peepholes = []
    if holes is not None:
        line = of_side(holes)
        peepholes = [build.one_axis_slice(line, 0, at * hidden, hidden) for at in range(3)]
    variant = node.integer("linear_before_reset") or node.integer("input_forget")
    return _Side(
        build, hidden, build.transpose(of_side(node[1]), (1, 0)),
        build.transpose(of_side(node[2]), (1, 0)), biases[0], biases[1], peepholes, functions,
        node.number("clip") if node.has("clip") else None, bool(variant),
    )  # fmt: skip


def _first(node: Context, position: int, at: int, by_batch: bool, hidden: Dim) -> int:
    """The state before the first step: an operand's, or zeros."""
    build, given = node.build, node.optional(position)
    if given is None:
        batch = build.shape(node[0])[0 if by_batch else 1]
        return build.full(0, (batch, hidden), build.dtype(node[0]))
    axis = 1 if by_batch else 0
    return build.drop(build.one_axis_slice(given, axis, at, 1), [axis])


def _running(node: Context, steps: int, build: Tensors, shape: tuple[Dim, Dim]) -> list[int] | None:
    """Per step which sequences have not ended; None where no lengths are given."""
    lengths = node.optional(4)
    if lengths is None:
        return None
    counts = build.along(build.cast(lengths, DType.I64), 0, shape)
    return [build.binary("lt", build.number(number, counts), counts) for number in range(steps)]


def _activations(node: Context, default: tuple[str, ...]) -> Iterator[Activation]:
    """The functions that the node names; numbers are given in order to those that take one."""
    given = node.attribute_value("activations")
    names = [str(n, "utf-8") for n in given] if isinstance(given, list) and given else default
    alphas = node.numbers("activation_alpha") or ()
    betas = node.numbers("activation_beta") or ()
    for key, alpha, beta in with_numbers(names, alphas, betas):
        yield _activation(node, key, alpha, beta)


def _activation(node: Context, name: str, alpha: float, beta: float) -> Activation:
    """Raises NoLowering for a function that recurrent ops alone would need."""
    build = node.build

    def line(x: int) -> int:
        return build.apply_number("add", build.apply_number("mul", x, alpha), beta)

    def negative(x: int) -> int:
        return build.binary("lt", x, build.number(0, x))

    def grown(x: int) -> int:
        low = build.unary("exp", build.apply_number("min", x, 0))
        return build.apply_number("mul", build.apply_number("sub", low, 1), alpha)

    functions: dict[str, Activation] = {
        "relu": lambda x: build.unary("relu", x),
        "tanh": lambda x: build.unary("tanh", x),
        "sigmoid": lambda x: build.unary("sigmoid", x),
        "affine": line,
        "leakyrelu": lambda x: build.select(negative(x), build.apply_number("mul", x, alpha), x),
        "thresholdedrelu": lambda x: build.select(
            build.binary("le", build.number(alpha, x), x), x, build.number(0, x)
        ),
        "scaledtanh": lambda x: build.apply_number(
            "mul", build.unary("tanh", build.apply_number("mul", x, beta)), alpha
        ),
        "hardsigmoid": lambda x: build.apply_number(
            "min", build.apply_number("max", line(x), 0), 1
        ),
        "elu": lambda x: build.select(negative(x), grown(x), x),
        "softsign": lambda x: build.binary(
            "div", x, build.apply_number("add", build.unary("abs", x), 1)
        ),
    }
    if name not in functions:
        raise NoLowering
    return functions[name]
