"""Random recurrences: every kind of cell, few steps and units, special values."""

from __future__ import annotations

from math import inf

import numpy as np

from satura.rewrite.ops.cells import ACTIVATIONS, ALPHA, BETA, FUNCTIONS, GATES, Cell
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import Array, DType

_SIZES = {"x": {0: "t", 1: "n"}, "first": {2: "n"}, "ends": {0: "n"}}


def random_recurrence(seed: int) -> tuple[Program, dict[str, Array]]:
    """A program with one recurrence, and arguments for it."""
    random = np.random.default_rng(seed)
    kind = str(random.choice(list(GATES)))
    sides, hidden = int(random.integers(1, 3)), int(random.choice([1, 3, 8, 16, 17, 40]))
    steps, batch = int(random.choice([0, 1, 2, 5])), int(random.choice([0, 1, 1, 2, 7, 19]))
    names = random.choice(list(ACTIVATIONS), FUNCTIONS[kind])
    functions = tuple((str(f), ALPHA.get(str(f), 0.0), BETA.get(str(f), 0.0)) for f in names)
    backward = (bool(random.integers(2)), True)[:sides]
    clip = 0.5 if random.random() < 0.3 else inf
    cell = Cell(kind, functions, backward, clip, bool(random.integers(2)))
    dtype = DType.F64 if random.random() < 0.2 else DType.F32
    held, states = int(random.choice(cell.parameters)), len(cell.states)
    is_open = random.random() < 0.4
    build = Builder()
    given: dict[str, Array] = {}

    def values(*shape: int) -> Array:
        found = np.asarray(random.standard_normal(shape) / np.sqrt(hidden)).astype(dtype.numpy)
        if random.random() < 0.2 and found.size:
            special = random.choice([np.nan, np.inf, -np.inf, -0.0, 300.0])
            found.reshape(-1)[int(random.integers(found.size))] = special
        return found

    def operand(name: str, array: Array, is_constant: bool) -> int:
        if is_constant:
            return build.constant(array)
        given[name] = array
        shape: list[Dim] = [*array.shape]
        for axis, name_of_size in _SIZES.get(name, {}).items() if is_open else ():
            shape[axis] = symbol(name_of_size)
        return build.input(name, DType.of(array.dtype), shape)

    width = cell.gates * hidden
    x = operand("x", values(steps, batch, sides * width), False)
    weights = operand("weights", values(sides, hidden, width), bool(random.random() < 0.7))
    first = operand("first", values(states, sides, batch, hidden), False)
    parameters = operand("held", values(sides, held, hidden), bool(random.random() < 0.7))
    ends = build.constant(np.zeros(0, np.int64))
    if random.random() < 0.5:
        ends = operand("ends", random.integers(0, steps + 2, batch), False)
    y = build.recurrence(x, weights, first, parameters, ends, cell)
    return build.program({"y": y}), given
