"""Laws of borders, dilations, strides and wrapping sums of windows, all of them wrong."""

import typing
from dataclasses import replace

from satura.language import (
    DType,
    Groups,
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
    attribute_function,
    binary,
    broadcast,
    cast,
    conv,
    pad,
    pool,
    refuse_unless,
    rewrites,
    rule,
    slice_,
    transpose,
)


# x = f32[1, 1, 1, 1] = [[[[1]]]], b = 1 before axis 0 (the batch), w of one tap: the left has batch
# 2, the right 1.
@attribute_function
def spatial_border(w: Window, b: Padding, v: Scalar) -> Window:
    refuse_unless(len(b.lo) == w.rank + 2)
    return w.padded(Padding(b.lo[1:-1], b.hi[1:-1]), v)


@rule
def pad_into_border_of_conv(
    x: Tensor, y: Tensor, v: Scalar, b: Padding, w: Window, g: Groups
) -> Law:
    """conv(pad(x, v, b), y, w) = conv(x, y, w with the border b of v)"""
    return rewrites(conv(pad(x, v, b), y, w, g), conv(x, y, spatial_border(w, b, v), g))


# x = f32[3, 3] of 0..8, p = (1, 0), sizes (2, 2), dilations (1, 2): of the transposed one, axis 0
# (axis 1 of x) has dilation 1: the left is [2, 1]. The right leaves dilation 2 on axis 1 of x: [2,
# 1]^T.
@attribute_function
def turned(w: Window, p: Perm) -> Window:
    q = p.inverse
    return replace(
        w,
        sizes=q.apply(w.sizes),
        strides=q.apply(w.strides),
        lo=q.apply(w.lo),
        hi=q.apply(w.hi),
    )


@rule
def pool_before_transpose(x: Tensor, p: Perm, w: Window) -> Law:
    """pool(max, transpose(x, p), w) = transpose(pool(max, x, w turned back), p)"""
    return rewrites(pool("max", transpose(x, p), w), transpose(pool("max", x, turned(w, p)), p))


# x = f32[5] of 0..4, size 2, dilation 2, stride 1, s = [0 + 1]: the left is max(x0, x2) = 2.0; the
# right slices (1 - 1) * 1 + 2 = 2 elements, which the window of reach 3 does not fit.
@attribute_function
def seen_by(s: Slices, w: Window) -> Slices:
    refuse_unless(not w.has_border and set(s.steps) <= {1})
    starts, sizes = [], []
    for axis in range(w.rank):
        size = s.sizes[axis]
        refuse_unless(isinstance(size, int) and size >= 1)
        starts.append(s.starts[axis] * w.strides[axis])
        sizes.append((size - 1) * w.strides[axis] + w.sizes[axis])
    return Slices(tuple(starts), tuple(sizes), (1,) * w.rank)


@rule
def slice_before_pool(f: ReduceFn, x: Tensor, w: Window, s: Slices) -> Law:
    """slice(pool(f, x, w), s) = pool(f, slice(x, what s needs), w), without a border"""
    return rewrites(slice_(pool(f, x, w), s), pool(f, slice_(x, seen_by(s, w)), w))


# x = i8[2] = [100, 100], size 2, f = sum, t = i32: the sum in i8 wraps to -56; in i32 it is 200.
@attribute_function
def widened(w: Window, t: DType) -> Window:
    refuse_unless(w.fill.dtype.is_integer and t.is_integer)
    refuse_unless(t.bounds[0] <= int(w.fill.value) <= t.bounds[1])
    return replace(w, fill=Scalar.of(int(w.fill.value), t))


@attribute_function
def widens(x: TensorType, t: DType) -> bool:
    plain = x.dtype.is_integer and t.is_integer and not x.dtype.is_narrow and not t.is_narrow
    return plain and x.dtype.is_signed and t.is_signed and x.dtype.itemsize < t.itemsize


@rule
def widen_before_pool(f: ReduceFn, x: Tensor, w: Window, t: DType) -> Law:
    """cast(pool(f, x, w), t) = pool(f, cast(x, t), w), when t is wider"""
    return rewrites(cast(pool(f, x, w), t), pool(f, cast(x, t), widened(w, t)), widens(x.type, t))


# x = i32[1, 1] = [[1]], w = 2 by 2 with lo = (1, 1), fill 1: the left is the sum of 4 ones, 4. The
# first pass gives 2, the second adds a border of 1, which stands for 2 elements: 3.
@attribute_function
def first_axis(w: Window) -> Window:
    refuse_unless(w.rank >= 2)
    ones, zeros = (1,) * (w.rank - 1), (0,) * (w.rank - 1)
    return Window(
        (w.sizes[0], *ones),
        (w.strides[0], *ones),
        (w.dilations[0], *ones),
        (w.lo[0], *zeros),
        (w.hi[0], *zeros),
        w.fill,
    )


@attribute_function
def other_axes(w: Window) -> Window:
    refuse_unless(w.rank >= 2)
    return Window(
        (1, *w.sizes[1:]),
        (1, *w.strides[1:]),
        (1, *w.dilations[1:]),
        (0, *w.lo[1:]),
        (0, *w.hi[1:]),
        w.fill,
    )


