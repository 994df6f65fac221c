"""Laws of inverse functions, signs and zeros, all of them wrong."""

import numpy as np

from satura.language import (
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    Term,
    attribute_function,
    binary,
    broadcast,
    cast,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


def full(c: Term | Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


# x = f32 2: asin(2) is NaN, and so is its sine; the right side is 2.
@rule(reassociates=True)
def sine_of_arcsine(x: Tensor) -> Law:
    """sin(asin(x)) = x up to rounding"""
    return rewrites(unary("sin", unary("asin", x)), x)


# x = f32 2: tan(2) = -2.185, whose arc is 2 - pi = -1.1416; the right side is 2.
@rule(reassociates=True)
def arc_of_tangent(x: Tensor) -> Law:
    """atan(tan(x)) = x up to rounding"""
    return rewrites(unary("atan", unary("tan", x)), x)


@attribute_function
def times(a: Scalar, b: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        return Scalar.of(float(a.value) * float(b.value), a.dtype)


# x = f32 -3, a = 2, b = 0.5: pow(9, 0.5) = 3; pow(-3, 1) = -3.
@rule(reassociates=True)
def power_of_power(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """pow(pow(x, a), b) = pow(x, a * b) on floats, up to rounding"""
    return rewrites(
        binary("pow", binary("pow", x, full(a, ones, s)), full(b, ones, s)),
        binary("pow", x, full(scalar(times(a, b)), ones, s)),
        x.type.dtype.is_float,
    )


# x = f32 -1: -1 - -1 = 0.0; -1 * 0.0 = -0.0. (NaN and infinities agree.)
@rule
def difference_with_itself(x: Tensor) -> Law:
    """x - x = x * 0: both are NaN for NaN and infinities, and else 0"""
    return rewrites(binary("sub", x, x), binary("mul", x, 0))


# x = f32 -inf: relu is 0; -inf * 0 = NaN. Also x = -1: 0.0, and -1 * 0 = -0.0.
@rule
def relu_by_mask(x: Tensor, d: DType) -> Law:
    """x * cast(0 < x, d) = relu(x)"""
    return rewrites(binary("mul", x, cast(binary("lt", 0, x), d)), unary("relu", x))


@attribute_function
def is_not_negative(c: Scalar) -> bool:
    return c.dtype.is_float and float(c.value) >= 0 and np.isfinite(float(c.value))


# x = f32 -inf, c = 0: relu(-inf * 0) = relu(NaN) = NaN; relu(-inf) * 0 = 0. (c has to be above 0.)
@rule
def relu_before_scaling(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """relu(x * c) = relu(x) * c, for a finite c that is not negative, on floats"""
    return rewrites(
        unary("relu", binary("mul", x, full(c, ones, s))),
        binary("mul", unary("relu", x), full(c, ones, s)),
        is_not_negative(c),
    )


# x = u8 1: -1 wraps to 255, max(1, 255) = 255; abs(1) = 1. (Right on floats and signed integers.)
@rule
def absolute_from_max(x: Tensor) -> Law:
    """max(x, -x) = abs(x)"""
    return rewrites(binary("max", x, unary("neg", x)), unary("abs", x))


# x = i8 -128: abs(x) = -128, -128 / -128 = 1; sign(-128) = -1.
@rule
def sign_as_quotient(x: Tensor) -> Law:
    """x / abs(x) = sign(x) on integers, where 0 / 0 is 0"""
    return rewrites(binary("div", x, unary("abs", x)), unary("sign", x), x.type.dtype.is_integer)
