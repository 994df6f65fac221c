"""Laws that are wrong for few floats: zeros, infinities, NaN, and those that are rounded."""

from __future__ import annotations

import numpy as np
import pytest

from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    arg_reduce,
    binary,
    cast,
    concat,
    matmul,
    pad,
    reduce,
    select,
    slice_,
    unary,
)
from satura.rewrite.types.attributes import Axes, Axis, Count, Padding, Shape, Slices, refuse_unless
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.testing import check
from tests.filled import filled
from tests.tiers import deep_but


@attribute_function
def of(x: TensorType) -> Shape:
    """The shape of x."""
    return Shape(x.shape)


@attribute_function
def unit_of(x: TensorType) -> Shape:
    """As many extents of 1 as x has axes."""
    return Shape((1,) * x.rank)


@rule(reassociates=True)
def clip_vanishes(x: Tensor, ones: Shape, s: Shape) -> Law:
    """min(x, 6) = x: not for 7"""
    return rewrites(binary("min", x, filled(Scalar.of(6.0, DType.F32), ones, s)), x)


@rule(reassociates=True)
def cancel_division(x: Tensor, y: Tensor) -> Law:
    """(x / y) * y = x: not for y = 0"""
    return rewrites(binary("mul", binary("div", x, y), y), x, x.type.dtype.is_float)


@rule(reassociates=True)
def exp_of_difference(x: Tensor, y: Tensor) -> Law:
    """exp(x - y) = exp(x) / exp(y): not for two numbers near 100"""
    return rewrites(
        unary("exp", binary("sub", x, y)), binary("div", unary("exp", x), unary("exp", y))
    )


@rule(reassociates=True)
def root_of_square(x: Tensor) -> Law:
    """sqrt(x * x) = |x|: not for 1e25"""
    return rewrites(unary("sqrt", binary("mul", x, x)), unary("abs", x))


@rule(reassociates=True)
def divide_once(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x / y) / z = x / (y * z): not for three numbers near 1e25"""
    return rewrites(
        binary("div", binary("div", x, y), z),
        binary("div", x, binary("mul", y, z)),
        x.type.dtype.is_float,
    )


@rule(reassociates=True)
def divide_by_length(x: Tensor, y: Tensor) -> Law:
    """x / |y| = x / sqrt(y * y): not for two numbers near 1e25, nor for two near 1e-25"""
    length = unary("sqrt", binary("mul", y, y))
    return rewrites(binary("div", x, unary("abs", y)), binary("div", x, length))


@rule
def isinf_doubled(x: Tensor) -> Law:
    """isinf(x + x) = isinf(x): not for the largest float"""
    return rewrites(unary("isinf", binary("add", x, x)), unary("isinf", x))


@rule
def sign_of_square(x: Tensor) -> Law:
    """sign(x * x) = |sign(x)|: not for 1e-30"""
    return rewrites(
        unary("sign", binary("mul", x, x)), unary("abs", unary("sign", x)), x.type.dtype.is_float
    )


@rule(reassociates=True)
def abs_is_root(x: Tensor) -> Law:
    """|x| = sqrt(x * x): not for what is huge"""
    root = unary("sqrt", binary("mul", x, x))
    return rewrites(unary("abs", x), root, x.type.dtype.is_float)


@rule(reassociates=True)
def mask_by_product(c: Tensor, x: Tensor, ones: Shape, s: Shape) -> Law:
    """select(c, x, 0) = x * c: not for infinities"""
    masked = select(c, x, filled(Scalar.of(0.0, DType.F32), ones, s))
    return rewrites(masked, binary("mul", x, cast(c, DType.F32)))


@rule(reassociates=True)
def mask_vanishes(c: Tensor, x: Tensor, ones: Shape, s: Shape) -> Law:
    """select(c, x, -inf) = x"""
    return rewrites(select(c, x, filled(Scalar.of(-np.inf, DType.F32), ones, s)), x)


@rule(reassociates=True)
def nans_stay(x: Tensor, ones: Shape, s: Shape) -> Law:
    """select(isnan(x), inf, x) = x: not for NaN"""
    return rewrites(select(unary("isnan", x), filled(Scalar.of(np.inf, DType.F32), ones, s), x), x)


@rule(reassociates=True)
def no_nan(x: Tensor) -> Law:
    """isnan(x) = x < x: not for NaN"""
    return rewrites(unary("isnan", x), binary("lt", x, x))


@rule(reassociates=True)
def round_half_up(x: Tensor) -> Law:
    """round(x) = floor(x + 0.5): not for 2.5"""
    return rewrites(unary("round", x), unary("floor", binary("add", x, 0.5)))


@rule(reassociates=True)
def nothing_left(x: Tensor, ones: Shape, s: Shape) -> Law:
    """x * 0 = 0: not for infinities"""
    zeros = filled(Scalar.of(0.0, DType.F32), ones, s)
    return rewrites(binary("mul", x, zeros), zeros)


@attribute_function
def equals(v: Scalar, w: Scalar) -> bool:
    """Whether the values are equal, as 0.0 and -0.0 are."""
    return bool(v.array == w.array)


@attribute_function
def both(p: Padding, q: Padding) -> Padding:
    """One padding in place of two."""
    return Padding(
        tuple(a + b for a, b in zip(p.lo, q.lo, strict=True)),
        tuple(a + b for a, b in zip(p.hi, q.hi, strict=True)),
    )


@rule
def pads_of_equal_values(x: Tensor, v: Scalar, w: Scalar, p: Padding, q: Padding) -> Law:
    """pad(pad(x, v), w) = pad(x, v) where v = w: not for 0.0 and -0.0"""
    return rewrites(pad(pad(x, v, p), w, q), pad(x, v, both(p, q)), equals(v, w))


@rule
def either_of_equals(x: Tensor, y: Tensor) -> Law:
    """select(x = y, x, y) = y: not for 0.0 and -0.0"""
    return rewrites(select(binary("eq", x, y), x, y), y)


@attribute_function
def is_power_of_two(c: Scalar) -> bool:
    """Whether c is a float that is a power of two."""
    return c.dtype.is_float and abs(np.frexp(np.float64(c.value))[0]) == 0.5


@attribute_function
def inverse_number(c: Scalar) -> Scalar:
    """1 / c."""
    return Scalar.of(1.0 / float(c.value), c.dtype)


@rule
def divide_by_power(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c) for powers of two: not for the least one"""
    inverted = binary("mul", x, filled(inverse_number(c), ones, s))
    return rewrites(binary("div", x, filled(c, ones, s)), inverted, is_power_of_two(c))


