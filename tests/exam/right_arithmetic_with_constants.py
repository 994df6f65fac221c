"""Laws of arithmetic on two elements, with constants, all of them right."""

import typing

import numpy as np

from satura.language import (
    BinaryFn,
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
)


@rule
def add_then_subtract(x: Tensor, y: Tensor) -> Law:
    """(x + y) - y = x, on integers"""
    return rewrites(binary("sub", binary("add", x, y), y), x, x.type.dtype.is_integer)


@attribute_function
def partner(f: BinaryFn, x: TensorType) -> BinaryFn:
    """g such that f(g(x, y), y) = y: for max and min only where no NaN wins."""
    pairs = {"and": "or", "or": "and"}
    if not x.dtype.is_float:
        pairs |= {"max": "min", "min": "max"}
    refuse_unless(f.name in pairs, f"{f} absorbs nothing")
    return BinaryFn(pairs[f.name])


@rule
def absorb(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(g(x, y), y) = y, for and with or, and for max with min on integers"""
    return rewrites(binary(f, binary(partner(f, x.type), x, y), y), y)


@attribute_function
def product_of(a: Scalar, b: Scalar) -> Scalar:
    """a * b, where it fits and a is positive."""
    refuse_unless(a.dtype.is_integer and int(a.value) >= 1, "-1 makes the least number wrap")
    both, (least, most) = int(a.value) * int(b.value), a.dtype.bounds
    refuse_unless(least <= both <= most, "it does not fit")
    return Scalar.of(np.array(both, a.dtype.numpy), a.dtype)


@rule
def compose_quotients(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), on integers, for a positive a where the product fits"""
    return rewrites(
        binary("div", binary("div", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("div", x, broadcast(reshape(scalar(product_of(a, b)), u), s)),
    )


@attribute_function
def shift_by_both(f: BinaryFn, a: Scalar, b: Scalar) -> Scalar:
    """a + b, where shifts by a and b add up."""
    refuse_unless(f.name in ("shl", "shr"))
    i, j = int(a.value), int(b.value)
    refuse_unless(i >= 0 and j >= 0, "a negative shift gives 0")
    most = 8 * a.dtype.itemsize - 1
    refuse_unless(i + j <= (most if f.name == "shr" else a.dtype.bounds[1]), "it is too far")
    return Scalar.of(i + j, a.dtype)


@rule
def compose_shifts(f: BinaryFn, x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """(x << a) << b = x << (a + b) for shifts >= 0, and >> if a + b is less than the width"""
    return rewrites(
        binary(f, binary(f, x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary(f, x, broadcast(reshape(scalar(shift_by_both(f, a, b)), u), s)),
    )


@attribute_function
def wrapped_power(k: Scalar) -> Scalar:
    """2 ** k, wrapped."""
    refuse_unless(k.dtype.is_integer and int(k.value) >= 0)
    width = 8 * k.dtype.itemsize
    bits = 1 << int(k.value) if int(k.value) < width else 0
    return Scalar(k.dtype, bits.to_bytes(k.dtype.itemsize, "little"))


@rule
def shift_left_as_product(x: Tensor, k: Scalar, u: Shape, s: Shape) -> Law:
    """x << k = x * 2 ** k, where the power wraps to the least number or to 0"""
    return rewrites(
        binary("shl", x, broadcast(reshape(k, u), s)),
        binary("mul", x, broadcast(reshape(scalar(wrapped_power(k)), u), s)),
    )


@attribute_function
def is_within(k: Scalar) -> bool:
    """Whether it is a shift by less than the width."""
    return 0 <= int(k.value) < 8 * k.dtype.itemsize


@rule
def shift_right_as_quotient(x: Tensor, k: Scalar, u: Shape, s: Shape) -> Law:
    """x >> k = x / 2 ** k, on unsigned integers, for k below the width"""
    return rewrites(
        binary("shr", x, broadcast(reshape(k, u), s)),
        binary("div", x, broadcast(reshape(scalar(wrapped_power(k)), u), s)),
        typing.cast(bool, ~x.type.dtype.is_signed),
        is_within(k),
    )


@attribute_function
def low_bits(c: Scalar) -> Scalar:
    """c - 1, for a power of two c."""
    refuse_unless(c.dtype.is_integer and int(c.value) > 0)
    refuse_unless(int(c.value) & int(c.value) - 1 == 0, "it is no power of two")
    return Scalar.of(np.array(int(c.value) - 1, c.dtype.numpy), c.dtype)


@rule
def remainder_as_mask(x: Tensor, c: Scalar, u: Shape, s: Shape) -> Law:
    """mod(x, c) = x & (c - 1), for a power of two c: the remainder has the sign of c"""
    return rewrites(
        binary("mod", x, broadcast(reshape(c, u), s)),
        binary("and", x, broadcast(reshape(scalar(low_bits(c)), u), s)),
    )


@attribute_function
def is_less(a: Scalar, b: Scalar) -> bool:
    """Whether a < b: no NaN, and no two zeros."""
    return bool(typing.cast(float, a.value) < typing.cast(float, b.value))


@rule
def swap_bounds(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """min(max(x, a), b) = max(min(x, b), a), when a < b"""
    return rewrites(
        binary("min", binary("max", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("max", binary("min", x, broadcast(reshape(b, u), s)), broadcast(reshape(a, u), s)),
        is_less(a, b),
    )


@attribute_function
def chooses(f: BinaryFn) -> bool:
    """Whether f(x, y) is x or y."""
    return f.name in ("max", "min")


@attribute_function
def keeps_order(c: Scalar) -> bool:
    """Whether x * c is monotone: positive, finite, and nothing wraps."""
    return c.dtype.is_float and bool(0 < float(c.value) < float("inf"))


@rule
def scale_out_of_choice(f: BinaryFn, x: Tensor, y: Tensor, c: Scalar, u: Shape, s: Shape) -> Law:
    """max(x * c, y * c) = max(x, y) * c, for a positive finite c, on floats; the same for min"""
    return rewrites(
        binary(
            f,
            binary("mul", x, broadcast(reshape(c, u), s)),
            binary("mul", y, broadcast(reshape(c, u), s)),
        ),
        binary("mul", binary(f, x, y), broadcast(reshape(c, u), s)),
        chooses(f),
        keeps_order(c),
    )


@attribute_function
def one(x: TensorType) -> Scalar:
    """1 of that type."""
    return Scalar.of(1, x.dtype)


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


@rule
def power_of_nothing(x: Tensor) -> Law:
    """pow(x, 0) = 1, also of NaN, infinities and 0"""
    return rewrites(
        binary("pow", x, 0),
        broadcast(reshape(scalar(one(x.type)), units(x.type)), Shape(x.type.shape)),
    )
