"""Laws of quotients, remainders and inverse functions, all of them wrong."""

import typing

import numpy as np

from satura.language import (
    Approximate,
    BinaryFn,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    Term,
    Varying,
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


def everywhere(c: Term | Scalar, o: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, o), s)


@attribute_function
def exponent(c: Scalar) -> Scalar:
    """log2 of a power of two."""
    refuse_unless(c.dtype.is_integer, "no integer")
    value = int(c.value)
    refuse_unless(value > 0 and value & value - 1 == 0, "no power of two")
    return Scalar.of(value.bit_length() - 1, c.dtype)


# i32 x = -3, c = 2: left -1 (toward zero), right -3 >> 1 = -2.
@rule
def divide_by_shift(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c everywhere = x >> log2(c) everywhere, for integers and powers of two c"""
    return rewrites(
        binary("div", x, everywhere(c, o, s)),
        binary("shr", x, everywhere(scalar(exponent(c)), o, s)),
    )


@attribute_function
def ones_below(c: Scalar) -> Scalar:
    """A mask of the bits below a power of two."""
    value = int(c.value)
    refuse_unless(c.dtype.is_integer and value > 0 and value & value - 1 == 0, "no power of two")
    return Scalar.of(value - 1, c.dtype)


# fmod, i32 x = -3, c = 2: left -1 (sign of x), right -3 & 1 = 1.
@rule
def remainder_by_mask(f: BinaryFn, x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """f(x, c everywhere) = x & (c - 1) everywhere, for fmod by powers of two on integers"""
    return rewrites(
        binary(f, x, everywhere(c, o, s)),
        binary("and", x, everywhere(scalar(ones_below(c)), o, s)),
        f == BinaryFn("fmod"),
    )


# f32 x = 500: exp(x) = inf, log(inf) = inf; right 500.
@rule(reassociates=True)
def log_of_exp(x: Tensor) -> Law:
    """log(exp(x)) = x, up to rounding"""
    return rewrites(unary("log", unary("exp", x)), x)


# f32 x = 1e30: x * x = inf, left inf, right 1e30.
@rule(reassociates=True)
def root_of_square(x: Approximate) -> Law:
    """sqrt(x * x) = abs(x), up to rounding"""
    return rewrites(unary("sqrt", binary("mul", x, x)), unary("abs", x))


# x = 2.0: left sigmoid(2) = 0.8808, right (tanh(2) + 1) / 2 = 0.9820.
@rule(reassociates=True)
def sigmoid_by_tanh(x: Tensor) -> Law:
    """sigmoid(x) = tanh(x) * 0.5 + 0.5"""
    return rewrites(unary("sigmoid", x), binary("add", binary("mul", unary("tanh", x), 0.5), 0.5))


@attribute_function
def inverse(c: Scalar) -> Scalar:
    """1 / c, which is neither 0 nor infinite."""
    refuse_unless(c.dtype in (DType.F32, DType.F64), "no f32 or f64")
    refuse_unless(1e-30 < abs(float(c.value)) < 1e30, "too large or too small")
    return Scalar.of(
        typing.cast(np.floating, c.dtype.numpy.type(1)) / typing.cast(np.floating, c.value), c.dtype
    )


# f32 x = 5, c = 3: left 1.6666666, right 5 * 0.33333334 = 1.6666667.
@rule
def divide_by_inverse(x: Varying, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c everywhere = x * (1 / c) everywhere, when 1 / c is an ordinary number"""
    return rewrites(
        binary("div", x, everywhere(c, o, s)),
        binary("mul", x, everywhere(scalar(inverse(c)), o, s)),
    )


@attribute_function
def is_not_zero(c: Scalar) -> bool:
    """Whether it can divide."""
    return bool(c.value != 0)


# i8 x = 100, c = 2: 200 wraps to -56, / 2 = -28; right 100.
@rule
def divide_product_back(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x * c everywhere / c everywhere = x, on integers, for c != 0"""
    return rewrites(
        binary("div", binary("mul", x, everywhere(c, o, s)), everywhere(c, o, s)),
        x,
        is_not_zero(c) & x.type.dtype.is_integer,
    )


@attribute_function
def is_above_zero(c: Scalar) -> bool:
    """Whether c > 0."""
    return c.dtype.is_integer and int(c.value) > 0


# i8 x = 100, a = 20, b = 13: left 100/20 = 5, 5/13 = 0; right a*b = 260 mod 256 = 4, 100/4 = 25.
@rule
def merge_integer_quotients(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """x / a everywhere / b everywhere = x / (a * b) everywhere, for integers a, b > 0"""
    return rewrites(
        binary("div", binary("div", x, everywhere(a, o, s)), everywhere(b, o, s)),
        binary("div", x, everywhere(binary("mul", a, b), o, s)),
        is_above_zero(a),
        is_above_zero(b),
    )


# i32 x = y = 1, c = 2: left 2/2 = 1, right 0 + 0 = 0.
@rule
def divide_summands(x: Tensor, y: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """(x + y) / c everywhere = x / c everywhere + y / c everywhere, on i32 and i64"""
    return rewrites(
        binary("div", binary("add", x, y), everywhere(c, o, s)),
        binary("add", binary("div", x, everywhere(c, o, s)), binary("div", y, everywhere(c, o, s))),
        (x.type.dtype == DType.I32) | (x.type.dtype == DType.I64),
    )


@attribute_function
def is_at_least_zero(c: Scalar) -> bool:
    """Whether c >= 0."""
    return bool(typing.cast(float, c.value) >= 0)


# i8 x = 100, c = 2: x * c = -56, left 56; right 100 * 2 = -56. (f32: x = 1, c = -0.0: 0.0 and
# -0.0.)
@rule
def abs_of_scaled(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """abs(x * c everywhere) = abs(x) * c everywhere, for c >= 0"""
    return rewrites(
        unary("abs", binary("mul", x, everywhere(c, o, s))),
        binary("mul", unary("abs", x), everywhere(c, o, s)),
        is_at_least_zero(c),
    )
