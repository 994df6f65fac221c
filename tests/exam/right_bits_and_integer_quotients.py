"""Laws of bits, shifts, integer division and remainders, all of them right."""

import typing

from satura.language import (
    BinaryFn,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    reshape,
    rewrites,
    rule,
    unary,
)


@rule
def complement_of_negated(x: Tensor) -> Law:
    """~(-x) = x - 1"""
    return rewrites(unary("bitnot", unary("neg", x)), binary("sub", x, 1))


@rule
def either_as_sum(x: Tensor, y: Tensor) -> Law:
    """x | y = x + (y - (x & y)), on integers"""
    return rewrites(
        binary("or", x, y),
        binary("add", x, binary("sub", y, binary("and", x, y))),
        x.type.dtype.is_integer,
    )


@attribute_function
def log2(c: Scalar) -> Scalar:
    """k with 2**k = c, of a positive power of two."""
    value = int(c.value) if c.dtype.is_integer else 0
    if value <= 0 or value & (value - 1):
        raise Refuse(f"{c} is no power of two")
    return Scalar.of(value.bit_length() - 1, c.dtype)


@attribute_function
def mask(c: Scalar) -> Scalar:
    """c - 1, of a positive power of two."""
    value = int(c.value) if c.dtype.is_integer else 0
    if value <= 0 or value & (value - 1):
        raise Refuse(f"{c} is no power of two")
    return Scalar.of(value - 1, c.dtype)


@rule
def multiply_by_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * c = x << log2(c), for a positive power of two c of integers"""
    return rewrites(
        binary("mul", x, broadcast(reshape(c, ones), s)),
        binary("shl", x, broadcast(reshape(log2(c), ones), s)),
    )


@rule
def modulo_by_mask(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x mod c = x & (c - 1), for a positive power of two c of integers, and any x"""
    return rewrites(
        binary("mod", x, broadcast(reshape(c, ones), s)),
        binary("and", x, broadcast(reshape(mask(c), ones), s)),
    )


@rule
def divide_by_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x >> log2(c), for a power of two c, on unsigned integers"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, ones), s)),
        binary("shr", x, broadcast(reshape(log2(c), ones), s)),
        typing.cast(bool, ~x.type.dtype.is_signed),
    )


@attribute_function
def total_shift(f: BinaryFn, a: Scalar, b: Scalar) -> Scalar:
    """a + b, where f by a and then by b is f by the sum."""
    if f.name not in ("shl", "shr") or a.dtype is not b.dtype or not a.dtype.is_integer:
        raise Refuse(f"{f} is no shift")
    width, first, second = 8 * a.dtype.itemsize, int(a.value), int(b.value)
    if not (0 <= first <= width and 0 <= second <= width):
        raise Refuse("a shift is out of range")
    if f.name == "shr" and a.dtype.is_signed and first + second >= width:
        raise Refuse("two shifts leave the sign of what one makes 0")
    return Scalar.of(first + second, a.dtype)


@rule
def merge_shifts(f: BinaryFn, x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """x shifted by a, then by b, is x shifted by a + b, for shifts that are not out of range"""
    return rewrites(
        binary(f, binary(f, x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)),
        binary(f, x, broadcast(reshape(total_shift(f, a, b), ones), s)),
    )


@attribute_function
def is_bitwise(f: BinaryFn) -> bool:
    return f.name in ("and", "or", "xor")


@attribute_function
def is_shift(f: BinaryFn) -> bool:
    return f.name in ("shl", "shr")


@rule
def shift_after_bits(f: BinaryFn, g: BinaryFn, x: Tensor, y: Tensor, k: Tensor) -> Law:
    """f(g(x, k), g(y, k)) = g(f(x, y), k), for f that works bit by bit and a shift g"""
    return rewrites(
        binary(f, binary(g, x, k), binary(g, y, k)),
        binary(g, binary(f, x, y), k),
        is_bitwise(f) & is_shift(g),
    )


@attribute_function
def is_divisor(c: Scalar) -> bool:
    return c.dtype.is_integer and int(c.value) != 0


@rule
def remainder_from_quotient(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x - (x / c) * c = fmod(x, c), for integers c other than 0"""
    everywhere = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("sub", x, binary("mul", binary("div", x, everywhere), everywhere)),
        binary("fmod", x, everywhere),
        is_divisor(c),
    )


@attribute_function
def is_multiple(a: Scalar, b: Scalar) -> bool:
    """Whether a is a multiple of b, and both are positive integers."""
    if not a.dtype.is_integer or a.dtype is not b.dtype:
        return False
    return int(a.value) > 0 and int(b.value) > 0 and int(a.value) % int(b.value) == 0


@rule
def merge_remainders(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x mod a) mod b = x mod b, when a is a multiple of b and both are positive integers"""
    return rewrites(
        binary(
            "mod", binary("mod", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("mod", x, broadcast(reshape(b, ones), s)),
        is_multiple(a, b),
    )


@attribute_function
def exact_product(a: Scalar, b: Scalar) -> Scalar:
    """a * b of positive integers, where it does not overflow."""
    if not a.dtype.is_integer or a.dtype is not b.dtype:
        raise Refuse("no integers of one type")
    if int(a.value) <= 0 or int(b.value) <= 0:
        raise Refuse("a divisor is not positive")
    value = int(a.value) * int(b.value)
    if value > a.dtype.bounds[1]:
        raise Refuse("the product overflows")
    return Scalar.of(value, a.dtype)


@rule
def merge_divisions(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), for positive integers whose product does not overflow"""
    return rewrites(
        binary(
            "div", binary("div", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("div", x, broadcast(reshape(exact_product(a, b), ones), s)),
    )


@attribute_function
def is_out_of_range(k: Scalar) -> bool:
    return k.dtype.is_integer and not 0 <= int(k.value) < 8 * k.dtype.itemsize


@rule
def shift_everything_out(f: BinaryFn, x: Tensor, k: Scalar, ones: Shape, s: Shape) -> Law:
    """x shifted by the width or more, or by less than 0, is 0"""
    return rewrites(
        binary(f, x, broadcast(reshape(k, ones), s)),
        binary("xor", x, x),
        is_shift(f) & is_out_of_range(k),
    )


@rule
def power_of_two(x: Tensor) -> Law:
    """pow(2, x) = 1 << x, on integers"""
    return rewrites(binary("pow", 2, x), binary("shl", 1, x), x.type.dtype.is_integer)
