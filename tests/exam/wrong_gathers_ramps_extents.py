"""Laws of gathers, ramps and extents, all of them wrong."""

import typing

import numpy as np
import numpy.typing as npt

from satura.language import (
    Axes,
    Axis,
    Constant,
    DType,
    Law,
    Padding,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    extent,
    gather,
    iota,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    unary,
)


@attribute_function
def is_flip(t: TensorType, s: Slices, axis: Axis) -> bool:
    return all(
        s.sizes[i] == dim
        and (
            (s.starts[i] == dim - 1 and s.steps[i] == -1)
            if i == axis.index
            else (s.starts[i] == 0 and s.steps[i] == 1)
        )
        for i, dim in enumerate(t.shape)
    )


# x = i32[2] = [5,6], i = i64[] = 0: left flip [6,5][0] = 6, right x[-0] = 5 (it is x[~0]).
@rule
def gather_of_flip(x: Tensor, s: Slices, i: Tensor, axis: Axis) -> Law:
    """gather(flip(x), i) = gather(x, -i)"""
    return rewrites(
        gather(slice_(x, s), i, axis), gather(x, unary("neg", i), axis), is_flip(x.type, s, axis)
    )


@attribute_function
def counts_up(i: Constant) -> bool:
    values = i.array
    return (
        values.ndim == 1
        and values.size >= 2
        and bool(values[0] >= 0)
        and (int(values[1]) - int(values[0]) == 1)
    )


@attribute_function
def from_first(t: TensorType, i: Constant, axis: Axis) -> Slices:
    at = axis.index
    starts = tuple(int(i.array.flat[0]) if n == at else 0 for n in range(t.rank))
    sizes = tuple(i.size if n == at else dim for n, dim in enumerate(t.shape))
    dim = t.shape[at]
    refuse_unless(
        isinstance(dim, int) and typing.cast(int, starts[at] + sizes[at]) <= dim, "outside"
    )
    return Slices(starts, sizes, (1,) * t.rank)


# x = i32[3] = [5,6,7], i = [0,1,0]: left [5,6,5], right [5,6,7].
@rule
def gather_of_a_count(x: Tensor, i: Constant, axis: Axis) -> Law:
    """gather(x, i) = slice(x, from i[0] on), when i's first two are a and a + 1"""
    return rewrites(
        gather(x, constant(i), axis), slice_(x, from_first(x.type, i, axis)), counts_up(i)
    )


@attribute_function
def all_below(i: Constant, t: TensorType, axis: Axis) -> bool:
    dim = t.shape[axis.index]
    return isinstance(dim, int) and bool(
        np.all(typing.cast(npt.NDArray[np.integer], i.array) < dim)
    )


# x = i32[1] = [5], y = i32[1] = [6], i = [-1]: -1 < 1; left the last, 6; right 5.
@rule
def gather_of_first_part(x: Tensor, y: Tensor, i: Constant, axis: Axis) -> Law:
    """gather(concat(x, y), i) = gather(x, i), when all of i are less than x's extent (not
    negative?)"""
    return rewrites(
        gather(concat(x, y, axis), constant(i), axis),
        gather(x, constant(i), axis),
        all_below(i, x.type, axis),
    )


@attribute_function
def as_many(i: TensorType, t: TensorType, axis: Axis) -> bool:
    return i.rank == 1 and i.shape[0] == t.shape[axis.index]


@attribute_function
def only(axis: Axis) -> Axes:
    return Axes((axis.index,))


# x = i32[2] = [1,2], i = [0,0]: left 1 (max), right 2.
@rule
def max_of_permuted(x: Tensor, i: Tensor, axis: Axis) -> Law:
    """max(gather(x, i), axis) = max(x, axis), when i has as many entries as the axis"""
    return rewrites(
        reduce("max", gather(x, i, axis), only(axis)),
        reduce("max", x, only(axis)),
        as_many(i.type, x.type, axis),
    )


@attribute_function
def holds(d: DType, s: Shape, axis: Axis) -> bool:
    refuse_unless(d.is_integer and not d.is_narrow, "integers")
    dim = s.dims[axis.index]
    return isinstance(dim, int) and dim <= 1 << 8 * d.itemsize


