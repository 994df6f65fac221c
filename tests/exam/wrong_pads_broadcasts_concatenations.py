"""Laws of pads, broadcasts and concatenations, all of them wrong."""

import typing
from dataclasses import replace

from satura.language import (
    Axes,
    Axis,
    Dim,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    attribute_function,
    binary,
    broadcast,
    concat,
    pad,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    unary,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def same_number(v: Scalar, w: Scalar) -> bool:
    """Whether v and w are equal."""
    return bool(v.value == w.value)


@attribute_function
def sum_of(a: Padding, b: Padding) -> Padding:
    """Both borders."""
    lo = tuple(i + j for i, j in zip(a.lo, b.lo))
    return Padding(lo, tuple(i + j for i, j in zip(a.hi, b.hi)))


@attribute_function
def interior(x: TensorType, b: Padding) -> Slices:
    """Where x lies in the padded tensor."""
    return Slices(b.lo, x.shape, (1,) * x.rank)


@attribute_function
def with_border(w: Window, b: Padding, v: Scalar) -> Window:
    """The window that reads the border itself."""
    refuse_unless(numbers(*b.lo, *b.hi), "symbolic")
    lo = tuple(i + typing.cast(int, j) for i, j in zip(w.lo, b.lo))
    hi = tuple(i + typing.cast(int, j) for i, j in zip(w.hi, b.hi))
    return replace(w, lo=lo, hi=hi, fill=v)


@attribute_function
def is_extreme(f: ReduceFn) -> bool:
    """Whether f is max or min."""
    return f.name in ("max", "min")


@attribute_function
def ones_at(s: Shape, a: Axes) -> Shape:
    """s with extent 1 along a."""
    return Shape(tuple(1 if i in a.indices else d for i, d in enumerate(s.dims)))


@attribute_function
def repetitions(x: TensorType, s: Shape, a: Axes) -> Scalar:
    """How often each element is added, as a number of x's type."""
    count = 1
    for i, (n, d) in enumerate(zip(x.shape, s.dims)):
        if i in a.indices and n == 1:
            refuse_unless(numbers(d), "symbolic")
            count *= typing.cast(int, d)
    return Scalar.of(count, x.dtype)


@attribute_function
def units(s: Shape) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * len(s.dims))


@attribute_function
def can_add(t: TensorType) -> bool:
    """Whether t has numbers that are added."""
    return (t.dtype.is_float or t.dtype.is_integer) and not t.dtype.is_narrow


@attribute_function
def is_among(axis: Axis, axes: Axes) -> bool:
    """Whether axis is one of axes."""
    return axis.index in axes.indices


@attribute_function
def unit_behind(x: TensorType, axis: Axis) -> Shape:
    """x's shape with an axis of extent 1 behind `axis`."""
    at = axis.index + 1
    return Shape((*x.shape[:at], 1, *x.shape[at:]))


@attribute_function
def pair_behind(x: TensorType, axis: Axis) -> Shape:
    """x's shape with an axis of extent 2 behind `axis`."""
    at = axis.index + 1
    return Shape((*x.shape[:at], 2, *x.shape[at:]))


@attribute_function
def doubled(x: TensorType, axis: Axis) -> Shape:
    """x's shape, twice as long along `axis`."""
    at = axis.index
    return Shape((*x.shape[:at], x.shape[at] * 2, *x.shape[at + 1 :]))


@attribute_function
def without_lo(b: Padding, axis: Axis) -> Padding:
    """b but for what is before `axis`."""
    return Padding(tuple(0 if i == axis.index else d for i, d in enumerate(b.lo)), b.hi)


@attribute_function
def without_hi(b: Padding, axis: Axis) -> Padding:
    """b but for what is behind `axis`."""
    return Padding(b.lo, tuple(0 if i == axis.index else d for i, d in enumerate(b.hi)))


@attribute_function
def is_line(t: TensorType) -> bool:
    """Whether t has one axis."""
    return t.rank == 1


@attribute_function
def added_behind(s: Shape, b: Padding) -> Padding:
    """The border of the flat tensor, where one axis is padded behind."""
    refuse_unless(numbers(*s.dims, *b.lo, *b.hi), "symbolic")
    refuse_unless(not any(b.lo) and sum(1 for d in b.hi if d) == 1, "not one border behind")
    old: Dim = 1
    new: Dim = 1
    for n, h in zip(s.dims, b.hi):
        old, new = old * n, new * (n + h)
    return Padding((0,), (new - old,))


