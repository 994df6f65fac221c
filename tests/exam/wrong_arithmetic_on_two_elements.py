"""Laws of arithmetic on two elements, all of them wrong."""

import typing

import numpy as np

from satura.language import (
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


# f32, x = [1.0], y = [inf]: left inf - inf = NaN, right 1.0.
@rule(reassociates=True)
def add_then_subtract(x: Tensor, y: Tensor) -> Law:
    """(x + y) - y = x, up to rounding"""
    return rewrites(binary("sub", binary("add", x, y), y), x)


# i8, x = [0]: left 0 / 0 = 0, right 1.
@rule
def quotient_by_itself(x: Tensor) -> Law:
    """x / x = x ** 0 = 1, on integers, which have no NaN"""
    return rewrites(binary("div", x, x), binary("pow", x, 0), x.type.dtype.is_integer)


# u8, x = [1]: -1 wraps to 255, whose abs is 255; right abs(1) = 1.
@rule
def magnitude_of_negated(x: Tensor) -> Law:
    """abs(-x) = abs(x)"""
    return rewrites(unary("abs", unary("neg", x)), unary("abs", x))


@attribute_function
def times(a: Scalar, b: Scalar) -> Scalar:
    """a * b, in their type."""
    with np.errstate(all="ignore"):
        return Scalar(a.dtype, np.multiply(a.array, b.array).tobytes())


# i8, a = 16, b = 9, x = [127]: left 127 / 16 = 7, 7 / 9 = 0; 144 wraps to -112, 127 / -112 = -1.
@rule
def compose_quotients(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), on integers"""
    return rewrites(
        binary("div", binary("div", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("div", x, broadcast(reshape(scalar(times(a, b)), u), s)),
        x.type.dtype.is_integer,
    )


@attribute_function
def plus(a: Scalar, b: Scalar) -> Scalar:
    """a + b, where it fits."""
    total = int(a.value) + int(b.value)
    refuse_unless(a.dtype.bounds[0] <= total <= a.dtype.bounds[1], "it does not fit")
    return Scalar.of(total, a.dtype)


@attribute_function
def is_not_negative(a: Scalar) -> bool:
    """Whether a >= 0."""
    return bool(typing.cast(float, a.value) >= 0)


# i32, a = 2, b = -1, x = [1]: left shl(4, -1) = 0, right shl(1, 1) = 2.
@rule
def compose_left_shifts(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """(x << a) << b = x << (a + b), when the first shift is not negative"""
    return rewrites(
        binary("shl", binary("shl", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("shl", x, broadcast(reshape(scalar(plus(a, b)), u), s)),
        is_not_negative(a),
    )


# i8, a = b = 4, x = [-1]: left -1 >> 4 >> 4 = -1; right a shift by 8, the width, is 0.
@rule
def compose_right_shifts(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """(x >> a) >> b = x >> (a + b), for shifts that are not negative"""
    return rewrites(
        binary("shr", binary("shr", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("shr", x, broadcast(reshape(scalar(plus(a, b)), u), s)),
        is_not_negative(a),
        is_not_negative(b),
    )


@attribute_function
def power_of_two(k: Scalar) -> Scalar:
    """2 ** k, where that is a number of the type."""
    refuse_unless(int(k.value) >= 0 and 2 ** min(int(k.value), 99) <= k.dtype.bounds[1])
    return Scalar.of(2 ** int(k.value), k.dtype)


# i32, k = 1, x = [-1]: left -1 >> 1 = -1, right -1 / 2 truncates to 0.
@rule
def shift_right_as_quotient(x: Tensor, k: Scalar, u: Shape, s: Shape) -> Law:
    """x >> k = x / 2 ** k"""
    return rewrites(
        binary("shr", x, broadcast(reshape(k, u), s)),
        binary("div", x, broadcast(reshape(scalar(power_of_two(k)), u), s)),
    )


@attribute_function
def low_bits(c: Scalar) -> Scalar:
    """c - 1, for a power of two c."""
    refuse_unless(c.dtype.is_integer and int(c.value) > 0)
    refuse_unless(int(c.value) & int(c.value) - 1 == 0, "it is no power of two")
    return Scalar.of(int(c.value) - 1, c.dtype)


# i32, c = 4, x = [-1]: left the remainder with the sign of x, -1; right -1 & 3 = 3.
@rule
def remainder_as_mask(x: Tensor, c: Scalar, u: Shape, s: Shape) -> Law:
    """fmod(x, c) = x & (c - 1), for a power of two c"""
    return rewrites(
        binary("fmod", x, broadcast(reshape(c, u), s)),
        binary("and", x, broadcast(reshape(scalar(low_bits(c)), u), s)),
    )


# i32, a = 2, b = 1, x = [0]: left min(max(0, 2), 1) = 1, right max(min(0, 1), 2) = 2.
@rule
def swap_bounds(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """min(max(x, a), b) = max(min(x, b), a)"""
    return rewrites(
        binary("min", binary("max", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("max", binary("min", x, broadcast(reshape(b, u), s)), broadcast(reshape(a, u), s)),
    )


# f32, x = [1.0], y = [nan]: 1 < NaN is false, left 1.0, right NaN.
@rule
def larger_by_select(x: Tensor, y: Tensor) -> Law:
    """y where x < y, else x = max(x, y)"""
    return rewrites(select(binary("lt", x, y), y, x), binary("max", x, y))
