"""Laws of arithmetic, mostly of integers, all of them wrong."""

import typing

import numpy as np
import numpy.typing as npt

from satura.language import (
    Constant,
    Law,
    Refuse,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    constant,
    rewrites,
    rule,
    unary,
)


@attribute_function
def are_powers_of_two(c: Constant) -> bool:
    """Whether c has integers, all of them positive powers of two."""
    if not c.type.dtype.is_integer or c.type.dtype.is_narrow:
        raise Refuse("not of plain integers")
    a = typing.cast(npt.NDArray[np.integer], c.array)
    return bool(np.all((a > 0) & ((a & (a - 1)) == 0)))


@attribute_function
def logarithms(c: Constant) -> Constant:
    """The exponents of powers of two."""
    if (
        not c.type.dtype.is_integer
        or c.type.dtype.is_narrow
        or bool(np.any(typing.cast(npt.NDArray[np.integer], c.array) <= 0))
    ):
        raise Refuse("not of positive integers")
    exponents = [int(v).bit_length() - 1 for v in c.array.ravel()]
    return Constant(np.array(exponents, c.array.dtype).reshape(c.array.shape))


@attribute_function
def less_one(c: Constant) -> Constant:
    """c - 1, of positive integers."""
    if (
        not c.type.dtype.is_integer
        or c.type.dtype.is_narrow
        or bool(np.any(typing.cast(npt.NDArray[np.integer], c.array) <= 0))
    ):
        raise Refuse("not of positive integers")
    return Constant(np.array(c.array - 1, c.array.dtype))


@attribute_function
def within_width(c: Constant) -> bool:
    """Whether c has integers from 0 to below their width."""
    if not c.type.dtype.is_integer or c.type.dtype.is_narrow:
        raise Refuse("not of plain integers")
    a = typing.cast(npt.NDArray[np.integer], c.array)
    return bool(np.all((a >= 0) & (a < 8 * c.type.dtype.itemsize)))


# i32[1] x = [-7], y = [2]: div truncates to -3, -3 * 2 = -6; mod has the sign of y, so it is 1;
# -6 + 1 = -5, the right side is -7. (It is fmod that belongs to div.)
@rule
def quotient_and_modulo(x: Tensor, y: Tensor) -> Law:
    """(x / y) * y + mod(x, y) = x, for integers"""
    return rewrites(
        binary("add", binary("mul", binary("div", x, y), y), binary("mod", x, y)),
        x,
        x.type.dtype.is_integer,
    )


# i32[1] x = [-1], c = [2]: -1 / 2 truncates to 0; -1 >> 1 = -1.
@rule
def divide_by_shift(x: Tensor, c: Constant) -> Law:
    """x / c = x >> log2(c), for powers of two"""
    return rewrites(
        binary("div", x, constant(c)),
        binary("shr", x, constant(logarithms(c))),
        are_powers_of_two(c),
    )


# u8[1] x = [128], c = [1]: 128 << 1 wraps to 0, 0 >> 1 = 0; the right side is 128.
@rule
def shift_there_and_back(x: Tensor, c: Constant) -> Law:
    """(x << c) >> c = x, for shifts below the width"""
    return rewrites(binary("shr", binary("shl", x, constant(c)), constant(c)), x, within_width(c))


# i8[1] x = [1], y = [-1], z = [2]: a shift by -1 gives 0, so the left side is 0; 1 << 1 = 2.
@rule
def add_left_shifts(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x << y) << z = x << (y + z)"""
    return rewrites(binary("shl", binary("shl", x, y), z), binary("shl", x, binary("add", y, z)))


# i32[1] x = [-1], c = [4]: fmod has the sign of x: -1; -1 & 3 = 3.
@rule
def remainder_by_mask(x: Tensor, c: Constant) -> Law:
    """fmod(x, c) = x & (c - 1), for powers of two"""
    return rewrites(
        binary("fmod", x, constant(c)),
        binary("and", x, constant(less_one(c))),
        are_powers_of_two(c),
    )


# i8[1] x = y = [100]: 200 wraps to -56, -56 >> 1 = -28; 100 + (0 >> 1) = 100.
@rule
def midpoint(x: Tensor, y: Tensor) -> Law:
    """(x + y) >> 1 = (x & y) + ((x ^ y) >> 1)"""
    return rewrites(
        binary("shr", binary("add", x, y), 1),
        binary("add", binary("and", x, y), binary("shr", binary("xor", x, y), 1)),
    )


# f32[1] x = [-inf]: pow(-inf, 0.5) is inf, as C says; the root of -inf is NaN, which one function
# makes, so that it may not stand for inf. (x = [-0.0]: 0.0 and -0.0.)
@rule(reassociates=True)
def root_from_power(x: Tensor) -> Law:
    """pow(x, 0.5) = sqrt(x)"""
    return rewrites(binary("pow", x, 0.5), unary("sqrt", x))


# f32[1] x = [-1.0], y = [2.0], z = [0.5]: pow(1.0, 0.5) = 1.0; pow(-1.0, 1.0) = -1.0.
@rule(reassociates=True)
def multiply_exponents(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """pow(pow(x, y), z) = pow(x, y * z), for floats"""
    return rewrites(
        binary("pow", binary("pow", x, y), z),
        binary("pow", x, binary("mul", y, z)),
        x.type.dtype.is_float,
    )


# i8[1] x = [64], y = [3]: 192 wraps to -64, its abs is 64; 64 * 3 wraps to -64.
@rule
def abs_into_product(x: Tensor, y: Tensor) -> Law:
    """abs(x * y) = abs(x) * abs(y)"""
    return rewrites(
        unary("abs", binary("mul", x, y)), binary("mul", unary("abs", x), unary("abs", y))
    )


@attribute_function
def has_negatives(t: TensorType) -> bool:
    """Whether elements of this type may be negative."""
    return t.dtype.is_signed


# i8[1] x = [-128], y = [2]: -128 / 2 = -64, negated 64; neg(-128) wraps to -128, / 2 = -64.
@rule
def negation_into_quotient(x: Tensor, y: Tensor) -> Law:
    """neg(x / y) = neg(x) / y, where there are negative numbers"""
    return rewrites(
        unary("neg", binary("div", x, y)),
        binary("div", unary("neg", x), y),
        has_negatives(x.type),
    )
