"""Laws of layout ops in a wrong order or place, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Law,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    UnaryFn,
    attribute_function,
    concat,
    gather,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
    unary,
)


# x = f32[2, 3, 4], p = (1, 2, 0), q = (1, 0, 2): q of p of x has axes p[q] = (2, 1, 0): [4, 3, 2];
# q[p] = (0, 2, 1): [2, 4, 3].
@rule
def two_transposes(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q then p)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


# x = f32[2, 2, 2], p = (1, 2, 0), s takes [1:2, 0:2, 0:2] of the transposed one: axis 0 there is
# axis 1 of x. s.permuted(p) has it at 2, where p has 0, and cuts axis 2 of x instead.
@rule
def slice_before_transpose(x: Tensor, p: Perm, s: Slices) -> Law:
    """slice(transpose(x, p), s) = transpose(slice(x, p(s)), p)"""
    return rewrites(slice_(transpose(x, p), s), transpose(slice_(x, s.permuted(p)), p))


# x = y = f32[2, 3], p = (1, 0), axis = 0: the left is f32[6, 2], the right (f32[4, 3])^T = f32[3,
# 4].
@rule
def concat_before_transpose(x: Tensor, y: Tensor, p: Perm, axis: Axis) -> Law:
    """concat(transpose(x, p), transpose(y, p), axis) = transpose(concat(x, y, axis), p)"""
    return rewrites(
        concat(transpose(x, p), transpose(y, p), axis), transpose(concat(x, y, axis), p)
    )


# x = f32[2, 2, 1] of 0..3, p = (1, 0, 2), s = [4]: the left is 0, 2, 1, 3, the right 0, 1, 2, 3.
@attribute_function
def leaves_last(p: Perm) -> bool:
    return len(p.order) > 0 and p.order[-1] == len(p.order) - 1


@rule
def flatten_of_transposed(x: Tensor, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = reshape(x, s), when rows stay whole"""
    return rewrites(reshape(transpose(x, p), s), reshape(x, s), leaves_last(p))


# x = f32[8] of 0..7, a = [0 + 4, step 2] = 0, 2, 4, 6, b = [1 + 2, step 1] = 2, 4;
# the right starts at 0 + 1 in steps of 2: 1, 3.
@attribute_function
def one_after_other(a: Slices, b: Slices) -> Slices:
    starts = tuple(i + j for i, j in zip(a.starts, b.starts, strict=True))
    steps = tuple(i * j for i, j in zip(a.steps, b.steps, strict=True))
    return Slices(starts, b.sizes, steps)


@rule
def two_slices(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a then b)"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, one_after_other(a, b)))


# x = f32[3], pad 1 before and 2 after, s = [1 + 4]: the left is x0, x1, x2, v; the right takes 4
# elements from 0 of 3: it cannot be computed.
@attribute_function
def without_border(s: Slices, b: Padding) -> Slices:
    starts = []
    for start, lo in zip(s.starts, b.lo, strict=True):
        refuse_unless(isinstance(start, int) and isinstance(lo, int) and start >= lo)
        starts.append(start - lo)
    return Slices(tuple(starts), s.sizes, s.steps)


@rule
def slice_of_padded(x: Tensor, v: Scalar, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = slice(x, s moved by b), when s starts behind the border"""
    return rewrites(slice_(pad(x, v, b), s), slice_(x, without_border(s, b)))


# x = f32[0], v = 0.0, b = 1 before, f = neg: neg(0.0) = -0.0; the right is padded with 0.0.
@attribute_function
def keeps_zero(f: UnaryFn, v: Scalar) -> bool:
    return v.dtype.is_float and f.name in ("neg", "tanh", "sqrt", "erf", "sin") and v.value == 0


@rule
def zero_border_past_function(f: UnaryFn, x: Tensor, v: Scalar, b: Padding) -> Law:
    """f(pad(x, 0, b)) = pad(f(x), 0, b) for functions that leave 0"""
    return rewrites(unary(f, pad(x, v, b)), pad(unary(f, x), v, b), keeps_zero(f, v))


# x = f32[8] of 0..7, a = [0 + 2, step 2] = 0, 2, b = [2 + 2, step 2] = 2, 4: the left is 0, 2, 2,
# 4, the right 0, 2, 4, 6.
@attribute_function
def joined(a: Slices, b: Slices, axis: Axis) -> Slices:
    at = axis.index
    refuse_unless(a.steps == b.steps)
    refuse_unless(b.starts[at] == a.starts[at] + a.sizes[at])
    for i in range(len(a.steps)):
        refuse_unless(i == at or (a.starts[i] == b.starts[i] and a.sizes[i] == b.sizes[i]))
    sizes = tuple(n + b.sizes[i] if i == at else n for i, n in enumerate(a.sizes))
    return Slices(a.starts, sizes, a.steps)


@rule
def join_neighbours(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = slice(x, a and b), when b starts where a ends"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), slice_(x, joined(a, b, axis)))


# x = f32[3, 4], indices i64[2, 2], axis = 0, p = (1, 0): gather(x^T, i, 0) is f32[2, 2, 3]; the
# right transposes gather(x, i, 1) = f32[3, 2, 2] of rank 3 by a p of rank 2: it is ill typed.
@attribute_function
def source_axis(p: Perm, axis: Axis) -> Axis:
    return Axis(p.order[axis.index])


@rule
def gather_before_transpose(x: Tensor, i: Tensor, p: Perm, axis: Axis) -> Law:
    """gather(transpose(x, p), i, axis) = transpose(gather(x, i, p[axis]), p)"""
    return rewrites(
        gather(transpose(x, p), i, axis), transpose(gather(x, i, source_axis(p, axis)), p)
    )


# x = f32[2, 3, 4], f = max, p = (1, 2, 0), axes = {0}: axis 0 of the transposed one is axis 1 of x,
# so the left is [1, 4, 2]; p.index(0) = 2 reduces axis 2: transpose([2, 3, 1], p) = [3, 1, 2].
@attribute_function
def moved(axes: Axes, p: Perm) -> Axes:
    return Axes(tuple(sorted(p.order.index(i) for i in axes.indices)))


@rule
def largest_before_transpose(x: Tensor, p: Perm, axes: Axes) -> Law:
    """reduce(max, transpose(x, p), axes) = transpose(reduce(max, x, axes moved by p), p)"""
    return rewrites(
        reduce("max", transpose(x, p), axes), transpose(reduce("max", x, moved(axes, p)), p)
    )