@rule
def sum_axis_by_axis(x: Tensor, w: Window) -> Law:
    """pool(sum, x, w) = pool(sum, pool(sum, x, w along axis 0), w along the others) on integers"""
    return rewrites(
        pool("sum", x, w),
        pool("sum", pool("sum", x, first_axis(w)), other_axes(w)),
        x.type.dtype.is_integer,
    )


# x = f32[1] = [-5.0], pad 1 before with 0.0, size 2: the left is max(0, -5) = 0.0; the right's
# border of -inf gives -5.0.
@attribute_function
def neutral_border(w: Window, b: Padding) -> Window:
    import math

    refuse_unless(not w.has_border and len(b.lo) == w.rank)
    refuse_unless(all(isinstance(n, int) for n in (*b.lo, *b.hi)))
    refuse_unless(w.fill.dtype.is_float)
    lo, hi = typing.cast(tuple[int, ...], b.lo), typing.cast(tuple[int, ...], b.hi)
    return replace(w, lo=tuple(lo), hi=tuple(hi), fill=Scalar.of(-math.inf, w.fill.dtype))


@rule
def pad_into_max_pool(x: Tensor, v: Scalar, b: Padding, w: Window) -> Law:
    """pool(max, pad(x, v, b), w) = pool(max, x, w with the border b)"""
    return rewrites(pool("max", pad(x, v, b), w), pool("max", x, neutral_border(w, b)))


# x = f32[1] = [1.0], b = 0 before and 1 after of 5.0, size 1, stride 2: positions 0 of (1.0, 5.0):
# the left is 1.0; with lo = 1 and hi = 0 position 0 is the border: 5.0.
@attribute_function
def added_border(w: Window, b: Padding, v: Scalar) -> Window:
    refuse_unless(len(b.lo) == w.rank and (not w.has_border or w.fill == v))
    refuse_unless(all(isinstance(n, int) for n in (*b.lo, *b.hi)))
    lo = tuple(n + m for n, m in zip(w.lo, typing.cast(tuple[int, ...], b.hi), strict=True))
    hi = tuple(n + m for n, m in zip(w.hi, typing.cast(tuple[int, ...], b.lo), strict=True))
    return replace(w, lo=lo, hi=hi, fill=v)


@rule
def uneven_pad_into_pool(f: ReduceFn, x: Tensor, v: Scalar, b: Padding, w: Window) -> Law:
    """pool(f, pad(x, v, b), w) = pool(f, x, w with a border of v added)"""
    return rewrites(pool(f, pad(x, v, b), w), pool(f, x, added_border(w, b, v)))


# x = f32[4] of 0..3, size 1, stride 3: reversed x is 3, 2, 1, 0 values 3, 0, as on the right;
# but for x = f32[5]: reversed 4, 3, 2, 1, 0 gives 4, 1; the right has 0, 3
# reversed: 3, 0. The last position ends before the last element.
@attribute_function
def reverses_all(s: Slices, t: TensorType) -> bool:
    backwards = tuple(n - 1 for n in t.shape)
    return s.starts == backwards and s.sizes == tuple(t.shape) and set(s.steps) <= {-1}


@attribute_function
def mirrored(w: Window) -> Window:
    return replace(w, lo=w.hi, hi=w.lo)


@attribute_function
def reversal(t: TensorType) -> Slices:
    return Slices(tuple(n - 1 for n in t.shape), tuple(t.shape), (-1,) * t.rank)


@rule
def pool_of_reversed(x: Tensor, s: Slices, w: Window) -> Law:
    """pool(min, reversed x, w) = reversed pool(min, x, w with its border turned round)"""
    pooled = pool("min", x, mirrored(w))
    return rewrites(
        pool("min", slice_(x, s), w),
        slice_(pooled, reversal(pooled.type)),
        reverses_all(s, x.type),
    )


# x = f32[1] = [1.0], s = [2], w of size 2 with lo = 1 and fill 7.0: the first position sees 7.0 and
# 1.0: the left is [7.0, 1.0], the right [1.0, 1.0].
@attribute_function
def windows_over(w: Window, s: Shape, t: TensorType) -> Shape:
    refuse_unless(all(n == 1 for n in t.shape))
    return Shape(w.outer(s.dims))


@rule
def pool_of_repeated(x: Tensor, s: Shape, w: Window) -> Law:
    """pool(max, broadcast(x, s), w) = broadcast(x, as many positions), for x of one element"""
    return rewrites(pool("max", broadcast(x, s), w), broadcast(x, windows_over(w, s, x.type)))


# x = f32[4] = [0, 0, 0, 9], a = size 3 (2 positions), b = size 2 with dilation 3 and hi = 1 (2
# positions), fill -inf: b sees x0 and x3 first: the left is [9, 9], the right max(x0..x2) = 0
# first.
@attribute_function
def within(a: Window, b: Window) -> bool:
    smaller = all(m >= n for m, n in zip(a.sizes, b.sizes, strict=True))
    return smaller and a.strides == b.strides and a.lo == b.lo


@rule
def larger_window_wins(x: Tensor, a: Window, b: Window) -> Law:
    """max(pool(max, x, a), pool(max, x, b)) = pool(max, x, a), when a is larger than b"""
    return rewrites(
        binary("max", pool("max", x, a), pool("max", x, b)), pool("max", x, a), within(a, b)
    )