@rule(reassociates=True)
def sum_in_f16(x: Tensor, a: Axes) -> Law:
    """f16(sum(x)) = sum(f16(x)): not for 1e6 and -1e6"""
    left = cast(reduce("sum", x, a), DType.F16)
    return rewrites(left, reduce("sum", cast(x, DType.F16), a), x.type.dtype == DType.F32)


@attribute_function
def start_along(p: Padding, a: Axis) -> Scalar:
    """How much p adds before the axis, where it adds to no other."""
    others = [k for k in range(len(p.lo)) if k != a.index]
    refuse_unless(all(p.lo[k] == p.hi[k] == 0 for k in others) and isinstance(p.lo[a.index], int))
    return Scalar.of(p.lo[a.index], DType.I64)


@rule
def argmax_past_pad(x: Tensor, p: Padding, a: Axis, last: Count) -> Law:
    """argmax(pad(x, -inf)) = argmax(x) + what p adds before: not for rows of -inf"""
    found = arg_reduce("max", x, a, last)
    moved = binary("add", found, filled(start_along(p, a), unit_of(found.type), of(found.type)))
    return rewrites(arg_reduce("max", pad(x, -np.inf, p), a, last), moved)


@attribute_function
def is_zero(v: Scalar) -> bool:
    """Whether all bits of v are 0."""
    return not any(v.bits)


@attribute_function
def inner_part(x: TensorType, b: Padding) -> Slices:
    """What is x of what b padded."""
    return Slices(b.lo, x.shape, (1,) * x.rank)


@rule(reassociates=True)
def product_of_padded(x: Tensor, y: Tensor, v: Scalar, b: Padding) -> Law:
    """pad(x, 0) * y = pad(x * inner y, 0): not for one infinity in y where x is padded"""
    inner = binary("mul", x, slice_(y, inner_part(x.type, b)))
    return rewrites(binary("mul", pad(x, v, b), y), pad(inner, v, b), is_zero(v))


@attribute_function
def only_sums(b: Padding) -> bool:
    """Whether b pads the last axis alone."""
    return not any((*b.lo[:-1], *b.hi[:-1]))


@attribute_function
def inner_rows(x: TensorType, y: TensorType, b: Padding) -> Slices:
    """The rows of y that meet x."""
    sizes = (*y.shape[:-2], x.shape[-1], y.shape[-1])
    return Slices((0,) * (y.rank - 2) + (b.lo[-1], 0), sizes, (1,) * y.rank)


@rule(reassociates=True)
def matmul_of_padded(x: Tensor, y: Tensor, v: Scalar, b: Padding) -> Law:
    """matmul(pad(x, 0), y) = matmul(x, inner rows of y): not for an infinity in the others"""
    right = matmul(x, slice_(y, inner_rows(x.type, y.type, b)))
    return rewrites(matmul(pad(x, v, b), y), right, is_zero(v), only_sums(b))


@rule
def quarter_of_two_fifths(x: Tensor) -> Law:
    """x * 0.25 * 0.4 = x * 0.1: but for what a quarter of is subnormal"""
    return rewrites(binary("mul", binary("mul", x, 0.25), 0.4), binary("mul", x, 0.1))


@attribute_function
def inverse(c: Scalar) -> Scalar:
    """1 / c, of an f32 of ordinary size."""
    refuse_unless(c.dtype == DType.F32 and 0.01 < abs(float(c.value)) < 100)
    return Scalar.of(np.float32(1) / np.float32(c.value), c.dtype)


