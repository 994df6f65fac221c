"""Laws of reductions and the functions around them, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    ReduceFn,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


@attribute_function
def ones_for(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@attribute_function
def repeats(t: TensorType, s: Shape, axes: Axes) -> bool:
    return all(t.shape[axis] == 1 for axis in axes.indices)


# x = i32[1] = [5], s = [0], axes [0]: left the empty max, -2^31, right 5.
@rule
def max_of_repeated(x: Tensor, s: Shape, axes: Axes) -> Law:
    """max(broadcast(x, s), axes) = broadcast(x, ...), when x is repeated along the axes (0
    times?)"""
    left = reduce("max", broadcast(x, s), axes)
    return rewrites(left, broadcast(x, Shape(left.type.shape)), repeats(x.type, s, axes))


# i8: x = [127, 0], c = 1: left max(-128, 1) = 1; right 127 + 1 = -128.
@rule
def max_of_shifted(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """max(x + c everywhere) = max(x) + c everywhere (integers wrap)"""
    largest = reduce("max", x, axes)
    return rewrites(
        reduce("max", binary("add", x, broadcast(reshape(c, ones), s)), axes),
        binary("add", largest, broadcast(reshape(c, ones), Shape(largest.type.shape))),
    )


@attribute_function
def not_negative(c: Scalar) -> bool:
    return c.dtype in (DType.F32, DType.F64) and bool(typing.cast(float, c.value) >= 0)


# c = 0.0, x = f32[0]: left the empty max, -inf; right -inf * 0 = NaN.
@rule
def max_of_scaled(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """max(x * c everywhere) = max(x) * c everywhere, for a float c >= 0 (it has to be > 0)"""
    largest = reduce("max", x, axes)
    return rewrites(
        reduce("max", binary("mul", x, broadcast(reshape(c, ones), s)), axes),
        binary("mul", largest, broadcast(reshape(c, ones), Shape(largest.type.shape))),
        not_negative(c),
    )


# x = f32[2] = [-1, 4]: left sqrt(4) = 2, right max(NaN, 2) = NaN.
@rule
def root_of_max(x: Tensor, axes: Axes) -> Law:
    """sqrt(max(x)) = max(sqrt(x)): the root is monotone (where it is defined)"""
    return rewrites(unary("sqrt", reduce("max", x, axes)), reduce("max", unary("sqrt", x), axes))


# i32, x = [1, 1], n = 2: left 2 / 2 = 1; right 0 + 0 = 0.
@rule(reassociates=True)
def mean_of_shares(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """sum(x) / c everywhere = sum(x / c everywhere), up to rounding (integers truncate)"""
    return rewrites(
        binary("div", reduce("sum", x, axes), broadcast(reshape(c, ones), s)),
        reduce("sum", binary("div", x, broadcast(reshape(c, ones), Shape(x.type.shape))), axes),
    )


# x = bool[256] all true, d = u8: the sum is 256 mod 256 = 0, false; right true.
@rule
def count_is_any(x: Tensor, d: DType, axes: Axes) -> Law:
    """bool(sum(cast(x, d))) = any(x), for bools x and an integer type d (the count may wrap)"""
    return rewrites(
        cast(reduce("sum", cast(x, d), axes), DType.BOOL),
        reduce("max", x, axes),
        x.type.dtype == DType.BOOL,
        (d == DType.U8) | (d == DType.I8),
    )


@attribute_function
def is_unit(t: TensorType, axis: Axis) -> bool:
    return t.shape[axis.index] == 1


# x = i32[1] = [7], s = [2], last = 1: left 1, right 0.
@rule
def arg_of_repeated(f: ReduceFn, x: Tensor, s: Shape, axis: Axis, last: Count) -> Law:
    """arg f(broadcast(x)) = 0, when x is repeated along the axis (the last of equals is n - 1)"""
    left = arg_reduce(f, broadcast(x, s), axis, last)
    return rewrites(
        left,
        broadcast(
            reshape(scalar(Scalar.of(0, DType.I64)), ones_for(x.type)), Shape(left.type.shape)
        ),
        is_unit(x.type, axis),
    )


# x = [T, F]: left not true = F; right any(F, T) = T.
@rule
def not_any(x: Tensor, axes: Axes) -> Law:
    """not(any(x)) = any(not(x)) (it is all(not(x)))"""
    return rewrites(unary("not", reduce("max", x, axes)), reduce("max", unary("not", x), axes))


@attribute_function
def has_both(t: TensorType, a: Axes, b: Axes) -> bool:
    return not set(a.indices) & set(b.indices)


# x = i32[2,2] = [[1,5],[4,2]], a = [0], b = [1]: left min(max(1,4), max(5,2)) = min(4,5) = 4; right
# max(min(1,5), min(4,2)) = max(1,2) = 2.
@rule
def exchange_max_and_min(x: Tensor, a: Axes, b: Axes) -> Law:
    """min(max(x, a), b) = max(min(x, b), a), for axes that are disjoint"""
    return rewrites(
        reduce("min", reduce("max", x, a), b),
        reduce("max", reduce("min", x, b), a),
        has_both(x.type, a, b),
    )
