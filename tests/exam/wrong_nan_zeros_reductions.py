"""Laws of NaN, infinities, zeros and reductions, all of them wrong."""

from __future__ import annotations

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Elementwise,
    Law,
    Operands,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Term,
    Varying,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    family,
    known_at_least,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


@attribute_function
def ones(t: TensorType) -> Shape:
    """A shape of as many 1 as t has axes."""
    return Shape((1,) * t.rank)


@attribute_function
def full(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


def everywhere(value: Scalar, like: TensorType) -> Term:
    """The scalar `value` repeated to the type `like`."""
    return broadcast(reshape(scalar(value), ones(like)), full(like))


# x = NaN: x < y is false and y <= x is false, so the right side is true.
@rule
def less_as_not_at_least(x: Tensor, y: Tensor) -> Law:
    """x < y = not(y <= x)"""
    return rewrites(binary("lt", x, y), unary("not", binary("le", y, x)))


# x = 1, y = NaN: the max is NaN, y < x is false, and the select takes y = NaN; x = NaN, y = 1: the
# select takes y = 1. Integers and floats without NaN: x = 0.0, y = -0.0: the max is 0.0, the select
# takes y = -0.0.
@rule
def select_the_larger(x: Tensor, y: Tensor) -> Law:
    """select(y < x, x, y) = max(x, y)"""
    return rewrites(select(binary("lt", y, x), x, y), binary("max", x, y))


# x = 0.0, y = -0.0: they are equal, and the left side takes x = 0.0.
@rule
def select_of_equals(x: Tensor, y: Tensor) -> Law:
    """select(x == y, x, y) = y"""
    return rewrites(select(binary("eq", x, y), x, y), y)


# c false, x = inf: 0 * inf = NaN; the select gives 0.0. (x = -1: -0.0.)
@rule
def mask_as_select(c: Tensor, x: Tensor) -> Law:
    """cast(c) * x = select(c, x, 0), for bools c"""
    return rewrites(
        binary("mul", cast(c, x.type.dtype), x), select(c, x, 0), c.type.dtype == DType.BOOL
    )


# x = inf, y = -inf: the sum is NaN, and neither x nor y is.
@rule
def nan_of_sum(x: Tensor, y: Tensor) -> Law:
    """isnan(x + y) = isnan(x) or isnan(y)"""
    return rewrites(
        unary("isnan", binary("add", x, y)), binary("or", unary("isnan", x), unary("isnan", y))
    )


# x = 1, lo = 3, hi = 2: min(max(1, 3), 2) = 2; max(min(1, 2), 3) = 3.
@rule
def clip_in_other_order(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """min(max(x, a), b) = max(min(x, b), a)"""
    low, high = broadcast(reshape(a, u), s), broadcast(reshape(b, u), s)
    return rewrites(
        binary("min", binary("max", x, low), high), binary("max", binary("min", x, high), low)
    )


# x = 1000, y = -1000 in f32: exp(1000) * exp(-1000) = inf * 0 = NaN; exp(0) = 1.
@rule(reassociates=True)
def product_of_exps(x: Tensor, y: Tensor) -> Law:
    """exp(x) * exp(y) = exp(x + y)"""
    return rewrites(
        binary("mul", unary("exp", x), unary("exp", y)), unary("exp", binary("add", x, y))
    )


@attribute_function
def axis_of(a: Axis) -> Axes:
    return Axes((a.index,))


@attribute_function
def along_axis(t: TensorType, axis: Axis) -> Scalar:
    refuse_unless(
        isinstance(t.shape[axis.index], int) and typing.cast(int, t.shape[axis.index]) > 0,
        "open or empty",
    )
    return Scalar.of(t.shape[axis.index], DType.I64)


@attribute_function
def has_elements(t: TensorType, axis: Axis) -> bool:
    return known_at_least(t.shape[axis.index], 1)


# x = f32[1] = NaN, y = f32[1] = 1: of the concatenation the NaN at 0 wins; 1 <= NaN is false, and
# so the right side is 1.
@rule
def place_of_max_in_concat(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """argmax(concat(x, y)) = argmax(x) where max(y) <= max(x), else n + argmax(y)"""
    zero = Count(0)
    first, second = arg_reduce("max", x, axis, zero), arg_reduce("max", y, axis, zero)
    return rewrites(
        arg_reduce("max", concat(x, y, axis), axis, zero),
        select(
            binary("le", reduce("max", y, axis_of(axis)), reduce("max", x, axis_of(axis))),
            first,
            binary("add", second, everywhere(along_axis(x.type, axis), first.type)),
        ),
        has_elements(x.type, axis) & has_elements(y.type, axis),
    )


# x = -2, -1: the largest is at 1; relu gives 0, 0, whose first is at 0.
@rule
def place_of_max_of_relu(x: Tensor, axis: Axis, last: Count) -> Law:
    """argmax(relu(x)) = argmax(x): relu does not change the order"""
    return rewrites(
        arg_reduce("max", unary("relu", x), axis, last), arg_reduce("max", x, axis, last)
    )


@attribute_function
def is_among(axis: Axis, a: Axes) -> bool:
    return axis.index in a.indices


# x = f32[1] = 1e8, y = f32[2] = -1e8, 1: (1e8 - 1e8) + 1 = 1; 1e8 + (-1e8 + 1) = 1e8 - 99999999
# rounded to -1e8 … = 0.
@rule
def sum_of_concat(x: Tensor, y: Tensor, axis: Axis, a: Axes) -> Law:
    """sum(concat(x, y, axis), a) = sum(x, a) + sum(y, a), when the axis is among a"""
    return rewrites(
        reduce("sum", concat(x, y, axis), a),
        binary("add", reduce("sum", x, a), reduce("sum", y, a)),
        is_among(axis, a),
    )


def largest(x: Tensor, a: Axes) -> Term:
    return reduce("max", x, a)


# f = neg in the unary rule: max(-1, -2) = -1, and -max(1, 2) = -2; sub in the binary one: x = 0, 0
# and y = 1, 2: max(-1, -2) = -1, 0 - 2 = -2; a cast: max(cast(255, 1) to i8 = -1, 1) = 1, cast(255)
# = -1; a select by the max of its conditions.
@family
def extremum_out_of(f: Elementwise, xs: Operands[Varying], a: Axes) -> Law:
    """max(f(x…), a) = f(max(x, a)…), for all f: what is largest stays so"""
    return rewrites(reduce("max", f(xs), a), f(xs.each(largest, a)))
