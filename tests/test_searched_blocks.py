"""Places of the best element of rows are those that the interpreter finds."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.backend.emit.searched_blocks import BLOCK
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import Array, DType

_KINDS = (DType.F32, DType.F64, DType.F16, DType.I32, DType.U8, DType.BOOL)
_SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]


def _rows(dtype: DType, length: int, seed: int) -> Array:
    """Rows of few different values, so that the best one is there more than once."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 5, (6, length)).astype(float)
    numbers[1] = np.sort(random.standard_normal(length))
    numbers[2] = 1.0  # every block has the best element
    if dtype.is_float:
        numbers[3:] = random.choice(_SPECIAL[1:], (3, length))
        numbers[4, length // 2 :: 7] = np.nan
        numbers[5] = -np.inf
    return numbers.astype(dtype.numpy)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("function", ["max", "min"])
@pytest.mark.parametrize("dtype", _KINDS)
def test_the_first_or_last_best_element_of_a_row_is_found(
    dtype: DType, function: str, is_last: bool
) -> None:
    build, values, results = Builder(), {}, {}
    for length in (1, 2, 7, 16, 17, 40, BLOCK, BLOCK + 1, 3 * BLOCK + 17):
        name = f"x{length}"
        values[name] = _rows(dtype, length, length)
        x = build.input(name, dtype, values[name].shape)
        results[f"y{length}"] = build.arg_reduce(function, x, 1, is_last)
    program = build.program(results)
    found, wanted = satura.compile(program, 1).run(values), interpret(program, values)
    for name, places in wanted.items():
        np.testing.assert_array_equal(found[name], places)
