"""Laws of pads and broadcasts, all of them wrong."""

from __future__ import annotations

import typing

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    Elementwise,
    Law,
    Others,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Some,
    Tensor,
    UnaryFn,
    Varying,
    attribute_function,
    binary,
    broadcast,
    concat,
    family,
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
def added(a: Padding, b: Padding) -> Padding:
    """Both pads in one."""
    refuse_unless(len(a.lo) == len(b.lo), "ranks differ")
    return Padding(
        tuple(m + n for m, n in zip(a.lo, b.lo)), tuple(m + n for m, n in zip(a.hi, b.hi))
    )


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


@attribute_function
def disjoint(a: Padding, b: Padding) -> bool:
    """Whether no axis is padded by both."""
    return len(a.lo) == len(b.lo) and not any(
        (m != 0 or n != 0) and (o != 0 or p != 0) for m, n, o, p in zip(a.lo, a.hi, b.lo, b.hi)
    )


# x = f32[1, 1] = 0, v = 1.0, a = [1:0, 0:0], w = 2.0, b = [0:0, 1:0]: left [[2, 1], [2, 0]], right
# [[1, 1], [1, 0]].
@rule
def compose_pads_of_other_axes(x: Tensor, v: Scalar, w: Scalar, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), w, b) = pad(x, v, a + b), when no axis is padded twice"""
    return rewrites(pad(pad(x, v, a), w, b), pad(x, v, added(a, b)), disjoint(a, b))


# x = y = f32[0], v = 2.0, b = [1:0], f = mul: left 2 * 2 = 4.0, right 2.0.
@rule
def pad_out_of_binary_with_one_value(
    f: BinaryFn, x: Tensor, y: Tensor, v: Scalar, b: Padding
) -> Law:
    """f(pad(x, v, b), pad(y, v, b)) = pad(f(x, y), v, b), for max, min and mul"""
    return rewrites(
        binary(f, pad(x, v, b), pad(y, v, b)),
        pad(binary(f, x, y), v, b),
        is_one_of(f.name, ("max", "min", "mul")),
        x.type == y.type,
    )


# x = f32[0], b = [1:0], f = neg: left -(0.0) = -0.0, right 0.0. It holds for integers.
@rule
def pad_of_zeros_out_of_unary(f: UnaryFn, x: Tensor, b: Padding) -> Law:
    """f(pad(x, 0, b)) = pad(f(x), 0, b), for functions with f(0) = 0"""
    return rewrites(
        unary(f, pad(x, 0, b)),
        pad(unary(f, x), 0, b),
        is_one_of(f.name, ("neg", "abs", "relu", "sign", "floor", "sin")),
    )


@attribute_function
def leaves_start(b: Padding, axis: Axis) -> bool:
    return axis.index < len(b.lo) and b.lo[axis.index] == 0


# x = y = f32[1] = 1, v = 0.0, b = [0:1], axis 0: left 1, 0, 1, 0, right 1, 1, 0. (With b before x
# alone it would fit.)
@rule
def pad_out_of_concat_that_it_parts(x: Tensor, y: Tensor, v: Scalar, b: Padding, axis: Axis) -> Law:
    """concat(pad(x, v, b), pad(y, v, b), axis) = pad(concat(x, y, axis), v, b), when b adds nothing
    before the axis"""
    return rewrites(
        concat(pad(x, v, b), pad(y, v, b), axis),
        pad(concat(x, y, axis), v, b),
        leaves_start(b, axis),
    )


@attribute_function
def shifted(s: Slices, b: Padding) -> Slices:
    refuse_unless(len(s.sizes) == len(b.lo), "ranks differ")
    refuse_unless(all(isinstance(n, int) for n in (*s.starts, *b.lo)), "open sizes")
    starts = tuple(m - n for m, n in zip(s.starts, b.lo))
    refuse_unless(
        all(typing.cast(int, start) >= 0 for start in starts), "it reaches into the border"
    )
    return Slices(starts, s.sizes, s.steps)


# x = f32[1], b = [0:1], s = [0+2]: it starts in x and ends in the border; the right side takes two
# of one.
@rule
def slice_that_starts_inside_pad(x: Tensor, v: Scalar, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = slice(x, s shifted by b), when s starts behind the border"""
    return rewrites(slice_(pad(x, v, b), s), slice_(x, shifted(s, b)))


