"""Laws of bits and shifts, all of them wrong."""

import typing

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
    reshape,
    rewrites,
    rule,
    unary,
)


@attribute_function
def shift_in_range(c: Scalar) -> bool:
    t = c.type.dtype
    return t.is_integer and 0 <= int(c.value) < 8 * t.itemsize


@attribute_function
def is_31(c: Scalar) -> bool:
    return c.type.dtype.is_integer and int(c.value) == 31


@attribute_function
def masks_all_of(c: Scalar, t: DType) -> bool:
    if not (t.is_integer and c.type.dtype.is_integer) or t.is_narrow:
        return False
    low = (1 << (8 * t.itemsize - 1)) - 1
    return t.itemsize < c.type.dtype.itemsize and int(c.value) & low == low


@attribute_function
def below_bit(c: Scalar, k: Scalar) -> bool:
    width = 8 * c.type.dtype.itemsize
    return 0 < int(k.value) < width and int(c.value) < 1 << int(k.value)


# i8: x = 1, y = -1, z = 1: 1 << -1 = 0, 0 << 1 = 0; y + z = 0, 1 << 0 = 1.
@rule
def compose_left_shifts(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x << y) << z = x << (y + z)"""
    return rewrites(binary("shl", binary("shl", x, y), z), binary("shl", x, binary("add", y, z)))


# i8: x = -1, a = b = 4: (-1 >> 4) >> 4 = -1; a shift by 8, the width, gives 0.
@rule
def compose_right_shifts(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x >> a) >> b = x >> (a + b), where a and b are valid shifts"""
    return rewrites(
        binary(
            "shr", binary("shr", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("shr", x, broadcast(reshape(binary("add", a, b), ones), s)),
        shift_in_range(a),
        shift_in_range(b),
    )


# u8: x = 255, c = 1: 255 << 1 = 254, 254 >> 1 = 127; the right side is 255.
@rule
def shift_there_and_back(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """(x << c) >> c = x, where c is a valid shift and x has no sign"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("shr", binary("shl", x, k), k),
        x,
        shift_in_range(c),
        typing.cast(bool, ~x.type.dtype.is_signed),
    )


# i32: x = 5: ~5 = -6, -(-6) = 6; x - 1 = 4.
@rule
def negated_complement(x: Tensor) -> Law:
    """-(~x) = x - 1"""
    return rewrites(unary("neg", unary("bitnot", x)), binary("sub", x, 1))


# u8: x = 0, y = 0: ~(0 ^ 0) = 255; 255 ^ 255 = 0.
@rule
def complement_into_xor(x: Tensor, y: Tensor) -> Law:
    """~(x ^ y) = ~x ^ ~y"""
    return rewrites(
        unary("bitnot", binary("xor", x, y)), binary("xor", unary("bitnot", x), unary("bitnot", y))
    )


# u8: x = 0, c = 1: ~0 = 255, 255 >> 1 = 127; ~(0 >> 1) = 255.
@rule
def complement_out_of_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """~x >> c = ~(x >> c), where c is a valid shift"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("shr", unary("bitnot", x), k),
        unary("bitnot", binary("shr", x, k)),
        shift_in_range(c),
    )


# i64: x = 2^40: x >> 31 = 512, so false; 0 <= 2^40 is true. u32 2^31: 1 == 0 false; 0 <= 2^31 true.
@rule
def sign_bit_test(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x >> 31 == 0 = 0 <= x"""
    return rewrites(
        binary("eq", binary("shr", x, broadcast(reshape(c, ones), s)), 0),
        binary("le", 0, x),
        is_31(c),
    )


# x = i32 128, c = 127, to u8: 128 & 127 = 0; cast(128, u8) = 128.
@rule
def drop_mask_before_narrowing(x: Tensor, c: Scalar, t: DType, ones: Shape, s: Shape) -> Law:
    """cast(x & c, t) = cast(x, t), to a narrower integer all of whose bits c has"""
    return rewrites(
        cast(binary("and", x, broadcast(reshape(c, ones), s)), t), cast(x, t), masks_all_of(c, t)
    )


# i32: x = 1, k = 1, c = -1: (1 << 1) | -1 = -1; 2 + -1 = 1.
@rule
def or_as_add(x: Tensor, k: Scalar, c: Scalar, ones: Shape, s: Shape) -> Law:
    """(x << k) | c = (x << k) + c, where c < 2^k"""
    moved = binary("shl", x, broadcast(reshape(k, ones), s))
    return rewrites(
        binary("or", moved, broadcast(reshape(c, ones), s)),
        binary("add", moved, broadcast(reshape(c, ones), s)),
        below_bit(c, k),
    )


# bool: x = false, y = false, z = true: false and true = false; (false and false) or true = true.
@rule
def or_out_of_and(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """x & (y | z) = (x & y) | z"""
    return rewrites(binary("and", x, binary("or", y, z)), binary("or", binary("and", x, y), z))


# i32: x = 0, y = 5: max(-1, -6) = -1; ~max(0, 5) = -6: it has to be ~min(x, y).
@rule
def max_of_complements(x: Tensor, y: Tensor) -> Law:
    """max(~x, ~y) = ~max(x, y)"""
    return rewrites(
        binary("max", unary("bitnot", x), unary("bitnot", y)), unary("bitnot", binary("max", x, y))
    )
