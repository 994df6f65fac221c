"""Laws of comparisons, selects and bounds, all of them right."""

import typing

from satura.language import (
    BinaryFn,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    both,
    broadcast,
    replaces,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


@attribute_function
def is_order(f: BinaryFn) -> bool:
    return f.name in ("lt", "le")


@attribute_function
def above_zero(c: Scalar) -> bool:
    return c.type.dtype is not DType.BOOL and not c.type.dtype.is_narrow and float(c.value) > 0


@attribute_function
def less(a: Scalar, b: Scalar) -> bool:
    return (
        a.type == b.type
        and a.type.dtype is not DType.BOOL
        and bool(typing.cast(float, a.value) < typing.cast(float, b.value))
    )


@attribute_function
def above_zero_up_to_one(c: Scalar) -> bool:
    return c.type.dtype.is_float and 0 < float(c.value) <= 1


@rule
def order_or_equal(x: Tensor, y: Tensor) -> Law:
    """x < y or x == y = x <= y"""
    return rewrites(binary("or", binary("lt", x, y), binary("eq", x, y)), binary("le", x, y))


@rule
def between_themselves(x: Tensor, y: Tensor) -> Law:
    """x <= y and y <= x = x == y"""
    return rewrites(binary("and", binary("le", x, y), binary("le", y, x)), binary("eq", x, y))


@rule
def negate_order_of_floats(x: Tensor, y: Tensor) -> Law:
    """not (x < y) = y <= x or isnan(x) or isnan(y), on floats"""
    return rewrites(
        unary("not", binary("lt", x, y)),
        binary("or", binary("le", y, x), binary("or", unary("isnan", x), unary("isnan", y))),
        x.type.dtype.is_float,
    )


@rule
def order_of_negated_floats(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(-x, -y) = f(y, x), for < and <= of floats"""
    return rewrites(
        binary(f, unary("neg", x), unary("neg", y)),
        binary(f, y, x),
        is_order(f),
        x.type.dtype.is_float,
    )


@rule
def bound_inside_relu(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """min(relu(x), c) = relu(min(x, c)), where c > 0, both ways"""
    k = broadcast(reshape(c, ones), s)
    return both(
        rewrites(
            binary("min", unary("relu", x), k), unary("relu", binary("min", x, k)), above_zero(c)
        ),
        rewrites(
            unary("relu", binary("min", x, k)), binary("min", unary("relu", x), k), above_zero(c)
        ),
    )


@rule
def exchange_ordered_bounds(x: Tensor, lo: Scalar, hi: Scalar, ones: Shape, s: Shape) -> Law:
    """min(max(x, lo), hi) = max(min(x, hi), lo), where lo < hi"""
    low, high = broadcast(reshape(lo, ones), s), broadcast(reshape(hi, ones), s)
    return rewrites(
        binary("min", binary("max", x, low), high),
        binary("max", binary("min", x, high), low),
        less(lo, hi),
    )


@rule
def function_into_select(f: BinaryFn, c: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """f(select(c, x, y), z) = select(c, f(x, z), f(y, z)), for any function of two"""
    return rewrites(binary(f, select(c, x, y), z), select(c, binary(f, x, z), binary(f, y, z)))


@rule
def same_condition_again(c: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """select(c, select(c, x, y), z) = select(c, x, z)"""
    return replaces(select(c, select(c, x, y), z), select(c, x, z))


@rule
def select_as_and(c: Tensor, d: Tensor) -> Law:
    """select(c, d, false) = c and d"""
    return rewrites(select(c, d, False), binary("and", c, d))


@rule
def both_conditions(c: Tensor, d: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, select(d, x, y), y) = select(c and d, x, y)"""
    return rewrites(select(c, select(d, x, y), y), select(binary("and", c, d), x, y))


@rule
def leaky_relu_by_max(x: Tensor, a: Scalar, ones: Shape, s: Shape) -> Law:
    """select(x < 0, x * a, x) = max(x, x * a), for 0 < a <= 1"""
    scaled = binary("mul", x, broadcast(reshape(a, ones), s))
    return rewrites(
        select(binary("lt", x, 0.0), scaled, x), binary("max", x, scaled), above_zero_up_to_one(a)
    )


@rule
def relu_from_select(x: Tensor) -> Law:
    """select(x <= 0, 0, x) = relu(x)"""
    return rewrites(select(binary("le", x, 0), 0, x), unary("relu", x))
