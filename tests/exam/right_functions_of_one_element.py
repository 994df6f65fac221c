"""Laws of functions of one element, all of them right."""

import typing

from satura.language import (
    DType,
    Law,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    equates,
    replaces,
    rewrites,
    rule,
    unary,
)


@rule
def complement_by_negation(x: Tensor) -> Law:
    """~x = -x - 1, on all integers: they wrap"""
    return rewrites(unary("bitnot", x), binary("sub", unary("neg", x), 1))


@rule
def ceil_by_floor(x: Tensor) -> Law:
    """-floor(-x) = ceil(x), also of zeros and of what is rounded to -0.0"""
    return equates(unary("neg", unary("floor", unary("neg", x))), unary("ceil", x))


@rule
def infinite_by_magnitude(x: Tensor) -> Law:
    """(abs(x) == inf) = isinf(x)"""
    return rewrites(binary("eq", unary("abs", x), float("inf")), unary("isinf", x))


@rule
def unequal_to_itself(x: Tensor) -> Law:
    """not(x == x) = isnan(x), on floats"""
    return rewrites(unary("not", binary("eq", x, x)), unary("isnan", x), x.type.dtype.is_float)


@rule
def sign_times_magnitude(x: Tensor) -> Law:
    """sign(x) * abs(x) = x, on integers, the least one included"""
    return rewrites(binary("mul", unary("sign", x), unary("abs", x)), x, x.type.dtype.is_integer)


@rule(reassociates=True)
def sigmoid_by_its_formula(x: Tensor) -> Law:
    """1 / (1 + exp(-x)) = sigmoid(x), up to rounding, on f32 and f64"""
    return rewrites(
        binary("div", 1.0, binary("add", 1.0, unary("exp", unary("neg", x)))),
        unary("sigmoid", x),
        (x.type.dtype == DType.F32) | (x.type.dtype == DType.F64),
    )


@attribute_function
def is_odd(f: UnaryFn) -> bool:
    """Whether f(-x) = -f(x)."""
    return f.name in ("sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "tanh", "erf")


@rule(reassociates=True)
def negate_after_odd(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = -f(x), up to rounding, for odd functions"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(f, x)), is_odd(f))


@attribute_function
def is_even(f: UnaryFn) -> bool:
    """Whether f(-x) = f(x)."""
    return f.name in ("cos", "cosh", "abs")


@rule(reassociates=True)
def sign_into_even(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = f(x), up to rounding, for even functions, on signed types: abs of 255 is 255"""
    return rewrites(unary(f, unary("neg", x)), unary(f, x), is_even(f), x.type.dtype.is_signed)


@rule
def relu_of_magnitude(x: Tensor) -> Law:
    """relu(abs(x)) = abs(x), on floats and unsigned integers: abs of the least one is negative"""
    return rewrites(
        unary("relu", unary("abs", x)),
        unary("abs", x),
        typing.cast(bool, x.type.dtype.is_float | ~x.type.dtype.is_signed),
    )


@rule
def complement_twice(x: Tensor) -> Law:
    """~~x = x"""
    return replaces(unary("bitnot", unary("bitnot", x)), x)
