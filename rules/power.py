"""Powers with a known exponent as products, quotients and square roots, which cost far less.

They hold up to rounding: pow rounds its result correctly at no exponent.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import Law, Varying, attribute_function, rewrites, rule
from satura.rewrite.language.terms import Term, binary, broadcast, reshape, scalar, select, unary
from satura.rewrite.types.attributes import Shape, refuse_unless
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import FLOATS, TensorType


@attribute_function
def float_like(type_: TensorType, number: float) -> Scalar:
    """`number` in the type's dtype, a float one."""
    refuse_unless(type_.dtype in FLOATS, f"{type_} has no floats")
    return Scalar.of(number, type_.dtype)


def _everywhere(number: float, x: Varying, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(scalar(float_like(x.type, number)), ones), s)


@rule(reassociates=True)
def pow_by_2(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, 2) = x * x, on floats"""
    return rewrites(binary("pow", x, _everywhere(2.0, x, ones, s)), binary("mul", x, x))


@rule(reassociates=True)
def pow_by_3(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, 3) = x * x * x, on floats"""
    square = binary("mul", x, x)
    return rewrites(binary("pow", x, _everywhere(3.0, x, ones, s)), binary("mul", square, x))


@rule(reassociates=True)
def pow_by_4(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, 4) = (x * x) * (x * x), on floats"""
    square = binary("mul", x, x)
    return rewrites(binary("pow", x, _everywhere(4.0, x, ones, s)), binary("mul", square, square))


@rule(reassociates=True)
def pow_by_minus_1(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, -1) = 1 / x, on floats"""
    return rewrites(
        binary("pow", x, _everywhere(-1.0, x, ones, s)),
        binary("div", _everywhere(1.0, x, ones, s), x),
    )


@rule(reassociates=True)
def pow_by_minus_2(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, -2) = (1 / x) * (1 / x), on floats; x * x would be 0 too early"""
    inverse = binary("div", _everywhere(1.0, x, ones, s), x)
    return rewrites(
        binary("pow", x, _everywhere(-2.0, x, ones, s)), binary("mul", inverse, inverse)
    )


@rule(reassociates=True)
def pow_by_half(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, 1/2) = sqrt(x + 0.0), or abs(x) where x is infinite, on floats: the square root alone
    is -0.0 of -0.0 and NaN of -inf"""
    root = unary("sqrt", binary("add", x, _everywhere(0.0, x, ones, s)))
    return rewrites(
        binary("pow", x, _everywhere(0.5, x, ones, s)),
        select(unary("isinf", x), unary("abs", x), root),
    )


@rule(reassociates=True)
def pow_by_minus_half(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, -1/2) = 1 / pow(x, 1/2), on floats"""
    root = binary("pow", x, _everywhere(0.5, x, ones, s))
    return rewrites(
        binary("pow", x, _everywhere(-0.5, x, ones, s)),
        binary("div", _everywhere(1.0, x, ones, s), root),
    )


@rule(reassociates=True)
def pow_by_3_quarters(x: Varying, ones: Shape, s: Shape) -> Law:
    """pow(x, 3/4) = r * sqrt(r) with r = sqrt(x), or abs(x) where x is infinite, on floats; of
    -0.0 both are -0.0, whose product is 0.0"""
    root = unary("sqrt", x)
    return rewrites(
        binary("pow", x, _everywhere(0.75, x, ones, s)),
        select(unary("isinf", x), unary("abs", x), binary("mul", root, unary("sqrt", root))),
    )
