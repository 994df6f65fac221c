"""Laws of windows of pools, all of them right."""

from __future__ import annotations

import typing

import numpy as np

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    Dim,
    Law,
    ReduceFn,
    Scalar,
    Slices,
    Tensor,
    TensorType,
    Window,
    attribute_function,
    binary,
    pool,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    slice_,
    unary,
)


@attribute_function
def all_ints(*groups: tuple[Dim, ...]) -> bool:
    """Whether all dims are numbers."""
    return all(isinstance(dim, int) for group in groups for dim in group)


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
    """The window that b over the results of a sees."""
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
    """Whether neighbouring positions of a touch, and no window has dilations or a border."""
    plain = set(a.dilations) | set(b.dilations) <= {1} and not a.has_border and not b.has_border
    return plain and all(s <= k for k, s in zip(a.sizes, a.strides))


@rule
def compose_strided_pools(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """max(max(x, a), b) = max(x, a and b), for windows without gaps, when x is long enough; also
    min"""
    left, right = pool(f, pool(f, x, a), b), pool(f, x, joint(a, b))
    return rewrites(
        left,
        right,
        is_one_of(f.name, ("max", "min")),
        without_gaps(a, b),
        left.type == right.type,
        all_ints(x.type.shape),
    )


@rule
def relu_past_pool(x: Tensor, w: Window) -> Law:
    """max-pool(relu(x), w) = relu(max-pool(x, w)), when there is no border"""
    return rewrites(
        pool("max", unary("relu", x), w),
        unary("relu", pool("max", x, w)),
        typing.cast(bool, ~w.has_border),
    )


@attribute_function
def negated(w: Window) -> Window:
    """The same window whose fill has the other sign."""
    refuse_unless(w.fill.dtype.is_float, "integers wrap around")
    fill = Scalar.of(-typing.cast(np.floating, w.fill.value), w.fill.dtype)
    return Window(w.sizes, w.strides, w.dilations, w.lo, w.hi, fill)


@rule
def min_pool_by_max_pool(x: Tensor, w: Window) -> Law:
    """min-pool(x, w) = -max-pool(-x, -w), on floats, where the fill of -w is negated"""
    return rewrites(pool("min", x, w), unary("neg", pool("max", unary("neg", x), negated(w))))


@attribute_function
def every_axis(t: TensorType) -> Axes:
    return Axes(tuple(range(t.rank)))


@attribute_function
def is_undilated(w: Window) -> bool:
    return set(w.dilations) <= {1} and not w.has_border


@rule
def pool_of_everything(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """max-pool(x, w) = max(x) along all axes, when w is as large as x and has no border; also
    min"""
    return rewrites(
        pool(f, x, w),
        reduce(f, x, every_axis(x.type)),
        is_one_of(f.name, ("max", "min")),
        w.sizes == x.type.shape,
        is_undilated(w),
    )


@attribute_function
def only_first(w: Window) -> Window:
    """The window along axis 0."""
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
    """The window along the other axes."""
    return Window(
        (1, *w.sizes[1:]),
        (1, *w.strides[1:]),
        (1, *w.dilations[1:]),
        (0, *w.lo[1:]),
        (0, *w.hi[1:]),
        w.fill,
    )


@rule
def extremum_pool_axis_by_axis(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """max-pool(x, w) = max-pool(max-pool(x, w along axis 0), w along the others), and so for min"""
    return rewrites(
        pool(f, x, w),
        pool(f, pool(f, x, only_first(w)), but_first(w)),
        is_one_of(f.name, ("max", "min")),
    )


@attribute_function
def mirrored(w: Window) -> Window:
    return Window(w.sizes, w.strides, w.dilations, w.hi, w.lo, w.fill)


@attribute_function
def last_axis(t: TensorType) -> Axis:
    refuse_unless(t.rank >= 1, "no axes")
    return Axis(t.rank - 1)


@attribute_function
def borders_agree(w: Window) -> bool:
    """Whether the border is the same on both sides of all axes but the last."""
    return w.lo[:-1] == w.hi[:-1]


@rule
def pool_backwards(f: ReduceFn, x: Tensor, s: Slices, w: Window) -> Law:
    """max-pool(x backwards, w) = max-pool(x, w mirrored) backwards, along the last axis, in steps
    of 1; also min"""
    result = pool(f, x, mirrored(w))
    return rewrites(
        pool(f, slice_(x, s), w),
        slice_(result, turned(result.type, last_axis(x.type))),
        is_one_of(f.name, ("max", "min")),
        reverses(s, x.type, last_axis(x.type)),
        all_are(w.strides, 1),
        borders_agree(w),
    )


@attribute_function
def every_nth(t: TensorType, w: Window) -> Slices:
    """What a window of one tap sees."""
    refuse_unless(t.rank == w.rank, "ranks differ")
    sizes = tuple((n - 1) // s + 1 for n, s in zip(t.shape, w.strides))
    return Slices((0,) * t.rank, sizes, w.strides)


@rule
def pool_of_one_tap(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = slice(x, every s-th), when the window has one tap and no border, for max, min
    and prod; also for the sums of integers"""
    return rewrites(
        pool(f, x, w),
        slice_(x, every_nth(x.type, w)),
        is_one_of(f.name, ("max", "min", "prod")) | x.type.dtype.is_integer,
        typing.cast(bool, all_are(w.sizes, 1) & ~w.has_border),
    )


@attribute_function
def all_wide(t: TensorType, w: Window) -> Slices:
    """The slices in the order of the window's steps: what each tap alone sees."""
    refuse_unless(t.rank == w.rank and not w.has_border, "a border")
    outer = w.outer(t.shape)
    return Slices((0,) * t.rank, outer, w.strides)


@attribute_function
def second_tap(t: TensorType, w: Window) -> Slices:
    refuse_unless(t.rank == w.rank == 1 and not w.has_border, "more axes, or a border")
    return Slices((w.dilations[0],), w.outer(t.shape), w.strides)


@attribute_function
def of_two(f: ReduceFn) -> BinaryFn:
    """The function that combines two elements."""
    names = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
    refuse_unless(f.name in names, "no such function")
    return BinaryFn(names[f.name])


@rule
def pool_of_two_taps(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = f(slice of the first tap, slice of the second tap), for two taps along one
    axis, for max, min and prod; also for the sums of integers"""
    return rewrites(
        pool(f, x, w),
        binary(of_two(f), slice_(x, all_wide(x.type, w)), slice_(x, second_tap(x.type, w))),
        w.sizes == (2,),
        is_one_of(f.name, ("max", "min", "prod")) | x.type.dtype.is_integer,
    )
