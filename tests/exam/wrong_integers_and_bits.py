"""Laws of integers and bits, all of them wrong."""

import typing

from satura.language import (
    Law,
    Scalar,
    Shape,
    Tensor,
    Term,
    attribute_function,
    binary,
    broadcast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


def full(c: Term | Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


@attribute_function
def log2(c: Scalar) -> Scalar:
    """k of c = 2**k, c positive."""
    refuse_unless(c.dtype.is_integer, "no integer")
    value = int(c.value)
    refuse_unless(value > 0 and value & (value - 1) == 0, "no power of two")
    return Scalar.of(value.bit_length() - 1, c.dtype)


# x = i8 100, y = i8 2: 100 * 2 wraps to -56, -56 / 2 = -28, but x is 100. (And y = 0: 0, not x.)
@rule
def quotient_of_product(x: Tensor, y: Tensor) -> Law:
    """(x * y) / y = x, on integers"""
    return rewrites(binary("div", binary("mul", x, y), y), x, x.type.dtype.is_integer)


# x = i8 -128: abs(x) = -128 (it wraps), relu(-128) = 0; the right side is -128.
@rule
def relu_of_absolute(x: Tensor) -> Law:
    """relu(abs(x)) = abs(x)"""
    return rewrites(unary("relu", unary("abs", x)), unary("abs", x))


# x = i8 100, y = i8 -100: x < y is false; x - y = 200 wraps to -56 < 0, true.
@rule
def order_by_difference(x: Tensor, y: Tensor) -> Law:
    """x < y is x - y < 0, on signed integers"""
    return rewrites(
        binary("lt", x, y),
        binary("lt", binary("sub", x, y), 0),
        x.type.dtype.is_integer & x.type.dtype.is_signed,
    )


# x = i8 -1, c = 2: -1 / 2 truncates to 0; -1 >> 1 = -1.
@rule
def quotient_as_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / 2^k = x >> k on integers"""
    return rewrites(
        binary("div", x, full(c, ones, s)), binary("shr", x, full(scalar(log2(c)), ones, s))
    )


@attribute_function
def is_positive(c: Scalar) -> bool:
    return c.dtype.is_integer and int(c.value) > 0


# x = i8 -3, c = 2: mod has the sign of c: 1; fmod that of x: -1.
@rule
def modulo_as_remainder(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x mod c = x fmod c on integers, when c is positive"""
    return rewrites(
        binary("mod", x, full(c, ones, s)), binary("fmod", x, full(c, ones, s)), is_positive(c)
    )


@attribute_function
def steps_in_all(a: Scalar, b: Scalar) -> Scalar:
    """a + b, where neither is negative and the sum fits."""
    total = int(a.value) + int(b.value)
    refuse_unless(int(a.value) >= 0 and int(b.value) >= 0 and total <= a.dtype.bounds[1], "too far")
    return Scalar.of(total, a.dtype)


# x = i8 -1, a = 4, b = 5: (-1 >> 4) >> 5 = -1; -1 >> 9 = 0, as shifts by the width or more give 0.
@rule
def compose_right_shifts(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x >> a) >> b = x >> (a + b), for a and b that are not negative"""
    return rewrites(
        binary("shr", binary("shr", x, full(a, ones, s)), full(b, ones, s)),
        binary("shr", x, full(scalar(steps_in_all(a, b)), ones, s)),
    )


@attribute_function
def within_width(k: Scalar) -> bool:
    return k.dtype.is_integer and 0 <= int(k.value) < 8 * k.dtype.itemsize


# x = u8 200, k = 1: 200 << 1 wraps to 144, 144 >> 1 = 72, but x is 200.
@rule
def shift_there_and_back(x: Tensor, k: Scalar, ones: Shape, s: Shape) -> Law:
    """(x << k) >> k = x on unsigned integers, when k is less than the width"""
    shifted = binary("shl", x, full(k, ones, s))
    return rewrites(
        binary("shr", shifted, full(k, ones, s)),
        x,
        typing.cast(bool, within_width(k) & ~x.type.dtype.is_signed),
    )


# x = y = i8 1, m = 2: (1 + 1) & 2 = 2; (1 & 2) + (1 & 2) = 0. It holds for masks 2^k - 1 alone.
@rule
def mask_of_sum(x: Tensor, y: Tensor, m: Scalar, ones: Shape, s: Shape) -> Law:
    """(x + y) & m = ((x & m) + (y & m)) & m"""
    mask = full(m, ones, s)
    masked = binary("add", binary("and", x, mask), binary("and", y, mask))
    return rewrites(binary("and", binary("add", x, y), mask), binary("and", masked, mask))