# v = 0.0, w = -0.0, x = f32[1] = [5], a = [0:1], b = [0:1]: left 5, 0.0, -0.0; right 5, 0.0, 0.0.
@rule
def compose_pads_of_equal_numbers(x: Tensor, v: Scalar, w: Scalar, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), w, b) = pad(x, v, a + b), when v = w"""
    return rewrites(pad(pad(x, v, a), w, b), pad(x, v, sum_of(a, b)), same_number(v, w))


# x = f32[1] = [1], b = [0:1], y = [1, NaN] (or [1, -2]): left 1, NaN (or -0.0); right 1, 0.0.
@rule
def zero_pad_past_product(x: Tensor, y: Tensor, b: Padding) -> Law:
    """pad(x, 0, b) * y = pad(x * the inner part of y, 0, b)"""
    return rewrites(
        binary("mul", pad(x, 0, b), y),
        pad(binary("mul", x, slice_(y, interior(x.type, b))), 0, b),
    )


# x = f32[0], b = [0:1], a = [0]: left max of [0.0] = 0.0; right the max of nothing = -inf.
@rule
def max_of_padded_relu(x: Tensor, b: Padding, a: Axes) -> Law:
    """max(pad(relu(x), 0, b)) = max(relu(x)), where the shape is the same"""
    left, right = reduce("max", pad(unary("relu", x), 0, b), a), reduce("max", unary("relu", x), a)
    return rewrites(left, right, left.type == right.type)


# x = i32[1] = [5], v = 1, b = [1:0], max by w: size 1, border (1:0) of fill 9: left 9, 1, 5; right:
# 1, 1, 5.
@rule
def pad_into_pool_over_border(f: ReduceFn, x: Tensor, v: Scalar, b: Padding, w: Window) -> Law:
    """pool(pad(x, v, b), w) = pool(x, w with a border of v)"""
    return rewrites(pool(f, pad(x, v, b), w), pool(f, x, with_border(w, b, v)))


# x = f32[1] = [5], s = [0], a = [0], max: left the max of nothing, -inf; right 5.
@rule
def extreme_of_repeated(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """reduce(broadcast(x, s), a) = broadcast(reduce(x, a), s with 1 at a), for max and min"""
    return rewrites(
        reduce(f, broadcast(x, s), a), broadcast(reduce(f, x, a), ones_at(s, a)), is_extreme(f)
    )


# x = f32[1] = [inf], s = [0], a = [0]: left 0.0 (the sum of nothing), right inf * 0 = NaN. Also x =
# [0.1], s = [10]: left 1.0000001, right 1.0. (Right for integers.)
@rule
def sum_of_repeated_as_product(x: Tensor, s: Shape, a: Axes) -> Law:
    """sum(broadcast(x, s), a) = broadcast(sum(x, a)) * the number of repetitions"""
    return rewrites(
        reduce("sum", broadcast(x, s), a),
        binary(
            "mul",
            broadcast(reduce("sum", x, a), ones_at(s, a)),
            broadcast(reshape(scalar(repetitions(x.type, s, a)), units(s)), ones_at(s, a)),
        ),
        can_add(x.type),
    )


# x = f32[1] = [1], y = [1e8, -1e8]: left (1 + 1e8) - 1e8 = 0; right 1 + 0 = 1. A law that groups
# terms of floats in another way holds up to rounding only.
@rule
def sum_before_concat(x: Tensor, y: Tensor, axis: Axis, a: Axes) -> Law:
    """sum(concat(x, y, axis), a) = sum(x, a) + sum(y, a), when axis is among a"""
    return rewrites(
        reduce("sum", concat(x, y, axis), a),
        binary("add", reduce("sum", x, a), reduce("sum", y, a)),
        is_among(axis, a),
    )


# x = [1, 2], axis 0: left 1, 2, 1, 2; right 1, 1, 2, 2.
@rule
def tile_as_repeat(x: Tensor, axis: Axis) -> Law:
    """concat(x, x, axis) = x, repeated on a new axis behind `axis`, and merged"""
    return rewrites(
        concat(x, x, axis),
        reshape(
            broadcast(reshape(x, unit_behind(x.type, axis)), pair_behind(x.type, axis)),
            doubled(x.type, axis),
        ),
    )


# x = [1], y = [2], v = 0, b = [1:0]: left 0, 1, 2; right: x without lo, y with it: 1, 0, 2.
@rule
def pad_into_concat(x: Tensor, y: Tensor, v: Tensor, b: Padding, axis: Axis) -> Law:
    """pad(concat(x, y, axis), v, b) = concat(pad(x, v, b'), pad(y, v, b''), axis)"""
    return rewrites(
        pad(concat(x, y, axis), v, b),
        concat(pad(x, v, without_lo(b, axis)), pad(y, v, without_hi(b, axis)), axis),
    )


# x = f32[0, 2], y = f32[0, 3], axis 1: left f32[0, 5]; right f32[0, 2].
@rule
def concat_with_nothing(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y, axis) = x, when y has no elements"""
    return rewrites(concat(x, y, axis), x, y.type.size == 0)


# x = [0, 1, 2, 3], s = [2, 2]; y = [4, 5], t = [2, 1]; axis 1: left [[0, 1, 4], [2, 3, 5]], right
# [[0, 1, 2], [3, 4, 5]].
@rule
def concat_of_lines(x: Tensor, y: Tensor, s: Shape, t: Shape, axis: Axis) -> Law:
    """concat(reshape(x, s), reshape(y, t), axis) = reshape(concat(x, y), …), for x and y of rank
    1"""
    left = concat(reshape(x, s), reshape(y, t), axis)
    return rewrites(
        left,
        reshape(concat(x, y, Axis(0)), Shape(left.type.shape)),
        is_line(x.type) & is_line(y.type),
    )


# x = [1, 2, 3, 4], s = [2, 2], b = [0:0, 0:1], v = 0: left [[1, 2, 0], [3, 4, 0]]; right
# [[1, 2, 3], [4, 0, 0]].
@rule
def pad_of_line(x: Tensor, v: Tensor, s: Shape, b: Padding) -> Law:
    """pad(reshape(x, s), v, b) = reshape(pad(x, v, behind), …), for x of rank 1, padded behind"""
    left = pad(reshape(x, s), v, b)
    return rewrites(
        left,
        reshape(pad(x, v, added_behind(s, b)), Shape(left.type.shape)),
        is_line(x.type),
    )
