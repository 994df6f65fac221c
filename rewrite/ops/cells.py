"""Cells: what LSTM, GRU and RNN compute in one step, as formulas over gates.

A step has phases. Each multiplies a vector by the weights of some gates and computes, unit by unit,
formulas of what it finds there. A formula may name

    x0 x1 …    the inputs of the phase's gates          h c    the states before the step
    r0 r1 …    the phase's products, gate by gate       p0 …   parameters of the units

and what earlier formulas computed. `new_h` and `new_c` are the states after the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from satura.rewrite.ops.expression import Formula
from satura.rewrite.ops.formula_parser import parse
from satura.rewrite.types.attributes import UserAttribute, refuse_unless

Activation = tuple[str, float, float]
"""The name of a function, its alpha and its beta."""

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
STATES = {"lstm": ("h", "c"), "gru": ("h",), "rnn": ("h",)}
FUNCTIONS = {"lstm": 3, "gru": 2, "rnn": 1}


@dataclass(frozen=True)
class Cell(UserAttribute):
    """A kind of cell and its activation functions; sums are clipped to [-clip, clip].

    `backward` says for each side whether it goes from the last step to the first. The variant of an
    LSTM couples input and forget gate, that of a GRU resets after the linear map.
    """

    kind: str
    functions: tuple[Activation, ...]
    backward: tuple[bool, ...] = (False,)
    clip: float = inf
    variant: bool = False

    @property
    def gates(self) -> int:
        return GATES[self.kind]

    @property
    def states(self) -> tuple[str, ...]:
        """The names of what is carried from step to step; the first is the result."""
        return STATES[self.kind]

    @property
    def parameters(self) -> tuple[int, ...]:
        """How many parameters a unit can have."""
        if self.kind == "lstm":
            return (0, 3)
        return (int(self.kind == "gru" and self.variant),)


@dataclass(frozen=True)
class Line:
    """`name` is a formula of the values `operands`."""

    name: str
    formula: Formula
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Phase:
    """The product of `vector` and the weights of `gates`, and the formulas that follow it."""

    vector: str
    gates: tuple[int, ...]
    lines: tuple[Line, ...]

    @property
    def needed(self) -> tuple[str, ...]:
        """What the formulas name and do not compute."""
        own = {line.name for line in self.lines}
        named = dict.fromkeys(name for line in self.lines for name in line.operands)
        return tuple(name for name in named if name not in own)


@lru_cache(maxsize=256)
def phases(cell: Cell, parameters: int) -> tuple[Phase, ...]:
    """The phases of a step, for so many parameters per unit. Raises Refuse for a wrong cell."""
    refuse_unless(cell.kind in GATES, f"there is no cell '{cell.kind}'")
    refuse_unless(
        len(cell.functions) == FUNCTIONS[cell.kind],
        f"{cell.kind} takes {FUNCTIONS[cell.kind]} functions",
    )
    refuse_unless(parameters in cell.parameters, f"{parameters} parameters do not fit {cell.kind}")
    refuse_unless(cell.clip > 0, "a clip is above 0")
    written = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}[cell.kind]
    found: list[Phase] = []
    known = [*cell.states, *(f"p{number}" for number in range(parameters))]
    for vector, gates, text in written(cell, parameters > 0):
        names = [*known, *(f"{kind}{gate}" for kind in "xr" for gate in gates)]
        lines = []
        for name, formula in text:
            used = Formula(formula, parse(formula, names, ()))
            lines.append(Line(name, used, tuple(names)))
            names.append(name)
            known.append(name)
        found.append(Phase(vector, gates, tuple(map(_trim, lines))))
    return tuple(found)


Text = tuple[str, tuple[int, ...], Sequence[tuple[str, str]]]


def _trim(line: Line) -> Line:
    """The line with only those operands that its formula names."""
    used = [name for name in line.operands if name in _words(line.formula.text)]
    return Line(line.name, Formula(line.formula.text, parse(line.formula.text, used, ())), (*used,))


def _words(text: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def _lstm(cell: Cell, has_holes: bool) -> Iterator[Text]:
    """Gates in the order input, output, forget, cell."""

    def seen(gate: int, hole: int, state: str) -> str:
        hole_text = f" + p{hole} * {state}" if has_holes else ""
        return _gate(cell, 0, f"x{gate} + r{gate}{hole_text}")

    # As onnxruntime does, the cell is not clipped: it is not a sum of a gate.
    yield "h", (0, 1, 2, 3), (
        ("enter", seen(0, 0, "c")),
        ("forget", "1 - enter" if cell.variant else seen(2, 2, "c")),
        ("fresh", _gate(cell, 1, "x3 + r3")),
        ("new_c", "forget * c + enter * fresh"),
        ("new_h", f"{seen(1, 1, 'new_c')} * {_apply(cell.functions[2], 'new_c')}"),
    )  # fmt: skip


def _gru(cell: Cell, has_bias: bool) -> Iterator[Text]:
    """Gates in the order update, reset, hidden."""
    gates = (("update", _gate(cell, 0, "x0 + r0")), ("reset", _gate(cell, 0, "x1 + r1")))
    mixed = ("new_h", "(1 - update) * fresh + update * h")
    if cell.variant:
        fresh = _gate(cell, 1, "x2 + reset * (r2 + p0)")
        yield "h", (0, 1, 2), (*gates, ("fresh", fresh), mixed)
        return
    yield "h", (0, 1), (*gates, ("recalled", "reset * h"))
    yield "recalled", (2,), (("fresh", _gate(cell, 1, "x2 + r2")), mixed)


def _rnn(cell: Cell, _: bool) -> Iterator[Text]:
    yield "h", (0,), (("new_h", _gate(cell, 0, "x0 + r0")),)


def _gate(cell: Cell, number: int, sums: str) -> str:
    """Activation function `number` of clipped sums."""
    if cell.clip != inf:
        sums = f"min(max({sums}, {-cell.clip!r}), {cell.clip!r})"
    return _apply(cell.functions[number], f"({sums})")


def _apply(function: Activation, x: str) -> str:
    name, alpha, beta = function
    refuse_unless(name in ACTIVATIONS, f"there is no activation function '{name}'")
    text = ACTIVATIONS[name].replace("alpha", repr(alpha)).replace("beta", repr(beta))
    return f"({text.replace('$', x)})"


ACTIVATIONS = {
    "relu": "relu($)",
    "tanh": "tanh($)",
    "sigmoid": "sigmoid($)",
    "affine": "alpha * $ + beta",
    "leakyrelu": "alpha * $ if $ < 0 else $",
    "thresholdedrelu": "$ if $ >= alpha else 0",
    "scaledtanh": "alpha * tanh(beta * $)",
    "hardsigmoid": "min(max(alpha * $ + beta, 0), 1)",
    "elu": "alpha * (exp(min($, 0)) - 1) if $ < 0 else $",
    "softsign": "$ / (1 + abs($))",
    "softplus": "max($, 0) + where(1 + U == 1, U, log(1 + U) * U / ((1 + U) - 1))".replace(
        "U", "exp(-abs($))"
    ),
}
"""What ONNX calls these functions, in small letters, of `$`."""
ALPHA = {
    "affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0,
    "hardsigmoid": 0.2, "elu": 1.0,
}  # fmt: skip
BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
"""The defaults of those functions that take numbers."""
