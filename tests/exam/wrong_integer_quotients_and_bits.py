"""Laws of integer division, remainders and bits, all of them wrong."""

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
)


@attribute_function
def log2(c: Scalar) -> Scalar:
    """k with 2**k = c."""
    if not c.dtype.is_integer or int(c.value) <= 0 or int(c.value) & (int(c.value) - 1):
        raise Refuse("not a power of two")
    return Scalar.of(int(c.value).bit_length() - 1, c.dtype)


# i32, x = -7, c = 4: -7 / 4 truncates to -1; -7 >> 2 is -2.
@rule
def divide_by_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x >> log2(c), for a power of two c"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, ones), s)),
        binary("shr", x, broadcast(reshape(log2(c), ones), s)),
    )


@attribute_function
def bits_of(c: Scalar) -> Scalar:
    """How many bits c has."""
    if not c.dtype.is_integer or int(c.value) <= 0 or int(c.value) & (int(c.value) - 1):
        raise Refuse("not a power of two")
    return Scalar.of(int(c.value).bit_length(), c.dtype)


# i32, x = 3, c = 4: 3 * 4 = 12; 4 has 3 bits, and 3 << 3 = 24. (Off by one.)
@rule
def multiply_by_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * c = x << (bits of c), for a power of two c"""
    return rewrites(
        binary("mul", x, broadcast(reshape(c, ones), s)),
        binary("shl", x, broadcast(reshape(bits_of(c), ones), s)),
    )


@attribute_function
def mask_of(c: Scalar) -> Scalar:
    """c - 1, for a power of two c."""
    if not c.dtype.is_integer or int(c.value) <= 0 or int(c.value) & (int(c.value) - 1):
        raise Refuse("not a power of two")
    return Scalar.of(int(c.value) - 1, c.dtype)


# i32, x = -3, c = 4: fmod has the sign of x, so it is -3; -3 & 3 = 1.
@rule
def fmod_by_mask(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """fmod(x, c) = x & (c - 1), for a power of two c"""
    return rewrites(
        binary("fmod", x, broadcast(reshape(c, ones), s)),
        binary("and", x, broadcast(reshape(mask_of(c), ones), s)),
    )


@attribute_function
def exact_product(a: Scalar, b: Scalar) -> Scalar:
    """a * b, where it does not overflow."""
    if not a.dtype.is_integer or a.dtype is not b.dtype:
        raise Refuse("no integers")
    value = int(a.value) * int(b.value)
    if value == 0 or not a.dtype.bounds[0] <= value <= a.dtype.bounds[1]:
        raise Refuse("the product is 0 or overflows")
    return Scalar.of(value, a.dtype)


# i8, x = -128, a = -1, b = 2: -128 / -1 wraps to -128, / 2 = -64; -128 / -2 = 64.
@rule
def merge_divisions(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), when a * b does not overflow"""
    return rewrites(
        binary(
            "div", binary("div", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("div", x, broadcast(reshape(exact_product(a, b), ones), s)),
    )


@attribute_function
def is_whole_and_not_zero(c: Scalar) -> bool:
    return c.dtype.is_integer and int(c.value) != 0


# i32, x = -7, c = 2: -7 / 2 = -3, -7 - -6 = -1; -7 mod 2 = 1 (mod has the sign of the divisor).
@rule
def modulo_from_quotient(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x - (x / c) * c = x mod c, for integers c other than 0"""
    everywhere = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("sub", x, binary("mul", binary("div", x, everywhere), everywhere)),
        binary("mod", x, everywhere),
        is_whole_and_not_zero(c),
    )


# i32, x = 5, y = 0: 5 / 0 = 0, 5 - 0 * 0 = 5; fmod(5, 0) = 0.
@rule
def remainder_from_quotient(x: Tensor, y: Tensor) -> Law:
    """x - (x / y) * y = fmod(x, y), on integers"""
    return rewrites(
        binary("sub", x, binary("mul", binary("div", x, y), y)),
        binary("fmod", x, y),
        x.type.dtype.is_integer,
    )


@attribute_function
def divides(a: Scalar, b: Scalar) -> bool:
    """Whether b is a multiple of a, and both are positive."""
    if not a.dtype.is_integer or a.dtype is not b.dtype:
        return False
    return int(a.value) > 0 and int(b.value) > 0 and int(b.value) % int(a.value) == 0


# i32, x = 3, a = 2, b = 4: (3 mod 2) mod 4 = 1; 3 mod 4 = 3. (a and b are exchanged.)
@rule
def merge_remainders(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x mod a) mod b = x mod b, when a divides b"""
    return rewrites(
        binary(
            "mod", binary("mod", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("mod", x, broadcast(reshape(b, ones), s)),
        divides(a, b),
    )


# i8, x = 1, y = -1, z = 2: 1 << -1 = 0, and 0 << 2 = 0; 1 << (-1 + 2) = 2.
# (u8, y = 255, z = 2: 0 on the left; 255 + 2 wraps to 1, and 1 << 1 = 2.)
@rule
def merge_shifts(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x << y) << z = x << (y + z)"""
    return rewrites(binary("shl", binary("shl", x, y), z), binary("shl", x, binary("add", y, z)))


@attribute_function
def goes_through_shift(f: BinaryFn, g: BinaryFn) -> bool:
    """Whether g shifts, and f works bit by bit or adds."""
    return f.name in ("and", "or", "xor", "add") and g.name in ("shl", "shr")


# f = add, g = shr, i32, x = 1, y = 1, k = 1: (1 >> 1) + (1 >> 1) = 0; (1 + 1) >> 1 = 1.
@rule
def shift_after(f: BinaryFn, g: BinaryFn, x: Tensor, y: Tensor, k: Tensor) -> Law:
    """f(x shifted by k, y shifted by k) = f(x, y) shifted by k"""
    return rewrites(
        binary(f, binary(g, x, k), binary(g, y, k)),
        binary(g, binary(f, x, y), k),
        goes_through_shift(f, g),
    )


@attribute_function
def all_but_one(c: Scalar) -> bool:
    """Whether c is at least as large as the width less one."""
    return c.dtype.is_integer and int(c.value) >= 8 * c.dtype.itemsize - 1


@attribute_function
def last_bit(c: Scalar) -> Scalar:
    return Scalar.of(8 * c.dtype.itemsize - 1, c.dtype)


# i32, x = -5, c = 40: a shift by the width or more gives 0; -5 >> 31 is -1.
@rule
def clamp_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x >> c = x >> (width - 1), when c >= width - 1"""
    return rewrites(
        binary("shr", x, broadcast(reshape(c, ones), s)),
        binary("shr", x, broadcast(reshape(last_bit(c), ones), s)),
        all_but_one(c),
        c.dtype.is_signed,
    )
