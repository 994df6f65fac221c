"""Laws of powers of two, roots and exponentials, all of them wrong."""

from math import frexp

import numpy as np

from satura.language import (
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
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
def is_power(c: Scalar) -> bool:
    """Whether c is 2^k or -2^k, so that its reciprocal is exact."""
    return c.dtype.is_float and abs(frexp(float(c.value))[0]) == 0.5


@attribute_function
def reciprocal(c: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        return Scalar.of(np.float64(1.0) / np.float64(c.value), c.dtype)


# f32, c = 2^-140 (subnormal): 1 / c is infinite in f32: x = 0: 0 / c = 0, 0 * inf = NaN. f16: c =
# 2^-16, whose reciprocal 65536 is too large for f16: x = 1e-6: x / c = 0.066, x * inf = inf.
@rule
def divide_by_power(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c) for a power of two c, bit for bit"""
    return rewrites(
        binary("div", x, full(c, ones, s)),
        binary("mul", x, full(scalar(reciprocal(c)), ones, s)),
        is_power(c),
    )


# x = f32 3e38, c = 2: 6e38 is inf, inf / 2 = inf; the right side is 3e38. (Too small for c = 1/2.)
@rule
def scale_there_and_back(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """(x * c) / c = x for a power of two c, as no digit is lost"""
    return rewrites(
        binary("div", binary("mul", x, full(c, ones, s)), full(c, ones, s)), x, is_power(c)
    )


# x = y = f32 -2: sqrt(-2) is NaN, and so is the product; sqrt(4) = 2.
@rule(reassociates=True)
def root_of_product(x: Tensor, y: Tensor) -> Law:
    """sqrt(x) * sqrt(y) = sqrt(x * y) up to rounding"""
    return rewrites(
        binary("mul", unary("sqrt", x), unary("sqrt", y)), unary("sqrt", binary("mul", x, y))
    )


# x = f32 1000, y = -1000: exp(0) = 1, finite; exp(1000) * exp(-1000) = inf * 0 = NaN.
@rule(reassociates=True)
def exponential_of_sum(x: Tensor, y: Tensor) -> Law:
    """exp(x + y) = exp(x) * exp(y) up to rounding"""
    return rewrites(
        unary("exp", binary("add", x, y)), binary("mul", unary("exp", x), unary("exp", y))
    )


@attribute_function
def one(type_: TensorType) -> Scalar:
    refuse_unless(type_.dtype.is_float, "no float")
    return Scalar.of(1, type_.dtype)


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


# x = f32 inf: sin(inf) and cos(inf) are NaN, so the left side is NaN; the right side is 1.
@rule(reassociates=True)
def pythagoras(x: Tensor) -> Law:
    """sin(x)^2 + cos(x)^2 = 1 up to rounding"""
    sin, cos = unary("sin", x), unary("cos", x)
    return rewrites(
        binary("add", binary("mul", sin, sin), binary("mul", cos, cos)),
        full(scalar(one(x.type)), units(x.type), Shape(x.type.shape)),
    )


# x = f32 1000: tanh(1000) = 1, finite; sinh and cosh are inf, inf / inf = NaN.
@rule(reassociates=True)
def tangent_as_quotient(x: Tensor) -> Law:
    """tanh(x) = sinh(x) / cosh(x) up to rounding"""
    return rewrites(unary("tanh", x), binary("div", unary("sinh", x), unary("cosh", x)))


# x = f32 -1e6: asinh(x) = -14.5; x * x + 1 = 1e12, its root 1e6, -1e6 + 1e6 = 0, log(0) = -inf.
@rule(reassociates=True)
def asinh_as_logarithm(x: Tensor) -> Law:
    """asinh(x) = log(x + sqrt(x * x + 1)) up to rounding"""
    root = unary("sqrt", binary("add", binary("mul", x, x), 1.0))
    return rewrites(unary("asinh", x), unary("log", binary("add", x, root)))


# x = f32 -0.0: pow(-0.0, 0.5) = 0.0 as C's pow; sqrt(-0.0) = -0.0. (And -inf: inf, and NaN.)
@rule
def power_as_root(x: Tensor) -> Law:
    """pow(x, 0.5) = sqrt(x)"""
    return rewrites(binary("pow", x, 0.5), unary("sqrt", x))
