"""Laws of pools, windows and resizing, all of them right."""

import typing
from dataclasses import replace

import numpy as np

from satura.language import (
    Axes,
    Law,
    Movable,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
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
    transpose,
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
def leaves_alone(f: ReduceFn, x: TensorType) -> bool:
    """Whether f of one element is this element: a sum makes 0.0 of -0.0."""
    return f.name != "sum" or x.dtype.is_integer


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
def is_static(t: TensorType) -> bool:
    """Whether all extents are numbers."""
    return numbers(*t.shape)


@attribute_function
def composed(a: Window, b: Window) -> Window:
    """b of a, where a leaves nothing out."""
    for w in (a, b):
        refuse_unless(not w.has_border and all(d == 1 for d in w.dilations), "border or dilation")
    refuse_unless(all(s <= k for s, k in zip(a.strides, a.sizes)), "gaps")
    sizes = tuple(k + (m - 1) * s for k, m, s in zip(a.sizes, b.sizes, a.strides))
    return replace(a, sizes=sizes, strides=tuple(s * t for s, t in zip(a.strides, b.strides)))


@attribute_function
def as_steps(w: Window, x: TensorType) -> Slices:
    """The elements that a window of one element sees."""
    refuse_unless(numbers(*x.shape) and all(k == 1 for k in w.sizes), "wider, or symbolic")
    refuse_unless(not w.has_border, "a border")
    return Slices((0,) * x.rank, tuple(-(-n // s) for n, s in zip(x.shape, w.strides)), w.strides)


@attribute_function
def all_axes(x: TensorType) -> Axes:
    """All axes of x."""
    return Axes(tuple(range(x.rank)))


@attribute_function
def seen_by(s: Slices, w: Window) -> Slices:
    """What the positions in s see of the operand, where s is in order."""
    refuse_unless(all(step == 1 for step in s.steps) and not w.has_border, "not in order")
    refuse_unless(
        numbers(*s.starts, *s.sizes) and all(typing.cast(int, n) > 0 for n in s.sizes), "empty"
    )
    starts = tuple(i * t for i, t in zip(s.starts, w.strides))
    reach = tuple((k - 1) * d + 1 for k, d in zip(w.sizes, w.dilations))
    sizes = tuple((n - 1) * t + r for n, t, r in zip(s.sizes, w.strides, reach))
    return Slices(starts, sizes, s.steps)


@attribute_function
def opposite(f: ReduceFn) -> ReduceFn:
    """min for max, max for min."""
    refuse_unless(f.name in ("max", "min"))
    return ReduceFn("min" if f.name == "max" else "max")


@attribute_function
def negated(w: Window) -> Window:
    """w with a border of the opposite sign, for floats."""
    refuse_unless(w.fill.dtype.is_float, "no float")
    return replace(w, fill=Scalar.of(-typing.cast(np.floating, w.fill.value), w.fill.dtype))


@attribute_function
def turns(s: Slices, x: TensorType) -> bool:
    """Whether s turns x round along all axes."""
    if not numbers(*x.shape, *s.starts, *s.sizes):
        return False
    return all(
        (start, size, step) == (n - 1, n, -1)
        for n, start, size, step in zip(x.shape, s.starts, s.sizes, s.steps)
    )


@attribute_function
def whole_turned(x: TensorType) -> Slices:
    """All axes of x, turned round."""
    refuse_unless(numbers(*x.shape), "symbolic")
    return Slices(tuple(max(0, typing.cast(int, n) - 1) for n in x.shape), x.shape, (-1,) * x.rank)


@attribute_function
def other_border(w: Window) -> Window:
    """The window whose border changes sides, in steps of 1."""
    refuse_unless(all(s == 1 for s in w.strides), "strides")
    return replace(w, lo=w.hi, hi=w.lo)


@attribute_function
def is_upsampled(x: TensorType, r: Shape, b: Shape, u: Shape) -> bool:
    """Whether r, b and u repeat each element of a line."""
    if x.rank != 1 or len(b.dims) != 2:
        return False
    n = x.shape[0]
    return r.dims == (n, 1) and numbers(n, *b.dims) and u.dims == (n * b.dims[1],)


@attribute_function
def takes_each(s: Slices, x: TensorType, b: Shape) -> bool:
    """Whether s takes one of each element's copies, in order."""
    return len(s.steps) == 1 and s.steps[0] == b.dims[1] and s.sizes == x.shape


@attribute_function
def covers(w: Window, x: TensorType) -> bool:
    """Whether the window reaches from any element back to the first one, over a border of 0."""
    if x.rank != 1 or not numbers(*x.shape) or any(w.fill.bits):
        return False
    n = x.shape[0]
    plain = w.strides == (1,) and w.dilations == (1,) and w.hi == (0,)
    return plain and typing.cast(int, n) > 0 and w.sizes == (n,) and w.lo == (n - 1,)


@attribute_function
def is_last_place(s: Slices, x: TensorType) -> bool:
    """Whether s takes the last element."""
    return s.sizes == (1,) and s.starts == (x.shape[0] - 1,)


@attribute_function
def is_integer(x: TensorType) -> bool:
    """Whether sums wrap, and round nothing."""
    return x.dtype.is_integer


@attribute_function
def grows_gently(f: UnaryFn) -> bool:
    """Whether f(x) <= f(y) where x <= y, for all floats, and f of a NaN alone is NaN."""
    return f.name in ("floor", "ceil", "round", "relu")


@attribute_function
def no_border(w: Window) -> bool:
    """Whether w stays inside."""
    return not w.has_border


# Each window of w is a row of windows; -0.0 < 0.0 for max and min, so that nothing depends on the
# order.
@rule
def separate_extremes(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x, w) = pool(pool(x, w along axis 0), w along the others), for max and min"""
    return rewrites(pool(f, x, w), pool(f, pool(f, x, rows_first(w)), rest_after(w)), is_extreme(f))


@rule
def pool_of_pool(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """pool(pool(x, a), b) = pool(x, a and b), for max and min, when a leaves nothing out"""
    left, right = pool(f, pool(f, x, a), b), pool(f, x, composed(a, b))
    return rewrites(left, right, is_extreme(f) & is_static(x.type), left.type == right.type)


@rule
def pool_of_single_elements(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x, w) = slice(x, steps of w's strides), for windows of one element"""
    return rewrites(pool(f, x, w), slice_(x, as_steps(w, x.type)), leaves_alone(f, x.type))


@rule
def slice_into_pool(f: ReduceFn, x: Tensor, w: Window, s: Slices) -> Law:
    """slice(pool(x, w), s) = pool(slice(x, what s sees), w), without a border"""
    return rewrites(
        slice_(pool(f, x, w), s), pool(f, slice_(x, seen_by(s, w)), w), is_static(x.type)
    )


@rule
def negated_pool(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """max pool of -x = -(min pool of x), with a border of the other sign, for floats"""
    return rewrites(pool(f, unary("neg", x), w), unary("neg", pool(opposite(f), x, negated(w))))


@rule
def turned_pool(f: ReduceFn, x: Tensor, r: Slices, w: Window) -> Law:
    """pool(x turned, w) = pool(x, w with the border's sides exchanged), turned, in steps of 1"""
    right = pool(f, x, other_border(w))
    return rewrites(
        pool(f, slice_(x, r), w),
        slice_(right, whole_turned(right.type)),
        turns(r, x.type) & is_extreme(f),
    )


@rule
def downsample_upsampled(x: Tensor, r: Shape, b: Shape, u: Shape, s: Slices) -> Law:
    """one of the copies of each element of a line that was repeated = the line"""
    return rewrites(
        slice_(reshape(broadcast(reshape(x, r), b), u), s),
        x,
        is_upsampled(x.type, r, b, u) & takes_each(s, x.type, b),
    )


@rule
def last_of_running_sums(x: Tensor, w: Window, s: Slices) -> Law:
    """the last of the running sums of x = the sum of x, for integers"""
    return rewrites(
        slice_(pool("sum", x, w), s),
        reduce("sum", x, all_axes(x.type)),
        covers(w, x.type) & is_last_place(s, x.type) & is_integer(x.type),
    )


# Each of these functions keeps the order, that of -0.0 and 0.0 too, and a window is never empty.
@rule
def growing_function_past_pool(f: UnaryFn, g: ReduceFn, x: Tensor, w: Window) -> Law:
    """f(pool(x, w)) = pool(f(x), w), for max and min and an f that grows, without a border"""
    return rewrites(
        unary(f, pool(g, x, w)),
        pool(g, unary(f, x), w),
        grows_gently(f) & is_extreme(g) & no_border(w),
    )


@rule
def transposed_extremes(f: ReduceFn, x: Movable, w: Window, p: Perm) -> Law:
    """transpose(pool(x, w), p) = pool(transpose(x, p), p(w)), for max and min"""
    return rewrites(
        transpose(pool(f, x, w), p), pool(f, transpose(x, p), w.permuted(p)), is_extreme(f)
    )
