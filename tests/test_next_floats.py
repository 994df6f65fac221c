"""Numbers that stand in laws are tried with the floats next to them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from satura.language import Law, Tensor, binary, rewrites, rule, unary
from satura.rewrite.check.refute import refutation
from satura.rewrite.ops.draw import MOST_NEXT, Draw
from satura.rewrite.ops.next_floats import next_floats
from satura.rewrite.types.tensor_type import DType

FLOATS = [dtype for dtype in DType if dtype.is_float]


@rule
def overflow_of_exp(x: Tensor) -> Law:
    """isinf(exp(x)) = 88.7228 < x, but for the four numbers of f32 that come next"""
    infinite = unary("isinf", unary("exp", x))
    return rewrites(infinite, binary("lt", 88.7228, x), x.type.dtype == DType.F32)


def test_numbers_beside_constants_are_tried() -> None:
    failure = refutation(overflow_of_exp, attempts=1500)
    assert failure is not None and "left side is False, the right side True" in failure.reason


@pytest.mark.parametrize("dtype", FLOATS)
def test_next_floats_are_next(dtype: DType) -> None:
    floats = np.array([1, 1, 1, 2]).astype(dtype.numpy)
    below, same, above, twice = next_floats(floats, np.array([-1, 0, 1, -2])).astype(np.float64)
    assert below < same == 1 < above and twice < 2
    assert next_floats(next_floats(floats, 1), -1).tobytes() == floats.tobytes()


def test_scalars_are_drawn_beside_named_numbers() -> None:
    draw = Draw(Random(0))
    draw.named = (0.7,)
    drawn = {float(draw.scalar(DType.F32).array) for _ in range(2000)}
    near = next_floats(np.full(9, 0.7, np.float32), np.arange(-MOST_NEXT, MOST_NEXT + 1))
    assert drawn >= {float(each) for each in near}
