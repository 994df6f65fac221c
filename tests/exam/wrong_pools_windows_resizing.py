"""Laws of pools, windows and resizing, all of them wrong."""

import typing
from dataclasses import replace

from satura.language import (
    Axes,
    Law,
    ReduceFn,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    attribute_function,
    broadcast,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    unary,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def is_extreme(f: ReduceFn) -> bool:
    """Whether f is max or min."""
    return f.name in ("max", "min")


@attribute_function
def is_plain(w: Window) -> bool:
    """Whether w has neither border nor dilation."""
    return not w.has_border and all(d == 1 for d in w.dilations)


@attribute_function
def composed(a: Window, b: Window) -> Window:
    """b of a."""
    refuse_unless(a.rank == b.rank, "ranks differ")
    sizes = tuple(k + m - 1 for k, m in zip(a.sizes, b.sizes))
    return replace(a, sizes=sizes, strides=tuple(s * t for s, t in zip(a.strides, b.strides)))


@attribute_function
def as_steps(w: Window, x: TensorType) -> Slices:
    """The elements that a window of one element sees."""
    refuse_unless(numbers(*x.shape) and all(k == 1 for k in w.sizes), "wider")
    return Slices((0,) * x.rank, tuple(n // s for n, s in zip(x.shape, w.strides)), w.strides)


@attribute_function
def all_axes(x: TensorType) -> Axes:
    """All axes of x."""
    return Axes(tuple(range(x.rank)))


@attribute_function
def are_all(a: Axes, x: TensorType) -> bool:
    """Whether a are all axes of x."""
    return a.indices == tuple(range(x.rank))


@attribute_function
def is_one_position(w: Window, x: TensorType) -> bool:
    """Whether the window has one position."""
    return all(n == 1 for n in w.outer(x.shape))


@attribute_function
def rows_first(w: Window) -> Window:
    """The window along axis 0."""
    n = w.rank - 1
    refuse_unless(n >= 1, "one axis")
    one = (1,) * n
    return Window(
        (w.sizes[0], *one),
        (w.strides[0], *one),
        (w.dilations[0], *one),
        (w.lo[0], *(0,) * n),
        (w.hi[0], *(0,) * n),
        w.fill,
    )


@attribute_function
def rest_after(w: Window) -> Window:
    """The window along the other axes."""
    return Window(
        (1, *w.sizes[1:]),
        (1, *w.strides[1:]),
        (1, *w.dilations[1:]),
        (0, *w.lo[1:]),
        (0, *w.hi[1:]),
        w.fill,
    )


@attribute_function
def integers(x: TensorType) -> bool:
    """Whether sums are exact."""
    return x.dtype.is_integer


@attribute_function
def seen_by(s: Slices, w: Window) -> Slices:
    """What the positions in s see of the operand, where s is in order."""
    refuse_unless(all(step == 1 for step in s.steps), "not in order")
    refuse_unless(
        numbers(*s.starts, *s.sizes) and all(typing.cast(int, n) > 0 for n in s.sizes), "empty"
    )
    starts = tuple(i * t for i, t in zip(s.starts, w.strides))
    sizes = tuple((n - 1) * t + k for n, t, k in zip(s.sizes, w.strides, w.sizes))
    return Slices(starts, sizes, s.steps)


@attribute_function
def no_border(w: Window) -> bool:
    """Whether w stays inside."""
    return not w.has_border


@attribute_function
def turns(s: Slices, x: TensorType) -> bool:
    """Whether s turns x round along all axes."""
    if not numbers(*x.shape, *s.starts, *s.sizes):
        return False
    return all(
        (start, size, step) == (n - 1, n, -1) and typing.cast(int, n) > 0
        for n, start, size, step in zip(x.shape, s.starts, s.sizes, s.steps)
    )


@attribute_function
def whole_turned(x: TensorType) -> Slices:
    """All axes of x, turned round."""
    refuse_unless(numbers(*x.shape), "symbolic")
    return Slices(tuple(max(0, typing.cast(int, n) - 1) for n in x.shape), x.shape, (-1,) * x.rank)


@attribute_function
def slides(w: Window) -> bool:
    """Whether w moves in steps of 1."""
    return all(s == 1 for s in w.strides)


@attribute_function
def is_upsampled(x: TensorType, r: Shape, b: Shape, u: Shape) -> bool:
    """Whether r, b and u repeat each element of a line."""
    if x.rank != 1 or len(b.dims) != 2:
        return False
    n = x.shape[0]
    return r.dims == (n, 1) and numbers(n, *b.dims) and u.dims == (n * b.dims[1],)


@attribute_function
def takes_each(s: Slices, x: TensorType, b: Shape) -> bool:
    """Whether s goes in steps of as many elements as each became."""
    return len(s.steps) == 1 and abs(s.steps[0]) == b.dims[1] and s.sizes == x.shape


@attribute_function
def covers(w: Window, x: TensorType) -> bool:
    """Whether the window reaches from any element back to the first one."""
    if x.rank != 1 or not numbers(*x.shape):
        return False
    n = x.shape[0]
    plain = w.strides == (1,) and w.dilations == (1,) and w.hi == (0,)
    return plain and typing.cast(int, n) > 0 and w.sizes == (n,) and w.lo == (n - 1,)


@attribute_function
def is_mean_of(w: Window) -> bool:
    """Whether windows do not overlap and leave nothing out between them."""
    return w.sizes == w.strides and is_plain_window(w)


def is_plain_window(w: Window) -> bool:
    """Whether w has neither border nor dilation."""
    return not w.has_border and all(d == 1 for d in w.dilations)


# x = arange(7) : i32, max, a: size 2, stride 2; b: size 2, stride 1: a gives 1, 3, 5; left 3, 5.
# right: size 3, stride 2: 2, 4, 6.
@rule
def compose_pools_by_sizes(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """pool(pool(x, a), b) = pool(x, a and b), for max and min, of size k + m - 1, border none"""
    return rewrites(
        pool(f, pool(f, x, a), b),
        pool(f, x, composed(a, b)),
        is_extreme(f) & is_plain(a) & is_plain(b),
    )


# x = [1, 2, 3], stride 2: left 1, 3; right [0+1*2]: 1.
@rule
def pool_of_one_tap(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x, w) = slice(x, steps of w's strides), for windows of one element and max or min"""
    return rewrites(pool(f, x, w), slice_(x, as_steps(w, x.type)), is_extreme(f) & is_plain(w))


# x = [1, 2, 3], max, size 2, stride 2: positions (3 - 2) // 2 + 1 = 1; left 2, right 3.
@rule
def pool_of_one_position(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x, w) = reduce(x, all axes), when w has a single position, for max and min"""
    return rewrites(
        pool(f, x, w),
        reduce(f, x, all_axes(x.type)),
        is_extreme(f) & is_plain(w) & is_one_position(w, x.type),
    )


# x = [-3] : f32, max, size 1, border (1:0) of fill -1: left relu(-1) = 0, relu(-3) = 0; right -1,
# 0.
@rule
def relu_into_max_pool(x: Tensor, w: Window) -> Law:
    """relu(max pool of x) = max pool of relu(x): relu grows"""
    return rewrites(unary("relu", pool("max", x, w)), pool("max", unary("relu", x), w))


# x = [[0]] : i32, sum, sizes (2, 2), border (1:0, 1:0) of fill 1: left 1 + 1 + 1 + 0 = 3. right:
# along axis 0: 1 + 0 = 1; along axis 1: 1 + 1 = 2.
@rule
def separate_pool(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x, w) = pool(pool(x, w along axis 0), w along the others), for integers"""
    return rewrites(
        pool(f, x, w), pool(f, pool(f, x, rows_first(w)), rest_after(w)), integers(x.type)
    )


# x = arange(5) : i32, max, size 2, dilation 2: pool: 2, 3, 4; s = [0+1]: left 2. right: slice of
# size 2, on which a window of reach 3 does not fit.
@rule
def slice_into_pool_by_size(f: ReduceFn, x: Tensor, w: Window, s: Slices) -> Law:
    """slice(pool(x, w), s) = pool(slice(x, what s sees), w), when there is no border"""
    return rewrites(slice_(pool(f, x, w), s), pool(f, slice_(x, seen_by(s, w)), w), no_border(w))


# x = [1, 2] : i32, max, size 2, border (1:0) of fill 0: x turned is 2, 1: 2, 2; right: 1, 2 turned:
# 2, 1.
@rule
def turn_pool(f: ReduceFn, x: Tensor, r: Slices, w: Window) -> Law:
    """pool(x turned, w) = pool(x, w), turned, when w moves in steps of 1, for max and min"""
    right = pool(f, x, w)
    return rewrites(
        pool(f, slice_(x, r), w),
        slice_(right, whole_turned(right.type)),
        is_extreme(f) & turns(r, x.type) & slides(w),
    )


# x = [1, 2], repeated 2 times: 1 1 2 2; s = [3+2*-2]: left 2, 1; right 1, 2.
@rule
def upsample_then_downsample(x: Tensor, r: Shape, b: Shape, u: Shape, s: Slices) -> Law:
    """every k-th element of a line that was repeated k times = the line"""
    return rewrites(
        slice_(reshape(broadcast(reshape(x, r), b), u), s),
        x,
        is_upsampled(x.type, r, b, u) & takes_each(s, x.type, b),
    )


# x = [1, 2] : i32, size 2, border (1:0) of fill 5: left 5 + 1 = 6; right 1. (Right for a fill of
# 0.)
@rule
def first_of_running_sums(x: Tensor, w: Window, s: Slices) -> Law:
    """the first of the running sums of x = the first element of x, for integers"""
    return rewrites(
        slice_(pool("sum", x, w), s),
        slice_(x, s),
        integers(x.type) & covers(w, x.type) & (s.starts == (0,)) & (s.sizes == (1,)),
    )


# x = [1, 2, 3, 4, 5] : i32, size 2, strides 2: sums 3, 7: left 10; right 15. (Right where the
# extents are multiples of the sizes.)
@rule
def sum_of_sums(x: Tensor, w: Window, a: Axes) -> Law:
    """sum(sums of windows side by side, all axes) = sum(x, all axes), for integers"""
    return rewrites(
        reduce("sum", pool("sum", x, w), a),
        reduce("sum", x, a),
        integers(x.type) & is_mean_of(w) & are_all(a, x.type),
    )


@attribute_function
def has_any_order(f: ReduceFn, x: TensorType) -> bool:
    """Whether f gives the same bits however the elements are grouped."""
    return f.name in ("max", "min") or x.dtype.is_integer


@attribute_function
def sees_all(w: Window, x: TensorType) -> bool:
    """Whether the window is as large as x."""
    return not w.has_border and w.sizes == x.shape


# x = f32[2], f = min, w = size 2 with dilation 2: the window reaches over 3 elements, fits nowhere
# and the left side is empty; the right side has an element.
@rule
def pool_of_all(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x, w) = reduce(x, all axes), when w is as large as x, and nothing is rounded"""
    return rewrites(
        pool(f, x, w),
        reduce(f, x, all_axes(x.type)),
        sees_all(w, x.type) & has_any_order(f, x.type),
    )
