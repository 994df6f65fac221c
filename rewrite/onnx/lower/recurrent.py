"""Lowerings of LSTM, GRU and RNN: one matmul for the inputs of all steps, and a recurrence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np

from satura.rewrite.onnx.lower.context import Context, computed_wide, lowering
from satura.rewrite.onnx.lower.places import up_to
from satura.rewrite.ops.cells import ACTIVATIONS, ALPHA, BETA, FUNCTIONS, STATES, Activation, Cell
from satura.rewrite.types.dims import Dim

VARIANTS = {"LSTM": "input_forget", "GRU": "linear_before_reset", "RNN": ""}
"""What is set for the variant of a cell: of LSTM input and forget gate are coupled, of GRU it is
reset after the linear map."""

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each side whether it runs from the last step."""


@lowering(*VARIANTS)
@computed_wide
def recurrent(node: Context) -> Sequence[int]:
    """All hidden states, and the last state of each kind."""
    kind = node.proto.op_type.lower()
    variant = bool(node.integer(VARIANTS[node.proto.op_type]))
    build, x = node.build, node[0]
    by_batch = bool(node.integer("layout"))
    x = build.transpose(x, (1, 0, 2)) if by_batch else x
    steps = build.shape(x)[0]
    (sides,) = node.static(build.shape(node[2])[:1], "the number of directions")
    functions = _activations(node, kind, sides)
    backward = _backward(node, sides)
    clip = node.number("clip") if node.has("clip") else inf
    if not clip > 0:
        raise node.wrong(f"attribute 'clip' must be above 0, not {clip}")
    if len(set(functions)) == 1:
        cell = Cell(kind, functions[0], backward, clip, variant)
        result = _sides(node, cell, x, 0)
    else:  # a cell has one set of functions
        each = [
            _sides(node, Cell(kind, own, backward[side : side + 1], clip, variant), x, side)
            for side, own in enumerate(functions)
        ]
        result = build.concat(each, 1)
    states = build.one_axis_slice(result, 0, 0, steps)
    finals = [
        build.drop(build.one_axis_slice(result, 0, steps + number, 1), [0])
        for number in range(len(STATES[kind]))
    ]
    if not by_batch:
        return [states, *finals]
    return [
        build.transpose(states, (2, 0, 1, 3)),
        *(build.transpose(final, (1, 0, 2)) for final in finals),
    ]


def _sides(node: Context, cell: Cell, x: int, side: int) -> int:
    """The recurrence of as many sides as the cell has, from `side` on."""
    build = node.build
    steps, batch, width = build.shape(x)
    hidden = _hidden(node)
    count, columns = len(cell.backward), cell.gates * hidden

    def of_sides(operand: int, axis: int = 0) -> int:
        if build.shape(operand)[axis] == count:
            return operand
        return build.one_axis_slice(operand, axis, side, count)

    def vectors(number: int) -> int:
        return build.full(0, (count, number, hidden), build.dtype(x))

    weights = build.exactly(of_sides(node[2]), (count, columns, hidden))
    weights = build.transpose(weights, (0, 2, 1))
    held = vectors(cell.parameters[0])
    if node.optional(7) is not None:
        held = build.reshape(of_sides(node[7]), (count, 3, hidden))
    flat = build.reshape(x, (steps * batch, width))
    projection = build.reshape(of_sides(node[1]), (count * columns, width))
    sums = build.matmul(flat, build.transpose(projection, (1, 0)))
    if node.optional(3) is not None:
        biases = build.reshape(of_sides(node[3]), (count, 2 * cell.gates, hidden))
        own = build.one_axis_slice(biases, 1, 0, cell.gates)
        recurrent = build.one_axis_slice(biases, 1, cell.gates, cell.gates)
        if cell.parameters == (1,):  # the last gate's is added before it is reset
            held = build.one_axis_slice(recurrent, 1, cell.gates - 1, 1)
            others = build.one_axis_slice(recurrent, 1, 0, cell.gates - 1)
            recurrent = build.concat([others, vectors(1)], 1)
        bias = build.reshape(build.binary("add", own, recurrent), (count * columns,))
        sums = build.apply("add", sums, bias)
    inputs = build.reshape(sums, (steps, batch, count * columns))
    first = _first(node, cell, batch, hidden, of_sides)
    if node.optional(4) is None:
        ends = build.constant(np.zeros(0, np.int64))
    else:
        ends = up_to(node, 4, steps, batch)
    return build.recurrence(inputs, weights, first, held, ends, cell)


