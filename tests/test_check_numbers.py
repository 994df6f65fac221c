"""Laws that are wrong for one number, which what the law names tells: its end, or its solution."""

from __future__ import annotations

from math import frexp, isfinite, prod

import pytest

from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, broadcast, cast, reduce, reshape
from satura.rewrite.types.attributes import Axes, Shape
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.testing import check
from tests.tiers import deep_but


@attribute_function
def is_power(c: Scalar, most: int) -> bool:
    """Whether c is 2^k, of either sign, with -most <= k <= most."""
    if not c.dtype.is_float or not isfinite(float(c.value)):
        return False
    mantissa, exponent = frexp(float(c.value))
    return abs(mantissa) == 0.5 and abs(exponent - 1) <= most


@attribute_function
def is_below(c: Scalar, most: int) -> bool:
    return c.dtype.is_integer and int(c.value) <= most


@rule
def by_reciprocal_f16(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c) for the powers of two of f16: 1 / 2^-16 is infinite"""
    k, inverse = broadcast(reshape(c, o), s), binary("div", 1.0, broadcast(reshape(c, o), s))
    is_f16 = x.type.dtype == DType.F16
    return rewrites(binary("div", x, k), binary("mul", x, inverse), is_f16, is_power(c, 16))


@rule
def by_reciprocal_f32(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """the same for those of f32: 1 / 2^-128 is infinite"""
    k, inverse = broadcast(reshape(c, o), s), binary("div", 1.0, broadcast(reshape(c, o), s))
    is_f32 = x.type.dtype == DType.F32
    return rewrites(binary("div", x, k), binary("mul", x, inverse), is_f32, is_power(c, 128))


@rule
def never_the_product(x: Tensor) -> Law:
    """3 * x is never 37035 in i32: it is at 12345"""
    never = binary("lt", x, x)
    return rewrites(binary("eq", binary("mul", x, 3), 37035), never, x.type.dtype == DType.I32)


@rule
def never_the_sum(x: Tensor) -> Law:
    """x + 70001 is never 12345 in i64"""
    never = binary("lt", x, x)
    return rewrites(binary("eq", binary("add", x, 70001), 12345), never, x.type.dtype == DType.I64)


@rule
def never_the_square(x: Tensor) -> Law:
    """x * x is never 1522756 in i32: it is at 1234"""
    never = binary("lt", x, x)
    return rewrites(binary("eq", binary("mul", x, x), 1522756), never, x.type.dtype == DType.I32)


@rule
def divided_by_a_factor(x: Tensor, a: Scalar, o: Shape, s: Shape) -> Law:
    """x * a / a = x where a is not larger than what no dtype holds"""
    factor = broadcast(reshape(a, o), s)
    product = binary("mul", x, factor)
    return rewrites(binary("div", product, factor), x, is_below(a, 2**70))


@attribute_function
def has_at_most(t: TensorType, axes: Axes, most: int) -> bool:
    extents = [t.shape[axis] for axis in axes.indices]
    numbers = [each for each in extents if isinstance(each, int)]
    return len(numbers) == len(extents) and prod(numbers) <= most


@rule
def sum_in_i16(x: Tensor, a: Axes) -> Law:
    """i32(sum(i16(x), a)) = sum(i32(x), a) for 129 bytes: 129 * 255 > 32767, 128 * 255 is not"""
    left = cast(reduce("sum", cast(x, DType.I16), a), DType.I32)
    right = reduce("sum", cast(x, DType.I32), a)
    return rewrites(left, right, x.type.dtype == DType.U8, has_at_most(x.type, a, 129))


WRONG = (
    by_reciprocal_f16, by_reciprocal_f32, never_the_product, never_the_sum, never_the_square,
    divided_by_a_factor, sum_in_i16,
)  # fmt: skip


@pytest.mark.parametrize("seed", deep_but([0], range(4)))
@pytest.mark.parametrize("law", deep_but([never_the_product], WRONG), ids=lambda each: each.name)
def test_a_number_that_a_law_tells_is_drawn(law: Rule, seed: int) -> None:
    report = check(law, seed=seed)
    assert report.verdict == "refuted", str(report)
