"""Laws of pads and gathers, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Dim,
    DType,
    Law,
    Padding,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    Window,
    attribute_function,
    binary,
    cast,
    concat,
    gather,
    pad,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    unary,
)


@attribute_function
def together(a: Padding, b: Padding) -> Padding:
    return Padding(
        tuple(i + j for i, j in zip(a.lo, b.lo)), tuple(i + j for i, j in zip(a.hi, b.hi))
    )


# x = i32[1] = [5], v = 1, w = 2, a = b = [1:0]: left [2,1,5], right [1,1,5].
@rule
def pads_of_two_values(x: Tensor, v: Tensor, w: Tensor, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), w, b) = pad(x, v, a + b)"""
    return rewrites(pad(pad(x, v, a), w, b), pad(x, v, together(a, b)))


@attribute_function
def crossed(a: Padding, b: Padding) -> Padding:
    return Padding(
        tuple(i + j for i, j in zip(a.lo, b.hi)), tuple(i + j for i, j in zip(a.hi, b.lo))
    )


# x = i32[1] = [5], v = 0, a = [1:0], b = [1:0]: left [0,0,5]; right [1:1]: [0,5,0].
@rule
def pads_crossed(x: Tensor, v: Tensor, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), v, b) = pad(x, v, [a.lo + b.hi : a.hi + b.lo])"""
    return rewrites(pad(pad(x, v, a), v, b), pad(x, v, crossed(a, b)))


@attribute_function
def keeps_zero(f: UnaryFn) -> bool:
    return f.name in ("neg", "abs", "relu", "sign", "sqrt", "tanh", "sin", "floor")


# f = neg, x = f32[0], v = 0.0, b = [1:0]: left [-0.0], right [0.0].
@rule
def zero_pad_past_odd(f: UnaryFn, x: Tensor, b: Padding) -> Law:
    """f(pad(x, 0, b)) = pad(f(x), 0, b), for f with f(0) = 0 (neg makes -0.0)"""
    return rewrites(unary(f, pad(x, 0.0, b)), pad(unary(f, x), 0.0, b), keeps_zero(f))


# x = y = f32[0], w = inf, b = [1:0]: left 0 * inf = NaN, right 0.0.
@rule
def zero_pad_absorbs(x: Tensor, y: Tensor, w: Tensor, b: Padding) -> Law:
    """pad(x, 0, b) * pad(y, w, b) = pad(x * y, 0, b)"""
    return rewrites(binary("mul", pad(x, 0.0, b), pad(y, w, b)), pad(binary("mul", x, y), 0.0, b))


# x = f32[0], b = [1:0], axes [0]: left max(0.0) = 0.0, right the empty max, -inf.
@rule
def zero_pad_under_max_of_relu(x: Tensor, b: Padding, axes: Axes) -> Law:
    """max(pad(relu(x), 0, b), axes) = max(relu(x), axes), where the types agree: relu is never
    less"""
    left = reduce("max", pad(unary("relu", x), 0.0, b), axes)
    right = reduce("max", unary("relu", x), axes)
    return rewrites(left, right, left.type == right.type)


@attribute_function
def widened(w: Window, b: Padding) -> Window:
    refuse_unless(all(isinstance(dim, int) for dim in (*b.lo, *b.hi)), "open")
    refuse_unless(not w.has_border, "it has a border")
    lo, hi = typing.cast(tuple[int, ...], b.lo), typing.cast(tuple[int, ...], b.hi)
    return Window(w.sizes, w.strides, w.dilations, lo, hi, w.fill)


# x = i32[1] = [5], v = 0, b = [1:0], w = sizes [2], no border, fill 7, f = sum: left 0 + 5, right 7
# + 5.
@rule
def pad_into_window_of_other_fill(x: Tensor, v: Scalar, b: Padding, w: Window) -> Law:
    """sum-pool(pad(x, v, b), w) = sum-pool(x, w with border b), when w had none (and any fill)"""
    return rewrites(pool("sum", pad(x, v, b), w), pool("sum", x, widened(w, b)))


@attribute_function
def only_behind(b: Padding, axis: Axis) -> bool:
    return all(lo == 0 for lo in b.lo) and all(
        hi == 0 or i == axis.index for i, hi in enumerate(b.hi)
    )


# x = i32[1] = [1], y = i32[1] = [2], v = 0, b = [0:1], axis = 0: left [1,0,2], right [1,2,0].
@rule
def pad_between_parts(x: Tensor, y: Tensor, v: Tensor, b: Padding, axis: Axis) -> Law:
    """concat(pad(x, v, b), y) = pad(concat(x, y), v, b), when b pads behind the axis only"""
    return rewrites(
        concat(pad(x, v, b), y, axis), pad(concat(x, y, axis), v, b), only_behind(b, axis)
    )


@attribute_function
def back(w: Scalar, t: TensorType) -> Scalar:
    refuse_unless(t.dtype.is_integer and not t.dtype.is_narrow, "integers")
    refuse_unless(abs(float(w.value)) < 100, "not in range")
    return Scalar.of(int(w.value), t.dtype)


# x = i32[0], dtype f32, w = 1.5, b = [1:0]: left [1.5], right f32(1) = [1.0].
@rule
def pad_value_truncated(x: Tensor, w: Scalar, d: DType, b: Padding) -> Law:
    """pad(cast(x, d), w, b) = cast(pad(x, w as an integer, b), d), for integers x and small w"""
    return rewrites(pad(cast(x, d), w, b), cast(pad(x, back(w, x.type), b), d))


@attribute_function
def all_behind(t: TensorType, s: Shape, b: Padding) -> Padding:
    refuse_unless(t.rank == 1 and len(s.dims) > 1, "one axis becomes more")
    refuse_unless(all(lo == 0 for lo in b.lo) and not b.is_zero, "only behind")
    size: Dim = 1
    for dim, hi in zip(s.dims, b.hi):
        size = size * (dim + hi)
    more = size - t.shape[0]
    refuse_unless(not isinstance(more, int) or more >= 0)
    return Padding((0,), (more,))


# x = i32[4] = 0..3, s = [2,2], v = 9, b = [0:0, 0:1]: left [[0,1,9],[2,3,9]]; right 0,1,2,3,9,9 as
# [2,3]: [[0,1,2],[3,9,9]].
@rule
def pad_flat(x: Tensor, v: Tensor, s: Shape, b: Padding) -> Law:
    """pad(reshape(x, s), v, b) = reshape(pad(x, v, all behind), ...), when b pads behind only"""
    left = pad(reshape(x, s), v, b)
    return rewrites(left, reshape(pad(x, v, all_behind(x.type, s, b)), Shape(left.type.shape)))


# x = i32[3] = [5,6,7], i = i64[2] = [1,0], j = i64[2] = [1,1]: left i[j] = [0,0]: [5,5]; right j[i]
# = [1,1]: [6,6].
@rule
def gather_of_gather_swapped(x: Tensor, i: Tensor, j: Tensor, axis: Axis) -> Law:
    """gather(gather(x, i), j) = gather(x, gather(j, i))"""
    return rewrites(
        gather(gather(x, i, axis), j, axis),
        gather(x, gather(j, i, Axis(0)), axis),
        (i.type.rank == 1) & (j.type.rank == 1),
    )


@attribute_function
def before(a: Axis, b: Axis) -> bool:
    return a.index < b.index


# x = i32[2,2], i = i64[1,1] = [[0]], j = i64[1] = [0], a = 0, b = 1: left takes j along the second
# axis of i: [1,1,2]; right has [1,1,1].
@rule
def gathers_commute(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), for a before b (only if i has
    one axis)"""
    return rewrites(gather(gather(x, i, a), j, b), gather(gather(x, j, b), i, a), before(a, b))
