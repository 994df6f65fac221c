"""Laws of arithmetic, masks and shifts, all of them right."""

import typing

import numpy as np

from satura.language import (
    BinaryFn,
    Constant,
    DType,
    Law,
    Refuse,
    Tensor,
    TensorType,
    Varying,
    attribute_function,
    binary,
    cast,
    constant,
    equates,
    rewrites,
    rule,
    unary,
)


@rule
def subtract_by_adding(x: Tensor, y: Tensor) -> Law:
    """x - y = x + neg(y), also where integers wrap"""
    return equates(binary("sub", x, y), binary("add", x, unary("neg", y)))


@rule
def twice(x: Tensor) -> Law:
    """x * 2 = x + x"""
    return rewrites(binary("mul", x, 2), binary("add", x, x))


@rule
def times_minus_one(x: Tensor) -> Law:
    """x * -1 = neg(x), for types that have -1"""
    return rewrites(binary("mul", x, -1), unary("neg", x))


@rule
def zero_point_by_sign_bit(q: Varying) -> Law:
    """cast(q, i32) - 128 = cast(cast(q xor 128, i8), i32), for q of u8"""
    return rewrites(
        binary("sub", cast(q, DType.I32), 128),
        cast(cast(binary("xor", q, 128), DType.I8), DType.I32),
        q.type.dtype == DType.U8,
    )


@attribute_function
def is_associative(f: BinaryFn, t: TensorType) -> bool:
    """Whether f(f(x, y), z) = f(x, f(y, z)) bit for bit."""
    return f.name in ("max", "min", "and", "or", "xor") or (
        f.name in ("add", "mul") and t.dtype.is_integer
    )


@rule
def regroup(f: BinaryFn, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """f(f(x, y), z) = f(x, f(y, z)), for lattices, bits, and integers, which wrap"""
    return equates(
        binary(f, binary(f, x, y), z), binary(f, x, binary(f, y, z)), is_associative(f, x.type)
    )


@attribute_function
def are_powers_of_two(c: Constant) -> bool:
    """Whether all elements are positive powers of two."""
    if not c.type.dtype.is_integer or c.type.dtype.is_narrow:
        raise Refuse("no plain integers")
    return all(int(v) > 0 and int(v) & (int(v) - 1) == 0 for v in c.array.ravel())


@attribute_function
def mask(c: Constant) -> Constant:
    """c - 1, of positive integers."""
    if not c.type.dtype.is_integer or c.type.dtype.is_narrow:
        raise Refuse("no plain integers")
    values = [int(v) - 1 for v in c.array.ravel()]
    if any(v < 0 for v in values):
        raise Refuse("not positive")
    return Constant(np.array(values, c.array.dtype).reshape(c.array.shape))


@attribute_function
def logarithms(c: Constant) -> Constant:
    """The exponents of powers of two."""
    if not c.type.dtype.is_integer or c.type.dtype.is_narrow:
        raise Refuse("no plain integers")
    values = [int(v) for v in c.array.ravel()]
    if any(v <= 0 for v in values):
        raise Refuse("not positive")
    exponents = [v.bit_length() - 1 for v in values]
    return Constant(np.array(exponents, c.array.dtype).reshape(c.array.shape))


@rule
def modulo_by_mask(x: Tensor, c: Constant) -> Law:
    """mod(x, c) = x & (c - 1), for powers of two: the remainder has the sign of c"""
    return rewrites(
        binary("mod", x, constant(c)), binary("and", x, constant(mask(c))), are_powers_of_two(c)
    )


@rule
def divide_unsigned_by_shift(x: Tensor, c: Constant) -> Law:
    """x / c = x >> log2(c), for powers of two and unsigned integers"""
    return rewrites(
        binary("div", x, constant(c)),
        binary("shr", x, constant(logarithms(c))),
        are_powers_of_two(c),
        typing.cast(bool, ~c.type.dtype.is_signed),
    )


@rule
def multiply_by_shift(x: Tensor, c: Constant) -> Law:
    """x * c = x << log2(c), for powers of two"""
    return rewrites(
        binary("mul", x, constant(c)),
        binary("shl", x, constant(logarithms(c))),
        are_powers_of_two(c),
    )


@attribute_function
def has_no_zero(c: Constant) -> bool:
    """Whether c has integers other than 0 only."""
    if not c.type.dtype.is_integer or c.type.dtype.is_narrow:
        raise Refuse("no plain integers")
    return all(int(v) != 0 for v in c.array.ravel())


@rule
def remainder_of_quotient(x: Tensor, c: Constant) -> Law:
    """x - (x / c) * c = fmod(x, c), for integers without 0 in c"""
    return rewrites(
        binary("sub", x, binary("mul", binary("div", x, constant(c)), constant(c))),
        binary("fmod", x, constant(c)),
        has_no_zero(c),
    )
