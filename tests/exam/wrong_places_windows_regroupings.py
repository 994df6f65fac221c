"""Laws of places of maxima, windows and regroupings, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    Law,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    pad,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
)


@attribute_function
def flip(type_: TensorType, axis: Axis) -> Slices:
    """Everything, backwards along `axis`."""
    dims, at = list(type_.shape), axis.index
    refuse_unless(
        at < len(dims) and isinstance(dims[at], int) and typing.cast(int, dims[at]) > 0,
        "no known extent",
    )
    starts = [dims[at] - 1 if i == at else 0 for i in range(len(dims))]
    return Slices(tuple(starts), tuple(dims), tuple(-1 if i == at else 1 for i in range(len(dims))))


@attribute_function
def last_index(type_: TensorType, axis: Axis) -> Scalar:
    from satura.language import DType

    refuse_unless(isinstance(type_.shape[axis.index], int), "an open extent")
    return Scalar.of(type_.shape[axis.index] - 1, DType.I64)


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


# x = f32 [5, 5], last = 0: flipped [5, 5], whose first max is at 0; 1 - 0 = 1. (`last` has to
# change.)
@rule
def place_in_flipped(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(flip(x, axis), axis) = n - 1 - arg_reduce(x, axis)"""
    place = arg_reduce(f, x, axis, last)
    ends = broadcast(
        reshape(scalar(last_index(x.type, axis)), units(x.type)), Shape(place.type.shape)
    )
    return rewrites(
        arg_reduce(f, slice_(x, flip(x.type, axis)), axis, last), binary("sub", ends, place)
    )


# x = f32[2, 3, 4], p = [1, 2, 0]: transpose(x) is [3, 4, 2]. axis 0 of it is axis 1 of x; p.inverse
# = [2, 0, 1] says axis 2: the left side is [1, 4, 2], the right transpose([2, 3, 1], p) = [3, 1,
# 2].
@rule
def place_past_transpose(f: ReduceFn, x: Tensor, p: Perm, axis: Axis, last: Count) -> Law:
    """arg_reduce(transpose(x, p), axis) = transpose(arg_reduce(x, p⁻¹(axis)), p)"""
    return rewrites(
        arg_reduce(f, transpose(x, p), axis, last),
        transpose(arg_reduce(f, x, Axis(p.inverse.order[axis.index]), last), p),
    )


@attribute_function
def keeps(x: TensorType, s: Shape, axes: Axes) -> bool:
    """Whether the reduced axes are as long before and after the reshape."""
    return all(i < x.rank and x.shape[i] == s.dims[i] for i in axes.indices)


@attribute_function
def with_ones(s: Shape, axes: Axes) -> Shape:
    return Shape(tuple(1 if i in axes.indices else n for i, n in enumerate(s.dims)))


# x = f32[1, 2, 2] = [[[0, 1], [2, 3]]], s = [2, 2, 1], axes [1]: of [[0, 1], [2, 3]] the rows'
# maxima are 1, 3; the maxima of x along axis 1 are 2, 3. What stands before the axis has to agree,
# too.
@rule
def reduce_past_reshape(x: Tensor, s: Shape, axes: Axes) -> Law:
    """max(reshape(x, s), axes) = reshape(max(x, axes), s with 1 at axes), when axes keep extents"""
    return rewrites(
        reduce("max", reshape(x, s), axes),
        reshape(reduce("max", x, axes), with_ones(s, axes)),
        keeps(x.type, s, axes),
    )


@attribute_function
def composed(a: Window, b: Window) -> Window:
    """One window for two without borders and dilations."""
    refuse_unless(not a.has_border and not b.has_border, "a border")
    refuse_unless(set(a.dilations) | set(b.dilations) <= {1}, "dilations")
    return Window(
        tuple(k + j - 1 for k, j in zip(a.sizes, b.sizes)),
        tuple(s * t for s, t in zip(a.strides, b.strides)),
        a.dilations,
        a.lo,
        a.hi,
        a.fill,
    )