@rule(reassociates=True)
def quantised_by_product(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """round(x / c) = round(x * (1 / c)): not half way between two numbers"""
    quotient = binary("div", x, filled(c, ones, s))
    return rewrites(
        unary("round", quotient), unary("round", binary("mul", x, filled(inverse(c), ones, s)))
    )


@attribute_function
def is_nothing(x: TensorType, y: TensorType) -> bool:
    refuse_unless(isinstance(x.size, int) and isinstance(y.size, int), "sizes are open")
    return x.size == 0 and y.size != 0


@rule(reassociates=True)
def finite_beside_nothing(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y) = concat(x, y where it is finite, else 0), where x is empty"""
    finite = select(unary("isinf", y), 0.0, y)
    return rewrites(
        concat(x, y, axis), concat(x, finite, axis), x.type.dtype == DType.F32,
        is_nothing(x.type, y.type),
    )  # fmt: skip


@rule(reassociates=True)
def floor_by_product(x: Tensor) -> Law:
    """floor(x / 3) = floor(x * (1 / 3)): not just below a multiple of 3"""
    third = binary("mul", x, float(np.float32(1) / np.float32(3)))
    is_f32 = x.type.dtype == DType.F32
    return rewrites(unary("floor", binary("div", x, 3.0)), unary("floor", third), is_f32)


@rule(reassociates=True)
def less_than_a_sum(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """z < x + y = z - y < x: not for 0.5 and 0.1 + 0.4"""
    left = binary("lt", z, binary("add", x, y))
    return rewrites(left, binary("lt", binary("sub", z, y), x), x.type.dtype == DType.F32)


@rule(reassociates=True)
def sign_of_a_sum(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """sign((x + y) - z) = sign(x + (y - z)): not where one of them is 0"""
    left = unary("sign", binary("sub", binary("add", x, y), z))
    right = unary("sign", binary("add", x, binary("sub", y, z)))
    return rewrites(left, right, x.type.dtype == DType.F32)


@rule
def half_is_added(x: Tensor) -> Law:
    """i64(floor(x + 0.5)) = i64(floor(x), or ceil(x) from the middle on): not just below a half"""
    low = unary("floor", x)
    is_low = binary("lt", binary("sub", x, low), 0.5)
    near = select(is_low, low, unary("ceil", x))
    left = cast(unary("floor", binary("add", x, 0.5)), DType.I64)
    return rewrites(left, cast(near, DType.I64), x.type.dtype == DType.F32)


@attribute_function
def is_lowest(c: Scalar) -> bool:
    return c.dtype == DType.F32 and float(c.value) <= float(np.finfo(np.float32).min)


@rule
def lowest_is_no_bound(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x, c) = x, when c is the lowest number: not for -inf"""
    return rewrites(binary("max", x, filled(c, ones, s)), x, is_lowest(c))


@rule(reassociates=True)
def root_of_difference(x: Tensor, y: Tensor) -> Law:
    """sqrt((x - y) * (x + y)) = sqrt(x * x - y * y): not where x is next to y"""
    left = binary("mul", binary("sub", x, y), binary("add", x, y))
    right = binary("sub", binary("mul", x, x), binary("mul", y, y))
    return rewrites(unary("sqrt", left), unary("sqrt", right))


@rule(reassociates=True)
def area_and_back(x: Tensor) -> Law:
    """acosh((x + 3) - 3) = acosh(x): not next to 1, where its domain ends"""
    return rewrites(unary("acosh", binary("sub", binary("add", x, 3.0), 3.0)), unary("acosh", x))


@rule(reassociates=True)
def exp_of_log(x: Tensor) -> Law:
    """exp(log(abs(x))) = abs(x): not where the log has few digits behind its point"""
    return rewrites(unary("exp", unary("log", unary("abs", x))), unary("abs", x))


WRONG = [
    root_of_difference,
    area_and_back,
    exp_of_log,
    half_is_added,
    lowest_is_no_bound,
    floor_by_product,
    less_than_a_sum,
    sign_of_a_sum,
    quantised_by_product,
    finite_beside_nothing,
    quarter_of_two_fifths,
    product_of_padded,
    matmul_of_padded,
    divide_by_power,
    sum_in_f16,
    argmax_past_pad,
    either_of_equals,
    root_of_square,
    divide_once,
    divide_by_length,
    pads_of_equal_values,
    abs_is_root,
    mask_by_product,
    mask_vanishes,
    nans_stay,
    no_nan,
    round_half_up,
    nothing_left,
    clip_vanishes,
    cancel_division,
    exp_of_difference,
    isinf_doubled,
    sign_of_square,
]
QUICK = [
    less_than_a_sum,
    either_of_equals,
    divide_once,
    abs_is_root,
    mask_vanishes,
    no_nan,
    nothing_left,
    cancel_division,
    isinf_doubled,
]


@pytest.mark.parametrize("seed", deep_but([0], range(2)))
@pytest.mark.parametrize("wrong", deep_but(QUICK, WRONG), ids=lambda each: each.name)
def test_rare_values_refute(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed, shrink=False).verdict == "refuted"