@attribute_function
def same_value(c: Scalar, v: Scalar) -> bool:
    return bool(c.value == v.value)


@attribute_function
def widened(s: Shape, b: Padding) -> Shape:
    refuse_unless(len(s.dims) == len(b.lo), "ranks differ")
    return Shape(tuple(lo + n + hi for lo, n, hi in zip(b.lo, s.dims, b.hi)))


# c = 0.0 in f32[1], v = -0.0, b = [1:0]: the values compare equal; left -0.0, 0.0, right 0.0, 0.0.
@rule
def pad_constant_by_equal(c: Scalar, u: Shape, s: Shape, v: Scalar, b: Padding) -> Law:
    """pad(c everywhere, v, b) = c everywhere, when c = v"""
    return rewrites(
        pad(broadcast(reshape(c, u), s), v, b),
        broadcast(reshape(c, u), widened(s, b)),
        same_value(c, v),
    )


@attribute_function
def narrowed(s: Shape, b: Padding) -> Shape:
    refuse_unless(len(s.dims) == len(b.lo), "ranks differ")
    refuse_unless(all(isinstance(n, int) for n in (*s.dims, *b.lo, *b.hi)), "open sizes")
    dims = tuple(n - lo - hi for lo, n, hi in zip(b.lo, s.dims, b.hi))
    refuse_unless(all(typing.cast(int, n) >= 0 for n in dims), "the pad is larger")
    return Shape(dims)


# x = f32[0], v = 1.0, b = [1:0], s = [3]: padded x is f32[1] = 1.0, which is repeated to 1, 1, 1.
# The right side would repeat f32[0] to [2].
@rule
def pad_out_of_broadcast_before(x: Tensor, v: Scalar, b: Padding, s: Shape) -> Law:
    """broadcast(pad(x, v, b), s) = pad(broadcast(x, s less b), v, b)"""
    return rewrites(broadcast(pad(x, v, b), s), pad(broadcast(x, narrowed(s, b)), v, b))


@attribute_function
def with_ones(s: Shape, a: Axes) -> Shape:
    refuse_unless(all(i < len(s.dims) for i in a.indices), "no such axis")
    return Shape(tuple(1 if i in a.indices else n for i, n in enumerate(s.dims)))


# x = f32[1] = 3, s = [0], axes [0]: the max of nothing is -inf, the right side is 3.
@rule
def extremum_of_repeated(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """f(broadcast(x, s), a) = broadcast(f(x, a), s with 1 at a), for max and min: repetitions do
    not count"""
    return rewrites(
        reduce(f, broadcast(x, s), a),
        broadcast(reduce(f, x, a), with_ones(s, a)),
        is_one_of(f.name, ("max", "min")),
    )


# x = f32[2] = 1, 2, s = t = [2]: nothing is repeated; the left side is 1, 2, 1, 2, and x does not
# broadcast to [4].
@rule
def concat_of_broadcasts_of_any(x: Tensor, s: Shape, t: Shape, axis: Axis) -> Law:
    """concat(broadcast(x, s), broadcast(x, t), axis) = broadcast(x, s and t)"""
    whole = concat(broadcast(x, s), broadcast(x, t), axis)
    return rewrites(whole, broadcast(x, Shape(whole.type.shape)))


# f = binary add, x = f32[1], s = [2], y = f32[2]: the right side adds f32[1] and f32[2], whose
# shapes differ. So for all readings: the condition of a select or the other number is of the full
# shape.
@family
def broadcast_out_of_some(f: Elementwise, xs: Some[Varying], ys: Others[Tensor], s: Shape) -> Law:
    """f(broadcast(x, s)…, y…) = broadcast(f(x…, y…), s)"""
    return rewrites(f(xs.each(broadcast, s), ys), broadcast(f(xs, ys), s))