def _backward(node: Context, sides: int) -> tuple[bool, ...]:
    """For each side whether it runs from the last step. The weights have as many as it says."""
    said = node.text("direction", "forward")
    if len(DIRECTIONS[said]) != sides:
        raise node.wrong(f"attribute 'direction' is '{said}', the weights have {sides}")
    return DIRECTIONS[said]


def _hidden(node: Context) -> Dim:
    """How many elements a state has: an open extent is what the node says, or at some sizes."""
    extent, said = node.build.shape(node[2])[2], node.integer("hidden_size")
    if said and (extent != said if isinstance(extent, int) else said < 0):
        raise node.wrong(f"attribute 'hidden_size' is {said}, the weights have {extent}")
    if isinstance(extent, int) or said > 0:
        return extent if isinstance(extent, int) else said
    return node.fixed_dim(extent, "the number of hidden elements")


def _first(
    node: Context, cell: Cell, batch: Dim, hidden: Dim, of_sides: Callable[[int, int], int]
) -> int:
    """The states before the first step: the operands 5 and 6, or zeros."""
    build, by_batch = node.build, bool(node.integer("layout"))
    shape = (1, len(cell.backward), batch, hidden)
    states = []
    for number in range(len(cell.states)):
        given = node.optional(5 + number)
        if given is None:
            states.append(build.full(0, shape, build.dtype(node[0])))
            continue
        own = of_sides(given, 1 if by_batch else 0)
        own = build.transpose(own, (1, 0, 2)) if by_batch else own
        states.append(build.reshape(build.exactly(own, shape[1:]), shape))
    return build.concat(states, 0)


def _activations(node: Context, kind: str, sides: int) -> list[tuple[Activation, ...]]:
    """The functions of each side. Numbers are given in order to those functions that take one;
    others have their defaults.

    Raises UnsupportedError for a function that is unknown, or lacks a number without a default.
    """
    given = node.attribute_value("activations")
    size = FUNCTIONS[kind]
    default = ("Sigmoid", "Tanh", "Tanh") if kind != "rnn" else ("Tanh",)
    names = [str(n, "utf-8") for n in given] if isinstance(given, list) and given else None
    names = names or [*default[:size]] * sides
    if len(names) != size * sides:
        raise node.wrong(f"attribute 'activations' has {len(names)} names, not {size * sides}")
    alphas, betas = (list(node.numbers(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    found: list[Activation] = []
    for name in names:
        key = name.lower()
        if key not in ACTIVATIONS:
            raise node.unsupported(f"there is no activation function '{name}'")
        alpha = _number(node, name, "alpha", alphas, ALPHA)
        found.append((key, alpha, _number(node, name, "beta", betas, BETA)))
    return [tuple(found[side * size : (side + 1) * size]) for side in range(sides)]


_WITHOUT_DEFAULT = {("affine", "alpha"), ("scaledtanh", "alpha"), ("scaledtanh", "beta")}
"""Numbers of functions that ONNX has no ops of: onnxruntime takes 0 where they are missing."""


def _number(
    node: Context, function: str, name: str, given: list[float], defaults: Mapping[str, float]
) -> float:
    """The next number of those that are `given`, if the function takes one, or its default."""
    key = function.lower()
    if key in defaults and given:
        return given.pop(0)
    if (key, name) in _WITHOUT_DEFAULT:
        raise node.unsupported(
            f"activation '{function}' has no number in 'activation_{name}', and no default: give it"
        )
    return defaults.get(key, 0.0)
