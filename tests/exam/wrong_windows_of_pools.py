"""Laws of windows of pools, all of them wrong."""

from __future__ import annotations

import typing

from satura.language import (
    Axes,
    Axis,
    Dim,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Slices,
    Tensor,
    TensorType,
    Unpadded,
    Window,
    attribute_function,
    pad,
    pool,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    slice_,
    unary,
)


@attribute_function
def all_are(values: tuple[Dim, ...], value: int) -> bool:
    """Whether all of the values are `value`."""
    return all(each == value for each in values)


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


@attribute_function
def only_axis(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s takes everything, in order, on all axes but `axis`."""
    return all(
        i == axis.index or (s.starts[i] == 0 and s.sizes[i] == t.shape[i] and s.steps[i] == 1)
        for i in range(t.rank)
    )


@attribute_function
def along(t: TensorType, axis: Axis, start: Dim, size: Dim, step: int) -> Slices:
    """The slices of t that take everything but along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    starts: list[Dim] = [0] * t.rank
    sizes, steps = list(t.shape), [1] * t.rank
    starts[axis.index], sizes[axis.index], steps[axis.index] = start, size, step
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@attribute_function
def reverses(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s turns t around along `axis` and does nothing else."""
    at = axis.index
    if at >= t.rank:
        return False
    n = t.shape[at]
    return len(s.sizes) == t.rank and (
        only_axis(s, t, axis) and s.starts[at] == n - 1 and s.sizes[at] == n and s.steps[at] == -1
    )


@attribute_function
def turned(t: TensorType, axis: Axis) -> Slices:
    """The slices that turn t around along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    return along(t, axis, t.shape[axis.index] - 1, t.shape[axis.index], -1)


@attribute_function
def joint(a: Window, b: Window) -> Window:
    refuse_unless(a.rank == b.rank, "ranks differ")
    return Window(
        tuple(m + n - 1 for m, n in zip(a.sizes, b.sizes)),
        a.strides,
        a.dilations,
        a.lo,
        a.hi,
        a.fill,
    )


@attribute_function
def in_steps_of_1(w: Window) -> bool:
    return set(w.strides) <= {1} and not w.has_border


# x = f32[3] = 1, 5, 2, a = window of 1, b = window of 2 with dilation 2 and stride 1: the left side
# is max(1, 2) = 2 (f32[1]); the right side is a window of 2 without dilation: 5, 5 (f32[2]).
@rule
def compose_pools_without_dilation(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """max(max(x, a), b) = max(x, a and b), for windows that move in steps of 1"""
    return rewrites(
        pool(f, pool(f, x, a), b),
        pool(f, x, joint(a, b)),
        is_one_of(f.name, ("max", "min")),
        in_steps_of_1(a) & in_steps_of_1(b),
    )


@attribute_function
def both_strided(a: Window, b: Window) -> Window:
    refuse_unless(a.rank == b.rank, "ranks differ")
    return Window(
        tuple(k + (n - 1) * s for k, n, s in zip(a.sizes, b.sizes, a.strides)),
        tuple(s * t for s, t in zip(a.strides, b.strides)),
        a.dilations,
        a.lo,
        a.hi,
        a.fill,
    )


@attribute_function
def without_gaps(a: Window, b: Window) -> bool:
    plain = set(a.dilations) | set(b.dilations) <= {1} and not a.has_border and not b.has_border
    return plain and all(s <= k for k, s in zip(a.sizes, a.strides))


# x = f32[2], a = b = a window of 2 in steps of 2: the first pool gives f32[1], in which the window
# of 2 is one too long, and so the second gives f32[0]. The right side is a window of 4 on f32[2]:
# it is two too long, and refused.
@rule
def compose_strided_pools_of_short_axes(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """max(max(x, a), b) = max(x, a and b), for windows without gaps"""
    return rewrites(
        pool(f, pool(f, x, a), b),
        pool(f, x, both_strided(a, b)),
        is_one_of(f.name, ("max", "min")),
        without_gaps(a, b),
    )


@attribute_function
def with_border_of_pad(w: Window, b: Padding) -> Window:
    refuse_unless(w.rank == len(b.lo), "ranks differ")
    refuse_unless(all(isinstance(n, int) for n in (*b.lo, *b.hi)), "open padding")
    lo = tuple(m + n for m, n in zip(w.lo, typing.cast(tuple[int, ...], b.lo)))
    return Window(
        w.sizes,
        w.strides,
        w.dilations,
        lo,
        tuple(m + n for m, n in zip(w.hi, typing.cast(tuple[int, ...], b.hi))),
        w.fill,
    )


# x = f32[0], v = 5.0, b = [1:0], w = a window of 1 without border whose fill is 0.0: left 5.0,
# right 0.0.
@rule
def pad_into_pool_with_its_own_fill(
    f: ReduceFn, x: Unpadded, v: Scalar, b: Padding, w: Window
) -> Law:
    """pool(pad(x, v, b), w) = pool(x, w with a border), when w has no border yet"""
    return rewrites(
        pool(f, pad(x, v, b), w),
        pool(f, x, with_border_of_pad(w, b)),
        typing.cast(bool, ~w.has_border),
    )


# x = f32[1] = -1.0, w = a window of 1 with a border of 1 before, fill -2.0: max(relu(x), w) is -2,
# 0, while relu(max(x, w)) is 0, 0.
@rule
def relu_past_pool_with_border(x: Tensor, w: Window) -> Law:
    """max-pool(relu(x), w) = relu(max-pool(x, w))"""
    return rewrites(pool("max", unary("relu", x), w), unary("relu", pool("max", x, w)))


# x = i8[2] = -128, 0, w = a window of 2: left min = -128; -x = -128, 0 (the least wraps around),
# its max is 0, and -0 is 0.
@rule
def min_pool_by_max_pool_of_integers(x: Tensor, w: Window) -> Law:
    """min-pool(x, w) = -max-pool(-x, w), on signed integers without a border"""
    return rewrites(
        pool("min", x, w),
        unary("neg", pool("max", unary("neg", x), w)),
        x.type.dtype.is_integer & x.type.dtype.is_signed,
        typing.cast(bool, ~w.has_border),
    )


@attribute_function
def every_axis(t: TensorType) -> Axes:
    return Axes(tuple(range(t.rank)))


# x = f32[2] = 1, 2, w = a window of 2 in steps of 2 with a border of 1 before, fill 9.0: 2 + 1 - 2
# = 1, and 1 // 2 + 1 = 1 result, which sees 9 and 1: left 9, right max(1, 2) = 2.
@rule
def pool_of_everything(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """max-pool(x, w) = max(x) along all axes, when the window is as large as x and fits once"""
    return rewrites(
        pool(f, x, w),
        reduce(f, x, every_axis(x.type)),
        is_one_of(f.name, ("max", "min")),
        w.sizes == x.type.shape,
        all_are(pool(f, x, w).type.shape, 1),
    )


@attribute_function
def only_first(w: Window) -> Window:
    refuse_unless(w.rank >= 2, "one axis")
    rest = w.rank - 1
    one, none = (1,) * rest, (0,) * rest
    return Window(
        (w.sizes[0], *one),
        (w.strides[0], *one),
        (w.dilations[0], *one),
        (w.lo[0], *none),
        (w.hi[0], *none),
        w.fill,
    )


@attribute_function
def but_first(w: Window) -> Window:
    return Window(
        (1, *w.sizes[1:]),
        (1, *w.strides[1:]),
        (1, *w.dilations[1:]),
        (0, *w.lo[1:]),
        (0, *w.hi[1:]),
        w.fill,
    )


# x = i32[2, 1] = 0, 0, w = a window of [2, 1] with a border of 1 before axis 1, fill 1: the left
# side sums two fills where it sees the border: [[2, 0]]; on the right the first pool has no border
# there, and the second adds one fill alone: [[1, 0]].
@rule
def sum_pool_axis_by_axis(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = f-pool(f-pool(x, w along axis 0), w along the others), on integers"""
    return rewrites(
        pool(f, x, w),
        pool(f, pool(f, x, only_first(w)), but_first(w)),
        x.type.dtype.is_integer,
    )


@attribute_function
def mirrored(w: Window) -> Window:
    return Window(w.sizes, w.strides, w.dilations, w.hi, w.lo, w.fill)


# x = f32[2] = 1, 2, w = a window of 1 in steps of 2: backwards x is 2, 1, of which the pool takes
# 2; the right side takes 1. The steps must end at the last element.
@rule
def pool_backwards(f: ReduceFn, x: Tensor, s: Slices, w: Window) -> Law:
    """f-pool(x backwards, w) = f-pool(x, w mirrored) backwards, for max and min of one axis"""
    plain = pool(f, x, mirrored(w))
    return rewrites(
        pool(f, slice_(x, s), w),
        slice_(plain, turned(plain.type, Axis(0))),
        is_one_of(f.name, ("max", "min")),
        x.type.rank == 1,
        reverses(s, x.type, Axis(0)),
    )


@attribute_function
def every_nth(t: TensorType, w: Window) -> Slices:
    refuse_unless(t.rank == w.rank, "ranks differ")
    return Slices((0,) * t.rank, tuple(n // s for n, s in zip(t.shape, w.strides)), w.strides)


# x = f32[3], w = a window of 1 in steps of 2: the left side has (3 - 1) // 2 + 1 = 2 results, the
# right side 3 // 2 = 1.
@rule
def pool_of_one_tap_is_slice(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = slice(x, every s-th), when the window has one tap"""
    return rewrites(
        pool(f, x, w),
        slice_(x, every_nth(x.type, w)),
        is_one_of(f.name, ("max", "min", "prod")),
        typing.cast(bool, all_are(w.sizes, 1) & ~w.has_border),
    )
