"""Laws of numbers and casts, all of them wrong."""

from __future__ import annotations

import typing

import numpy as np

from satura.language import (
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


@attribute_function
def at_least_as_wide(a: DType, b: DType) -> bool:
    """Whether a has as many bits as b, and holds signs and fractions where b has them."""
    if (b.is_float and not a.is_float) or (b.is_signed and not a.is_signed):
        return False
    return b in WIDE and a in WIDE and a.itemsize >= b.itemsize


WIDE = frozenset({DType.F64, DType.F32, DType.F16, DType.I64, DType.I32, DType.I16, DType.I8})


# x = i32 16777217, a = f32: an f32 has 24 bits of digits, so cast back to i32 it is 16777216.
@rule
def there_and_back(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), when a is as wide as x's type"""
    return rewrites(
        cast(cast(x, a), b), cast(x, b), at_least_as_wide(a, x.type.dtype), b == DType.I32
    )


# x = i32 300: min(300, 127) = 127, and the low bits of 300 are 44. Of floats it holds, as casts
# saturate.
@rule
def clip_before_narrowing(x: Tensor) -> Law:
    """cast(max(min(x, 127), -128), i8) = cast(x, i8): a cast saturates"""
    return rewrites(
        cast(binary("max", binary("min", x, 127), -128), DType.I8),
        cast(x, DType.I8),
        x.type.dtype.is_signed,
    )


# x = -1.5: floor is -2, the cast truncates to -1.
@rule
def floor_before_cast(x: Tensor, t: DType) -> Law:
    """cast(floor(x), t) = cast(x, t), for integers t"""
    return rewrites(cast(unary("floor", x), t), cast(x, t), t.is_integer)


# x = 0.5, c = 1: round(1.5) = 2, round(0.5) + 1 = 0 + 1: of two whole numbers the even one is
# taken.
@rule
def round_plus_whole(x: Tensor) -> Law:
    """round(x + 1) = round(x) + 1"""
    return rewrites(unary("round", binary("add", x, 1.0)), binary("add", unary("round", x), 1.0))


# x = i8 -1: -1 / 2 truncates to 0; the shift gives -1. For unsigned types it holds.
@rule
def half_by_shift(x: Tensor) -> Law:
    """x / 2 = x >> 1, on integers"""
    return rewrites(binary("div", x, 2), binary("shr", x, 1), x.type.dtype.is_integer)


# x = i8 1, a = -1, b = 3: a shift by -1 gives 0, by 3 of it 0; the right side shifts by 2: 4.
@rule
def shifts_together(x: Tensor, a: Tensor, b: Tensor) -> Law:
    """(x << a) << b = x << (a + b)"""
    return rewrites(binary("shl", binary("shl", x, a), b), binary("shl", x, binary("add", a, b)))


@attribute_function
def power_of_two(c: Scalar) -> Scalar:
    """1 / c, for a power of two c."""
    refuse_unless(c.dtype in (DType.F32, DType.F64) and bool(np.isfinite(c.value)), "no number")
    refuse_unless(float(c.value) != 0 and bool(np.frexp(float(c.value))[0] == 0.5), "no power")
    with np.errstate(all="ignore"):
        return Scalar.of(
            typing.cast(np.floating, c.dtype.numpy.type(1)) / typing.cast(np.floating, c.value),
            c.dtype,
        )


# c = 2^-140 in f32 (a subnormal), x = 2^-140: x / c = 1.0; 1 / c is infinite, so the right side is
# inf; and 0 * inf is NaN.
@rule
def divide_by_power(x: Tensor, c: Scalar, u: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c), for every power of two c"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, u), s)),
        binary("mul", x, broadcast(reshape(scalar(power_of_two(c)), u), s)),
    )


# x = -5, c = 4: fmod is -1 (the sign of a), -5 & 3 = 3. mod would be 3.
@rule
def fmod_by_mask(x: Tensor) -> Law:
    """fmod(x, 4) = x & 3, on integers"""
    return rewrites(binary("fmod", x, 4), binary("and", x, 3), x.type.dtype.is_integer)


# i8: abs(-128) = -128, of which relu is 0. For floats and for unsigned integers it holds.
@rule
def relu_of_abs(x: Tensor) -> Law:
    """relu(abs(x)) = abs(x), on integers: they have no NaN and no -0.0"""
    return rewrites(unary("relu", unary("abs", x)), unary("abs", x), x.type.dtype.is_integer)


# x = 1e8, y = 1 in f32: 1e8 + 1 is 1e8, less 1e8 is 0, not 1. For integers it holds.
@rule
def add_and_subtract(x: Tensor, y: Tensor) -> Law:
    """(x + y) - x = y"""
    return rewrites(binary("sub", binary("add", x, y), x), y)
