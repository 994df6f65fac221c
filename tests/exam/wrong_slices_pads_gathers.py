"""Laws of slices, pads and gathers, all of them wrong."""

import typing

from satura.language import (
    Axis,
    Constant,
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
    binary,
    broadcast,
    concat,
    constant,
    gather,
    has_value,
    known_at_least,
    pad,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
)


@attribute_function
def replaced(s: Slices, axis: Axis, start: Dim, size: Dim, step: int) -> Slices:
    """`s` with another entry at `axis`."""
    starts, sizes, steps = list(s.starts), list(s.sizes), list(s.steps)
    starts[axis.index], sizes[axis.index], steps[axis.index] = start, size, step
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@attribute_function
def lies_behind(s: Slices, axis: Axis, first: TensorType, whole: TensorType) -> bool:
    """Whether s starts behind the first part and ends in the whole."""
    start, size = s.starts[axis.index], s.sizes[axis.index]
    return known_at_least(start - first.shape[axis.index], 0) and known_at_least(
        whole.shape[axis.index] - start - size, 0
    )


# x = [0,1], y = [2,3], s = [2+2*-1]: left [2,1]; right slice(y, [0+2*-1]) would read y[-1]:
# it has no value.
@rule
def slice_of_second(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y, axis), s) = slice(y, s shifted), when s starts in y and ends in the
    whole"""
    whole = concat(x, y, axis)
    return rewrites(
        slice_(whole, s),
        slice_(
            y,
            replaced(
                s,
                axis,
                s.starts[axis.index] - x.type.shape[axis.index],
                s.sizes[axis.index],
                s.steps[axis.index],
            ),
        ),
        lies_behind(s, axis, x.type, whole.type),
    )


@attribute_function
def one_after_other(a: Slices, b: Slices) -> Slices:
    """a, then b."""
    return Slices(
        tuple(i + j for i, j in zip(a.starts, b.starts)),
        b.sizes,
        tuple(i * j for i, j in zip(a.steps, b.steps)),
    )


# x = arange(8), a = [0+4*2] -> [0,2,4,6], b = [1+2] -> [2,4]; right [1+2*2] -> [1,3].
@rule
def compose_two_slices(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, starts added and steps multiplied), where that has a
    value"""
    right = slice_(x, one_after_other(a, b))
    return rewrites(slice_(slice_(x, a), b), right, has_value(right.type))


@attribute_function
def follows(a: Slices, b: Slices, axis: Axis) -> bool:
    """Whether b begins where a ends, and both are alike elsewhere."""
    i = axis.index
    others = [k for k in range(len(a.sizes)) if k != i]
    return (
        b.starts[i] == a.starts[i] + a.sizes[i]
        and a.steps == b.steps
        and all(a.starts[k] == b.starts[k] and a.sizes[k] == b.sizes[k] for k in others)
    )