# x = f32 [0, 0, 0, 9], a of 2 by steps of 2: [0, 9], b of 2 by steps of 1: [9]. The right side has
# 3 taps by steps of 2: [0]. It has to be k + (j - 1) * stride.
@rule
def compose_pools(x: Tensor, a: Window, b: Window) -> Law:
    """pool(max, pool(max, x, a), b) = pool(max, x, a and b)"""
    return rewrites(pool("max", pool("max", x, a), b), pool("max", x, composed(a, b)))


@attribute_function
def filled(w: Window) -> Window:
    """The window without dilations that reaches as far."""
    refuse_unless(any(d > 1 for d in w.dilations), "no dilations")
    sizes = tuple(d * (k - 1) + 1 for k, d in zip(w.sizes, w.dilations))
    return Window(sizes, w.strides, (1,) * len(sizes), w.lo, w.hi, w.fill)


# x = f32 [0, 9, 0], two taps with dilation 2: max(0, 0) = 0; three taps without: 9.
@rule
def fill_dilated(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, x, as wide a window without dilations), for max and min"""
    return rewrites(pool(f, x, w), pool(f, x, filled(w)), (f.name == "max") | (f.name == "min"))


@attribute_function
def bordered(w: Window, p: Padding, v: Scalar) -> Window:
    refuse_unless(all(isinstance(n, int) for n in (*p.lo, *p.hi)), "an open padding")
    lo = tuple(a + b for a, b in zip(w.lo, typing.cast(tuple[int, ...], p.lo)))
    hi = tuple(a + b for a, b in zip(w.hi, typing.cast(tuple[int, ...], p.hi)))
    return Window(w.sizes, w.strides, w.dilations, lo, hi, v)


# x = f32 [1], v = 0, p = 1 before; w of 3 taps with a border of 1 before, of fill 5: max(5, 0, 1) =
# 5; the right side has two zeros before: 1. The window's own border is forgotten.
@rule
def pad_into_window(f: ReduceFn, x: Tensor, v: Scalar, p: Padding, w: Window) -> Law:
    """pool(f, pad(x, v, p), w) = pool(f, x, w with a border of v)"""
    return rewrites(pool(f, pad(x, v, p), w), pool(f, x, bordered(w, p, v)))


@attribute_function
def is_whole(x: TensorType, w: Window, result: TensorType) -> bool:
    """Whether a window as large as x has one position."""
    return w.sizes == x.shape and set(w.dilations) <= {1} and all(n == 1 for n in result.shape)


@attribute_function
def all_axes(type_: TensorType) -> Axes:
    return Axes(tuple(range(type_.rank)))


# x = f32 [1, 2, 9], 3 taps by steps of 2, a border of 1 before of -inf: one position, over the
# border, 1 and 2: 2; the max of all is 9.
@rule
def pool_of_whole(x: Tensor, w: Window) -> Law:
    """pool(max, x, w) = max(x, all axes), when w is as large as x and has one position"""
    pooled = pool("max", x, w)
    return rewrites(pooled, reduce("max", x, all_axes(x.type)), is_whole(x.type, w, pooled.type))


@attribute_function
def steps_of(x: TensorType, w: Window) -> Slices:
    """The slices that a window of single taps reads."""
    refuse_unless(set(w.sizes) <= {1} and not w.has_border, "more than single elements")
    refuse_unless(any(step > 1 for step in w.strides), "no steps")
    sizes = tuple(n // step for n, step in zip(x.shape, w.strides))
    return Slices((0,) * x.rank, sizes, w.strides)


# x = f32[3], one tap by steps of 2: positions 0 and 2, f32[2]; 3 // 2 = 1: f32[1].
@rule
def pool_of_single_taps(x: Tensor, w: Window) -> Law:
    """pool(max, x, w) = slice(x, n / stride elements by steps), for a window of one tap"""
    return rewrites(pool("max", x, w), slice_(x, steps_of(x.type, w)))
