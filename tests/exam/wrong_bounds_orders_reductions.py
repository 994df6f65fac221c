"""Laws of bounds, orders and reductions, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Count,
    Law,
    ReduceFn,
    Scalar,
    Shape,
    Tensor,
    Term,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    reduce,
    reshape,
    rewrites,
    rule,
    unary,
)


def full(c: Term | Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


# x = i8 0, a = 5, b = 1: min(max(0, 5), 1) = 1; max(min(0, 1), 5) = 5. (a <= b is missing.)
@rule
def exchange_bounds(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """min(max(x, a), b) = max(min(x, b), a) for constant bounds"""
    return rewrites(
        binary("min", binary("max", x, full(a, ones, s)), full(b, ones, s)),
        binary("max", binary("min", x, full(b, ones, s)), full(a, ones, s)),
    )


# x = f32 NaN, y = 1, z = 2: min(NaN, 1) = NaN < 2 is false; 1 < 2 is true. (Right for max and
# `and`.)
@rule
def smaller_of_two_below(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """min(x, y) < z is x < z or y < z"""
    return rewrites(
        binary("lt", binary("min", x, y), z),
        binary("or", binary("lt", x, z), binary("lt", y, z)),
    )


# x = i8 100, y = 0, z = 100: max(100 + 100 = -56, 100) = 100; max(100, 0) + 100 = -56.
@rule
def add_after_max(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """max(x + z, y + z) = max(x, y) + z on integers, which are not rounded"""
    return rewrites(
        binary("max", binary("add", x, z), binary("add", y, z)),
        binary("add", binary("max", x, y), z),
        x.type.dtype.is_integer,
    )


@attribute_function
def is_not_zero(c: Scalar) -> bool:
    return c.dtype.is_float and float(c.value) != 0


# x = f32 [1, 2], c = -1, axes [0]: max(-1, -2) = -1; max(1, 2) * -1 = -2.
@rule
def scale_after_max(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """max(x * c everywhere, axes) = max(x, axes) * c, on floats, when c is not 0"""
    largest = reduce("max", x, axes)
    return rewrites(
        reduce("max", binary("mul", x, full(c, ones, s)), axes),
        binary("mul", largest, full(c, ones, Shape(largest.type.shape))),
        is_not_zero(c),
    )


@attribute_function
def are_disjoint(a: Axes, b: Axes) -> bool:
    return not set(a.indices) & set(b.indices)


# x = i8 [[0, 1], [1, 0]], a = [1], b = [0]: max of the rows' minima is 0; min of the columns'
# maxima 1.
@rule
def minimax(x: Tensor, a: Axes, b: Axes) -> Law:
    """max(min(x, a), b) = min(max(x, b), a), over different axes"""
    return rewrites(
        reduce("max", reduce("min", x, a), b),
        reduce("min", reduce("max", x, b), a),
        are_disjoint(a, b),
    )


@attribute_function
def union(a: Axes, b: Axes) -> Axes:
    return Axes(tuple(sorted({*a.indices, *b.indices})))


# x = f16 [[2048, 0], [1, 1]], a = [0], b = [1]: 2048 + 1 is rounded to 2048, and 2048 + 1 once
# more; in one sum, which runs in f32, 2050. So with f32 [[1e8, 1], [-1e8, 0]]: 1.0, and in one
# order 0.0.
@rule
def merge_sums(x: Tensor, a: Axes, b: Axes) -> Law:
    """sum(sum(x, a), b) = sum(x, a and b)"""
    return rewrites(reduce("sum", reduce("sum", x, a), b), reduce("sum", x, union(a, b)))


@attribute_function
def with_ones(s: Shape, axes: Axes) -> Shape:
    return Shape(tuple(1 if i in axes.indices else n for i, n in enumerate(s.dims)))


# f = max, x = f32[1] = [3], s = [0], axes [0]: the max of nothing is -inf; the right side is [3].
@rule
def reduce_before_repeating(x: Tensor, f: ReduceFn, s: Shape, axes: Axes) -> Law:
    """f(broadcast(x, s), axes) = broadcast(f(x, axes), s with 1 at axes), for max and min"""
    return rewrites(
        reduce(f, broadcast(x, s), axes),
        broadcast(reduce(f, x, axes), with_ones(s, axes)),
        (f.name == "max") | (f.name == "min"),
    )


# x = f32 [-2, -1], axis 0, first: relu gives [0, 0], of which the first is at 0; the max of x is at
# 1.
@rule
def place_of_max_before_relu(x: Tensor, axis: Axis, last: Count) -> Law:
    """argmax(relu(x)) = argmax(x), as relu is monotone"""
    return rewrites(
        arg_reduce("max", unary("relu", x), axis, last), arg_reduce("max", x, axis, last)
    )