# x = arange(7), a = [0+2*2] -> [0,2], b = [2+2*2] -> [2,4]: left [0,2,2,4], right [0+4*2] ->
# [0,2,4,6].
@rule
def join_following_slices(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = slice(x, a and b), when b begins where a ends"""
    right = slice_(
        x,
        replaced(
            a,
            axis,
            a.starts[axis.index],
            a.sizes[axis.index] + b.sizes[axis.index],
            a.steps[axis.index],
        ),
    )
    return rewrites(
        concat(slice_(x, a), slice_(x, b), axis), right, follows(a, b, axis), has_value(right.type)
    )


@attribute_function
def without_border(s: Slices, b: Padding, t: TensorType) -> Slices:
    """s shifted, where it lies inside."""
    for start, size, step, lo, n in zip(s.starts, s.sizes, s.steps, b.lo, t.shape):
        refuse_unless(step > 0 and known_at_least(start - lo, 0), "reaches before")
        refuse_unless(known_at_least(lo + n - start - size, 0), "reaches behind")
    return Slices(tuple(i - lo for i, lo in zip(s.starts, b.lo)), s.sizes, s.steps)


# x = [1,2,3,4], c = 0, b = [0:2], s = [0+3*2]: 0+3 <= 4, so it fires: left [1,3,0]; right would
# read x[4]: no value.
@rule
def slice_leaves_border(x: Unpadded, c: Scalar, b: Padding, s: Slices) -> Law:
    """slice(pad(x, c, b), s) = slice(x, s shifted by b), when s lies between the borders"""
    return rewrites(slice_(pad(x, c, b), s), slice_(x, without_border(s, b, x.type)))


@attribute_function
def of_other_axes(a: Padding, b: Padding) -> Padding:
    """The sum, where no axis is padded by both."""
    for axis in range(len(a.lo)):
        of_a = a.lo[axis] == 0 and a.hi[axis] == 0
        of_b = b.lo[axis] == 0 and b.hi[axis] == 0
        refuse_unless(of_a or of_b, "both pad an axis")
    return Padding(
        tuple(i + j for i, j in zip(a.lo, b.lo)), tuple(i + j for i, j in zip(a.hi, b.hi))
    )


# x = [[7]], c = 0, a = [0:1, 0:0], d = 1, b = [0:0, 0:1]: left [[7,1],[0,1]], right [[7,0],[0,0]].
@rule
def merge_pads_of_other_axes(x: Tensor, c: Scalar, d: Scalar, a: Padding, b: Padding) -> Law:
    """pad(pad(x, c, a), d, b) = pad(x, c, a + b), when they pad different axes"""
    return rewrites(pad(pad(x, c, a), d, b), pad(x, c, of_other_axes(a, b)))


@attribute_function
def is_plus_zero(c: Scalar) -> bool:
    """Whether all bits are 0."""
    return not any(c.bits)


# x f32[1] = [3], pad 0.0 after, factor d = -1.0: left [-3, -0.0] (0.0 * -1.0), right [-3, 0.0].
@rule
def scale_before_zero_pad(x: Tensor, c: Scalar, b: Padding, d: Scalar, o: Shape, s: Shape) -> Law:
    """pad(x, 0, b) * d everywhere = pad(x * d everywhere, 0, b), for floats"""
    return rewrites(
        binary("mul", pad(x, c, b), broadcast(reshape(d, o), s)),
        pad(binary("mul", x, broadcast(reshape(d, o), Shape(x.type.shape))), c, b),
        is_plus_zero(c) & x.type.dtype.is_float,
    )


@attribute_function
def all_below(i: Constant, n: Dim) -> bool:
    """Whether all indices are below n."""
    refuse_unless(isinstance(n, int), "an open size")
    return all(int(each) < typing.cast(int, n) for each in i.array.flat)


# x = [1,2], y = [3], i = [-1] (i64): -1 < 2, left concat[-1] = 3, right x[-1] = 2.
@rule
def gather_from_first_part(x: Tensor, y: Tensor, i: Constant, axis: Axis) -> Law:
    """gather(concat(x, y, axis), i, axis) = gather(x, i, axis), for indices below x's extent"""
    return rewrites(
        gather(concat(x, y, axis), constant(i), axis),
        gather(x, constant(i), axis),
        all_below(i, x.type.shape[axis.index]),
    )


# x i32[3,3,3] = arange(27), i = 0 (0-d), a = 0, j = [2,0,1], b = 1: left x[0][:, j] reorders the
# last axis: row 0 = [2,0,1]; right x[0][j, :] reorders the middle axis: row 0 = [6,7,8].
@rule
def exchange_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), for a < b, where the types
    agree"""
    left = gather(gather(x, i, a), j, b)
    right = gather(gather(x, j, b), i, a)
    return rewrites(left, right, a.index < b.index, left.type == right.type)


@attribute_function
def only_at(s: Slices, axis: Axis) -> Slices:
    """The entry of one axis."""
    k = axis.index
    return Slices((s.starts[k],), (s.sizes[k],), (s.steps[k],))


# x = [[1,2,3]], i = [0], a = 0, s = [0+1, 2+3*-1]: left [[3,2,1]], right [[1,2,3]], of one type.
@rule
def slice_into_gathered_indices(x: Tensor, i: Tensor, a: Axis, s: Slices) -> Law:
    """slice(gather(x, i, a), s) = gather(x, slice(i, s at a), a), for i of rank 1, where types
    agree"""
    left = slice_(gather(x, i, a), s)
    right = gather(x, slice_(i, only_at(s, a)), a)
    return rewrites(left, right, i.type.rank == 1, left.type == right.type)


@attribute_function
def reverses(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s is all of t, backwards along `axis`."""
    for k, (start, size, step, n) in enumerate(zip(s.starts, s.sizes, s.steps, t.shape)):
        if k == axis.index:
            if not (step == -1 and size == n and start == n - 1):
                return False
        elif not (step == 1 and size == n and start == 0):
            return False
    return True


@attribute_function
def reversed_(t: TensorType, axis: Axis) -> Slices:
    """All of t, backwards along `axis`."""
    k = axis.index
    starts = tuple(n - 1 if i == k else 0 for i, n in enumerate(t.shape))
    return Slices(starts, t.shape, tuple(-1 if i == k else 1 for i in range(t.rank)))


# x = [1], y = [2], s = [1+2*-1]: left [2,1], right [1,2].
@rule
def reverse_parts(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """reverse(concat(x, y, axis)) = concat(reverse(x), reverse(y), axis), along the axis"""
    whole = concat(x, y, axis)
    return rewrites(
        slice_(whole, s),
        concat(slice_(x, reversed_(x.type, axis)), slice_(y, reversed_(y.type, axis)), axis),
        reverses(s, whole.type, axis),
    )
