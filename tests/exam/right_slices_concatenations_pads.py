"""Laws of slices, concatenations and pads, all of them right."""

from __future__ import annotations

from satura.language import (
    Axis,
    Dim,
    Law,
    Padding,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Unpadded,
    attribute_function,
    broadcast,
    concat,
    equates,
    pad,
    refuse_unless,
    replaces,
    reshape,
    rewrites,
    rule,
    slice_,
)


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


@rule
def turn_around_twice(x: Tensor, s: Slices, axis: Axis, y: Tensor) -> Law:
    """concat(x backwards backwards, y, axis) = concat(x, y, axis), backwards along the axis"""
    return rewrites(
        concat(slice_(slice_(x, s), s), y, axis), concat(x, y, axis), reverses(s, x.type, axis)
    )


@rule
def turn_concat_around(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """concat(x, y) backwards = concat(y backwards, x backwards)"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        concat(slice_(y, turned(y.type, axis)), slice_(x, turned(x.type, axis)), axis),
        reverses(s, concat(x, y, axis).type, axis),
    )


@rule
def concat_is_associative(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """concat(concat(x, y, a), z, a) = concat(x, concat(y, z, a), a), both ways"""
    return equates(concat(concat(x, y, axis), z, axis), concat(x, concat(y, z, axis), axis))


@rule
def drop_empty_part(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y, axis) = x, when y has nothing along the axis"""
    return replaces(concat(x, y, axis), x, y.type.shape[axis.index] == 0)


@attribute_function
def is_just_inside(s: Slices, b: Padding, t: TensorType) -> bool:
    return (
        len(s.sizes) == len(b.lo) == t.rank
        and s.starts == b.lo
        and s.sizes == t.shape
        and set(s.steps) <= {1}
    )


@rule
def crop_what_was_padded(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = x, when s takes what b stands around"""
    return rewrites(slice_(pad(x, v, b), s), x, is_just_inside(s, b, x.type))


@attribute_function
def same_bits(c: Scalar, v: Scalar) -> bool:
    return c.dtype == v.dtype and c.bits == v.bits


@attribute_function
def widened(s: Shape, b: Padding) -> Shape:
    refuse_unless(len(s.dims) == len(b.lo), "ranks differ")
    return Shape(tuple(lo + n + hi for lo, n, hi in zip(b.lo, s.dims, b.hi)))


@attribute_function
def are_ones(u: Shape) -> bool:
    return set(u.dims) <= {1}


@rule
def pad_constant_by_itself(c: Scalar, u: Shape, s: Shape, v: Scalar, b: Padding) -> Law:
    """pad(c everywhere, v, b) = c everywhere, when c and v have the same bits"""
    return rewrites(
        pad(broadcast(reshape(c, u), s), v, b),
        broadcast(reshape(c, u), widened(s, b)),
        same_bits(c, v),
        are_ones(u),
    )


@attribute_function
def leaves(b: Padding, axis: Axis) -> bool:
    return axis.index < len(b.lo) and b.lo[axis.index] == 0 and b.hi[axis.index] == 0


@rule
def pad_out_of_concat(x: Unpadded, y: Tensor, v: Tensor, b: Padding, axis: Axis) -> Law:
    """concat(pad(x, v, b), pad(y, v, b), axis) = pad(concat(x, y, axis), v, b), when b leaves the
    axis"""
    return rewrites(
        concat(pad(x, v, b), pad(y, v, b), axis), pad(concat(x, y, axis), v, b), leaves(b, axis)
    )


@attribute_function
def before(t: TensorType, axis: Axis) -> Padding:
    none = (0,) * t.rank
    return Padding((*none[: axis.index], 1, *none[axis.index + 1 :]), none)


@attribute_function
def is_one_along(s: Shape, axis: Axis) -> bool:
    return axis.index < len(s.dims) and s.dims[axis.index] == 1


@rule
def pad_as_concat_of_scalar(c: Scalar, u: Shape, s: Shape, x: Tensor, axis: Axis) -> Law:
    """concat(c everywhere, x, axis) = pad(x, c, one before the axis), when there is one c along
    it"""
    return rewrites(
        concat(broadcast(reshape(c, u), s), x, axis),
        pad(x, c, before(x.type, axis)),
        is_one_along(s, axis),
    )