# d = i8, s = [129]: 129 <= 256; left cast of iota wraps: element 128 is -128, right 128.
@rule
def count_in_signed(s: Shape, axis: Axis, d: DType, e: DType) -> Law:
    """cast(iota(s, axis, d), e) = iota(s, axis, e), for integers d of which 2^bits are as many as
    the extent (forgets the sign)"""
    return rewrites(cast(iota(s, axis, d), e), iota(s, axis, e), holds(d, s, axis), e == DType.I64)


@attribute_function
def end(t: Shape, axis: Axis) -> Shape:
    return Shape((t.dims[axis.index],))


@attribute_function
def ones(t: Shape) -> Shape:
    return Shape((1,) * len(t.dims))


# s = [1]: iota [0], flipped [0]; right 1 - 0 = 1.
@rule
def flip_of_iota(s: Shape, axis: Axis, r: Slices) -> Law:
    """flip(iota(n)) = n - iota(n) (it is n - 1 - iota)"""
    count = iota(s, axis, DType.I64)
    return rewrites(
        slice_(count, r),
        binary("sub", broadcast(reshape(extent(end(s, axis)), ones(s)), s), count),
        is_flip(count.type, r, axis),
    )


@attribute_function
def keeps(s: Shape, t: Shape, axis: Axis) -> bool:
    return axis.index < min(len(s.dims), len(t.dims)) and s.dims[axis.index] == t.dims[axis.index]


# s = [2,3,2], axis 1, t = [4,3,1]: left 0,0,1,1,2,2,...; right 0,1,2,0,1,2,...
@rule
def reshape_of_iota(s: Shape, axis: Axis, d: DType, t: Shape) -> Law:
    """reshape(iota(s, axis), t) = iota(t, axis), when the axis has one extent in s and t"""
    return rewrites(reshape(iota(s, axis, d), t), iota(t, axis, d), keeps(s, t, axis))


# s = [0], i64: left the empty max, -2^63; right 0 - 1 = -1.
@rule
def max_of_iota(s: Shape, axis: Axis) -> Law:
    """max(iota(n), axis) = n - 1 (not where n = 0)"""
    left = reduce("max", iota(s, axis, DType.I64), only(axis))
    last = binary("sub", extent(end(s, axis)), 1)
    return rewrites(left, broadcast(reshape(last, ones(s)), Shape(left.type.shape)))


@attribute_function
def half(n: Shape) -> Shape:
    refuse_unless(len(n.dims) == 1)
    return Shape(((n.dims[0] + 1) // 2,))


# n = 1: left 1 / 2 = 0, right (1 + 1) // 2 = 1.
@rule
def half_an_extent(n: Shape) -> Law:
    """extent(n) / 2 = extent((n + 1) // 2) (integers truncate)"""
    return rewrites(binary("div", extent(n), 2), extent(half(n)))


@attribute_function
def flat(t: TensorType) -> Shape:
    refuse_unless(t.rank == 1)
    return Shape((t.shape[0] + t.shape[0],))


@attribute_function
def column(t: TensorType) -> Shape:
    refuse_unless(t.rank == 1)
    return Shape((t.shape[0], 1))


# x = i32[2] = [0,1], y = i32[2] = [2,3]: left 0,2,1,3; right 0,1,2,3.
@rule
def interleaved_is_stacked(x: Tensor, y: Tensor) -> Law:
    """reshape(concat(x as a column, y as a column, 1), flat) = concat(x, y, 0)"""
    return rewrites(
        reshape(
            concat(reshape(x, column(x.type)), reshape(y, column(y.type)), Axis(1)), flat(x.type)
        ),
        concat(x, y, Axis(0)),
    )


@attribute_function
def nothing_in(t: TensorType) -> bool:
    return t.size == 0


# x = i32[0,2], y = i32[0,3], axis 1: y is empty, but left is [0,5] and right [0,2].
@rule
def concat_with_empty(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y) = x, when y has no elements (the result may be longer all the same)"""
    return rewrites(concat(x, y, axis), x, nothing_in(y.type))


# x = i32[2] = [5,6], i = [0], v = 9, b = [1:0]: left pad first: [9,5,6][0] = 9, right 5.
@rule
def gather_below_pad(x: Tensor, v: Tensor, b: Padding, i: Tensor, axis: Axis) -> Law:
    """gather(pad(x, v, b), i) = gather(x, i), when the pad is along the axis only and the types
    agree (forgets to shift the indices)"""
    left, right = gather(pad(x, v, b), i, axis), gather(x, i, axis)
    return rewrites(left, right, left.type == right.type)
