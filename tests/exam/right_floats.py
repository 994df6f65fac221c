"""Laws of floats, bit for bit and up to rounding, all of them right."""

import typing

from satura.language import (
    Approximate,
    BinaryFn,
    Law,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    refuse_unless,
    rewrites,
    rule,
    unary,
)


@attribute_function
def forgets_two_signs(f: BinaryFn, type_: TensorType) -> bool:
    """Whether f(-x, -y) is f(x, y): the quotient of integers wraps for the least."""
    return f.name == "mul" or (f.name == "div" and type_.dtype.is_float)


@rule
def drop_two_signs(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(-x, -y) = f(x, y) for products, and quotients of floats"""
    return rewrites(
        binary(f, unary("neg", x), unary("neg", y)),
        binary(f, x, y),
        forgets_two_signs(f, x.type),
    )


@attribute_function
def reflected(f: UnaryFn) -> UnaryFn:
    """g such that f(-x) = -g(x), zeros and their signs included."""
    table = {"floor": "ceil", "ceil": "floor", "round": "round"}
    refuse_unless(f.name in table, f"{f} is no rounding")
    return UnaryFn(table[f.name])


@rule
def round_negated(f: UnaryFn, x: Tensor) -> Law:
    """floor(-x) = -ceil(x), ceil(-x) = -floor(x) and round(-x) = -round(x)"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(reflected(f), x)))


@rule(reassociates=True)
def complement_of_sigmoid(x: Tensor) -> Law:
    """1 - sigmoid(x) = sigmoid(-x) up to rounding"""
    return rewrites(binary("sub", 1.0, unary("sigmoid", x)), unary("sigmoid", unary("neg", x)))


@rule(reassociates=True)
def tanh_from_sigmoid(x: Tensor) -> Law:
    """sigmoid(x * 2) * 2 - 1 = tanh(x) up to rounding"""
    doubled = unary("sigmoid", binary("mul", x, 2.0))
    return rewrites(binary("sub", binary("mul", doubled, 2.0), 1.0), unary("tanh", x))


@rule(reassociates=True)
def exponential_of_negation(x: Tensor) -> Law:
    """exp(-x) = 1 / exp(x) up to rounding"""
    return rewrites(unary("exp", unary("neg", x)), binary("div", 1.0, unary("exp", x)))


@rule(reassociates=True)
def divide_by_quotient(x: Approximate, y: Tensor, z: Tensor) -> Law:
    """x / (y / z) = x * (z / y) on floats, up to rounding, for x that are rounded already"""
    return rewrites(
        binary("div", x, binary("div", y, z)),
        binary("mul", x, binary("div", z, y)),
        x.type.dtype.is_float,
    )


@rule(reassociates=True)
def reciprocal_root(x: Tensor) -> Law:
    """1 / sqrt(abs(x)) = sqrt(1 / abs(x)) up to rounding; without abs -inf would tell them apart"""
    size = unary("abs", x)
    return rewrites(
        binary("div", 1.0, unary("sqrt", size)), unary("sqrt", binary("div", 1.0, size))
    )


@rule
def absolute_of_product(x: Tensor, y: Tensor) -> Law:
    """abs(x) * abs(y) = abs(x * y) on floats, and on unsigned integers"""
    return rewrites(
        binary("mul", unary("abs", x), unary("abs", y)),
        unary("abs", binary("mul", x, y)),
        typing.cast(bool, x.type.dtype.is_float | ~x.type.dtype.is_signed),
    )


@attribute_function
def chooses(f: BinaryFn) -> bool:
    return f.name in ("max", "min")


@rule
def nan_of_chosen(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """isnan(f(x, y)) = isnan(x) or isnan(y) for max and min, in which NaN wins"""
    return rewrites(
        unary("isnan", binary(f, x, y)),
        binary("or", unary("isnan", x), unary("isnan", y)),
        chooses(f),
    )
