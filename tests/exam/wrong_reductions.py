"""Laws of reductions, all of them wrong."""

import typing

import numpy as np

from satura.language import (
    FLOATS,
    Axes,
    Axis,
    BinaryFn,
    DType,
    Law,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    pad,
    reduce,
    reshape,
    rewrites,
    rule,
    transpose,
    unary,
)


@attribute_function
def is_monotone(f: UnaryFn) -> bool:
    return f.name in ("exp", "relu", "floor", "ceil", "round", "tanh")


# f = exp, x = f32[0], axes = [0]: the max of no elements is -inf on the left; exp(-inf) = 0.0.
@rule
def monotone_out_of_max(f: UnaryFn, x: Tensor, axes: Axes) -> Law:
    """max(f(x)) = f(max(x)), for a monotone f"""
    return rewrites(
        reduce("max", unary(f, x), axes), unary(f, reduce("max", x, axes)), is_monotone(f)
    )


@attribute_function
def are_repeated(x: TensorType, axes: Axes) -> bool:
    """Whether all axes have extent 1 before the broadcast."""
    return all(x.shape[axis] == 1 for axis in axes.indices)


@attribute_function
def selects(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


# f = max, x = f32[1] [5], s = [0], axes = [0]: -inf of no elements on the left; 5 on the right.
@rule
def reduce_repeated(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """f(broadcast(x, s), axes) = broadcast(x, s with 1 at the axes), for max and min, when only
    axes that are repeated are reduced"""
    left = reduce(f, broadcast(x, s), axes)
    return rewrites(
        left, broadcast(x, Shape(left.type.shape)), selects(f), are_repeated(x.type, axes)
    )


@attribute_function
def is_not_negative(c: Scalar) -> bool:
    return c.dtype in FLOATS and bool(np.isfinite(float(c.value))) and float(c.value) >= 0


# c = 0.0, x = [-inf, 1] (f32): -inf * 0 is NaN, which is the max; max(x) * 0 = 0.
@rule
def scale_out_of_max(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """max(x * c) = max(x) * c, for finite floats c >= 0"""
    most = reduce("max", x, axes)
    return rewrites(
        reduce("max", binary("mul", x, broadcast(reshape(c, ones), s)), axes),
        binary("mul", most, broadcast(reshape(c, ones), Shape(most.type.shape))),
        is_not_negative(c),
    )


@attribute_function
def joined(a: Axes, b: Axes) -> Axes:
    return Axes(tuple(sorted({*a.indices, *b.indices})))


# x = i32 [[1, 4], [4, 1]], a = [0], b = [1]: the columns' mins are 1 and 1, their max is 1; the
# rows' maxes are 4 and 4, their min is 4.
@rule
def exchange_extremes(x: Tensor, a: Axes, b: Axes) -> Law:
    """max(min(x, a), b) = min(max(x, b), a)"""
    return rewrites(reduce("max", reduce("min", x, a), b), reduce("min", reduce("max", x, b), a))


# c of 256 elements that are all true: the sum in i8 wraps to 0 (of 128 to -128), and 0 < 0 is
# false; the max is true.
@rule
def any_by_counting(c: Tensor, axes: Axes) -> Law:
    """0 < sum(i8(bool(c))) = max(bool(c))"""
    return rewrites(
        binary("lt", 0, reduce("sum", cast(cast(c, DType.BOOL), DType.I8), axes)),
        reduce("max", cast(c, DType.BOOL), axes),
    )


@attribute_function
def are_wider(x: TensorType, t: DType) -> bool:
    """Whether t holds all integers of x."""
    if not (x.dtype.is_integer and t.is_integer) or t.is_narrow or x.dtype.is_narrow:
        return False
    return t.bounds[0] <= x.dtype.bounds[0] and t.bounds[1] >= x.dtype.bounds[1]


# i8 to i32, x = [100, 100]: the sum wraps to -56 in i8; in i32 it is 200.
@rule
def widen_before_sum(x: Tensor, t: DType, axes: Axes) -> Law:
    """cast(sum(x), t) = sum(cast(x, t)), when t holds all integers of x's dtype"""
    return rewrites(
        cast(reduce("sum", x, axes), t), reduce("sum", cast(x, t), axes), are_wider(x.type, t)
    )


@attribute_function
def is_padded_with_zero(c: Scalar) -> bool:
    return c.value == 0 and not any(c.bits)


@attribute_function
def kept(p: Padding, axes: Axes) -> Padding:
    """p without what it adds along the axes."""
    lo = tuple(0 if i in axes.indices else n for i, n in enumerate(p.lo))
    hi = tuple(0 if i in axes.indices else n for i, n in enumerate(p.hi))
    return Padding(lo, hi)


# f = max, x = i32 [-1], p = [1:0], axes = [0], c = 0: max(0, -1) = 0 on the left, -1 on the right.
# (f = prod: 0 and -1.) Only sums have the identity 0.
@rule
def pad_out_of_reduce(f: ReduceFn, x: Tensor, c: Scalar, p: Padding, axes: Axes) -> Law:
    """f(pad(x, 0, p), axes) = pad(f(x, axes), 0, p but along the axes)"""
    return rewrites(
        reduce(f, pad(x, c, p), axes),
        pad(reduce(f, x, axes), c, kept(p, axes)),
        is_padded_with_zero(c) & x.type.dtype.is_integer,
    )


@attribute_function
def moved(axes: Axes, p: Perm) -> Axes:
    """The axes of x that are at `axes` after the transpose by p."""
    return Axes(tuple(sorted(p.inverse.order[axis] for axis in axes.indices)))


# x = f32[1, 2, 3], p = [1, 2, 0], axes = [0]: axis 0 of the transpose is axis 1 of x; p.inverse[0]
# is 2, so the right side reduces axis 2 of x, and has another shape. (Right for all p of rank 2.)
@rule
def transpose_out_of_max(x: Tensor, p: Perm, axes: Axes) -> Law:
    """max(transpose(x, p), axes) = transpose(max(x, p(axes)), p)"""
    return rewrites(
        reduce("max", transpose(x, p), axes),
        transpose(reduce("max", x, moved(axes, p)), p),
    )


@attribute_function
def among(axis: Axis, axes: Axes) -> bool:
    return axis.index in axes.indices


@attribute_function
def step(f: ReduceFn) -> BinaryFn:
    return BinaryFn({"sum": "add", "prod": "mul", "max": "max", "min": "min"}[f.name])


# f = sum, f16, x = [2048, 1], y = [1]: one sum runs in f32 and gives 2050; in two, 2048 + 1 is
# rounded to the f16 2048, and 2048 + 1 = 2049 again to 2048. (On f32 the order of the sum changes.)
@rule
def reduce_parts(f: ReduceFn, x: Tensor, y: Tensor, axis: Axis, axes: Axes) -> Law:
    """f(concat(x, y, axis), axes) = f(f(x, axes), f(y, axes)), when the axis is among the axes"""
    return rewrites(
        reduce(f, concat(x, y, axis), axes),
        binary(step(f), reduce(f, x, axes), reduce(f, y, axes)),
        typing.cast(bool, among(axis, axes) & ~(x.type.dtype == DType.BOOL)),
    )
