"""Laws of comparisons, choices and bounds, all of them wrong."""

import typing

from satura.language import (
    Law,
    Scalar,
    Shape,
    Tensor,
    binary,
    broadcast,
    cast,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


# f32[1] x = [NaN], y = [0.0]: NaN < 0 is false, so the left side is true; 0 <= NaN is false.
@rule
def negated_less(x: Tensor, y: Tensor) -> Law:
    """not(x < y) = y <= x, for signed numbers"""
    return rewrites(unary("not", binary("lt", x, y)), binary("le", y, x), x.type.dtype.is_signed)


# f32[1] x = y = [inf]: inf == inf is true; inf - inf is NaN, NaN == 0 is false.
@rule
def equality_by_difference(x: Tensor, y: Tensor) -> Law:
    """(x == y) = (x - y == 0), for numbers"""
    return rewrites(
        binary("eq", x, y),
        binary("eq", binary("sub", x, y), 0),
        x.type.dtype.is_float | x.type.dtype.is_integer,
    )


# i8[1] x = [-128], y = [1]: -129 wraps to 127, 127 < 0 is false; -128 < 1 is true.
@rule
def order_from_difference(x: Tensor, y: Tensor) -> Law:
    """(x - y < 0) = (x < y), for signed integers"""
    return rewrites(
        binary("lt", binary("sub", x, y), 0),
        binary("lt", x, y),
        x.type.dtype.is_integer & x.type.dtype.is_signed,
    )


# f32[1] x = [0.0], a = 2.0, b = 1.0: min(max(0, 2), 1) = 1; max(min(0, 1), 2) = 2.
@rule
def exchange_bounds(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """min(max(x, a everywhere), b everywhere) = max(min(x, b everywhere), a everywhere)"""
    low, high = broadcast(reshape(a, ones), s), broadcast(reshape(b, ones), s)
    return rewrites(
        binary("min", binary("max", x, low), high), binary("max", binary("min", x, high), low)
    )


# f32[1] x = [0.0], y = [NaN]: max is NaN; 0 < NaN is false, so the right side is 0.0.
@rule
def larger_by_choice(x: Tensor, y: Tensor) -> Law:
    """max(x, y) = y where x < y, else x"""
    return rewrites(binary("max", x, y), select(binary("lt", x, y), y, x))


# f32[1] c = [true], x = [1.0], y = [inf]: the left side is 1.0; 1 * 1 + 0 * inf is NaN.
@rule
def blend(c: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, x, y) = c * x + (not c) * y, for numbers"""
    t = x.type.dtype
    return rewrites(
        select(c, x, y),
        binary(
            "add",
            binary("mul", cast(c, t), x),
            binary("mul", cast(unary("not", c), t), y),
        ),
        t.is_float | t.is_integer,
        typing.cast(bool, ~t.is_narrow),
    )


# f32[1] x = [0.0], c = -1.0: relu(min(0, -1)) = 0.0; min(relu(0), -1) = -1.0.
@rule
def bound_out_of_relu(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """relu(min(x, c everywhere)) = min(relu(x), c everywhere)"""
    bound = broadcast(reshape(c, ones), s)
    return rewrites(unary("relu", binary("min", x, bound)), binary("min", unary("relu", x), bound))


# i8[1] x = [-128], y = [0]: max is 0, negated 0; neg(-128) wraps to -128, min(-128, 0) = -128.
@rule
def negated_maximum(x: Tensor, y: Tensor) -> Law:
    """neg(max(x, y)) = min(neg(x), neg(y)), where there are negative numbers"""
    return rewrites(
        unary("neg", binary("max", x, y)),
        binary("min", unary("neg", x), unary("neg", y)),
        x.type.dtype.is_signed,
    )


# f32[1] x = [1.0], y = [NaN], z = [5.0]: 1 < 5, so the left side is true; max(NaN, 5) is NaN, and
# 1 < NaN is false.
@rule
def below_either(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x < y or x < z) = x < max(y, z)"""
    return rewrites(
        binary("or", binary("lt", x, y), binary("lt", x, z)),
        binary("lt", x, binary("max", y, z)),
    )


# f32[1] x = [inf], y = [-inf]: their sum is NaN, so the left side is true; neither is NaN.
@rule
def nan_of_sum(x: Tensor, y: Tensor) -> Law:
    """isnan(x + y) = isnan(x) or isnan(y)"""
    return rewrites(
        unary("isnan", binary("add", x, y)),
        binary("or", unary("isnan", x), unary("isnan", y)),
    )
