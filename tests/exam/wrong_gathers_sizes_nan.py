"""Laws of gathers, sizes and what is NaN, all of them wrong."""

import typing

import numpy as np
import numpy.typing as npt

from satura.language import (
    Axis,
    Constant,
    DType,
    Law,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    concat,
    constant,
    extent,
    gather,
    iota,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    slice_,
    unary,
)


# x = f32 [10, 20, 30], i = i64 [1, 2, 0], j = i64 [0, 2, 1]: x[i] = [20, 30, 10], and of it j: [20,
# 10, 30]; gather(j, i) = [2, 1, 0] gives [30, 20, 10].
@rule
def compose_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis) -> Law:
    """gather(gather(x, i), j) = gather(x, gather(j, i)), for i and j that permute an axis"""
    return rewrites(
        gather(gather(x, i, a), j, a),
        gather(x, gather(j, i, Axis(0)), a),
        i.type.rank == 1,
        i.type == j.type,
        i.type.shape[0] == x.type.shape[a.index],
    )


@attribute_function
def all_before(c: Constant, x: TensorType, a: Axis) -> bool:
    """Whether all indices are below the extent of x."""
    extent = x.shape[a.index]
    return (
        isinstance(extent, int)
        and c.type.dtype.is_integer
        and bool((typing.cast(npt.NDArray[np.integer], c.array) < extent).all())
    )


# x = f32 [1], y = f32 [2], c = i64 [-1]: the last element of both is 2; that of x is 1.
@rule
def gather_of_first(x: Tensor, y: Tensor, axis: Axis, c: Constant, a: Axis) -> Law:
    """gather(concat(x, y), c) = gather(x, c) along one axis, when all indices are below x's
    extent"""
    return rewrites(
        gather(concat(x, y, axis), constant(c), a),
        gather(x, constant(c), a),
        axis.index == a.index,
        all_before(c, x.type, a),
    )


# x = f32[2, 3], i = i64[1, 1] at axis 0: [1, 1, 3], j = i64[1] at axis 1, which is i's second: [1,
# 1, 3]. On the right j chooses along axis 1 of x: [2, 1], and then [1, 1, 1]. i has to be of rank
# 1.
@rule
def exchange_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), when a is before b"""
    return rewrites(gather(gather(x, i, a), j, b), gather(gather(x, j, b), i, a), a.index < b.index)


# s = [3], or an odd open size: 3 / 2 = 1, 1 * 2 = 2; the right side is 3.
@rule
def twice_half_a_size(s: Shape) -> Law:
    """extent(s) / 2 * 2 = extent(s)"""
    return rewrites(binary("mul", binary("div", extent(s), 2), 2), extent(s))


@attribute_function
def flip(s: Shape, axis: Axis) -> Slices:
    """Everything, backwards along `axis`."""
    dims, at = s.dims, axis.index
    refuse_unless(
        0 <= at < len(dims) and isinstance(dims[at], int) and typing.cast(int, dims[at]) > 0,
        "no extent",
    )
    starts = tuple(dims[at] - 1 if i == at else 0 for i in range(len(dims)))
    return Slices(starts, dims, tuple(-1 if i == at else 1 for i in range(len(dims))))


@attribute_function
def length(s: Shape, axis: Axis) -> Scalar:
    refuse_unless(isinstance(s.dims[axis.index], int), "an open extent")
    return Scalar.of(s.dims[axis.index], DType.I64)


@attribute_function
def units(s: Shape) -> Shape:
    return Shape((1,) * len(s.dims))


# s = [2], axis 0: the left side is [1, 0], the right one 2 - [0, 1] = [2, 1]. It has to be n - 1.
@rule
def flipped_counts(s: Shape, axis: Axis) -> Law:
    """iota(s, axis) backwards = n - iota(s, axis), where n is the extent"""
    counts = iota(s, axis, DType.I64)
    ends = broadcast(reshape(scalar(length(s, axis)), units(s)), s)
    return rewrites(slice_(counts, flip(s, axis)), binary("sub", ends, counts))


# x = f32 inf, y = -inf: inf - inf is NaN: true; neither x nor y is: false.
@rule
def nan_of_sum(x: Tensor, y: Tensor) -> Law:
    """isnan(x + y) = isnan(x) or isnan(y)"""
    return rewrites(
        unary("isnan", binary("add", x, y)),
        binary("or", unary("isnan", x), unary("isnan", y)),
    )


# x = i8 2, y = 3, z = 2: 2 * (3 / 2) = 2; (2 * 3) / 2 = 3. What is no float has to be equal.
@rule(reassociates=True)
def multiply_before_dividing(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """x * (y / z) = (x * y) / z up to rounding"""
    return rewrites(binary("mul", x, binary("div", y, z)), binary("div", binary("mul", x, y), z))


# f = isnan, x = f32[1], y = f64[1]: both results are bools, but the right side selects of an f32
# and an f64.
@rule
def function_after_select(f: UnaryFn, c: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, f(x), f(y)) = f(select(c, x, y))"""
    return rewrites(select(c, unary(f, x), unary(f, y)), unary(f, select(c, x, y)))
