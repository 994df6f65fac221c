"""Laws of movement, borders and products, all of them wrong."""

import typing

from satura.language import (
    Axis,
    Groups,
    Law,
    Padding,
    Perm,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Unpadded,
    Untransposed,
    Varying,
    Window,
    attribute_function,
    concat,
    conv,
    gather,
    matmul,
    pad,
    pool,
    product,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
    winograd,
)


@attribute_function
def after(a: Slices, b: Slices) -> Slices:
    """a, then b."""
    return Slices(
        tuple(x + y for x, y in zip(a.starts, b.starts, strict=True)),
        b.sizes,
        tuple(x * y for x, y in zip(a.steps, b.steps, strict=True)),
    )


# x = [0, 1, 2, 3], a = [0+2*2] (0 and 2), b = [1+1]: 2 on the left; x[0 + 1] = 1 on the right: b's
# start counts in steps of a.
@rule
def compose_two_slices(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a then b)"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, after(a, b)))


# x = f32[1, 2, 3], p = [1, 2, 0], q = [1, 0, 2]: p then q is [2, 1, 0], q[p] is [0, 2, 1].
@rule
def compose_in_wrong_order(x: Untransposed, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q after p)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


@attribute_function
def added(a: Padding, b: Padding) -> Padding:
    return Padding(
        tuple(x + y for x, y in zip(a.lo, b.lo, strict=True)),
        tuple(x + y for x, y in zip(a.hi, b.hi, strict=True)),
    )


# x = [5], v = 1, w = 2, a = [1:0], b = [1:0]: [2, 1, 5] on the left, [2, 2, 5] on the right.
@rule
def compose_pads_of_two_values(x: Unpadded, v: Scalar, w: Scalar, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), w, b) = pad(x, w, a + b)"""
    return rewrites(pad(pad(x, v, a), w, b), pad(x, w, added(a, b)))


@attribute_function
def with_border(w: Window, p: Padding) -> Window:
    """w with p as border."""
    if w.has_border or not all(isinstance(n, int) for n in (*p.lo, *p.hi)):
        raise Refuse("there is a border")
    lo, hi = typing.cast(tuple[int, ...], p.lo), typing.cast(tuple[int, ...], p.hi)
    return Window(w.sizes, w.strides, w.dilations, lo, hi, w.fill)


# x = f32[1] [-3], c = -1, p = [1:0], w = size 1, fill 0: left [-1, -3]; right [0, -3]. The fill has
# to become c.
@rule
def pad_as_border(x: Tensor, c: Scalar, p: Padding, w: Window) -> Law:
    """pool(pad(x, c, p), w) = pool(x, w with p as border), for max"""
    return rewrites(pool("max", pad(x, c, p), w), pool("max", x, with_border(w, p)))


@attribute_function
def rows(type_: TensorType) -> Shape:
    return Shape((product(type_.shape[:-1]), type_.shape[-1]))


@attribute_function
def single(w: Window) -> bool:
    return all(n == 1 for n in w.sizes)


# x = f32[1, 3, 1] [1, 2, 3], w = [[[1]]], window of size 1 in steps of 2 with border 1:1 of 0: the
# result has (3 + 2 - 1) // 2 + 1 = 3 places, too: [0, 2, 0]; the product is [1, 2, 3].
@rule(reassociates=True)
def conv_as_matmul(x: Tensor, w: Tensor, window: Window) -> Law:
    """conv(x, w) = matmul of x's pixels and w, when the window has one tap and keeps the shape"""
    left = conv(x, w, window, Groups(1))
    right = reshape(
        matmul(reshape(x, rows(x.type)), reshape(w, rows(w.type))), Shape(left.type.shape)
    )
    return rewrites(left, right, single(window), left.type.shape[:-1] == x.type.shape[:-1])


# x = [[1, 2], [3, 4]], p = [1, 0]: the transpose has the same shape, but its elements are 1, 3, 2,
# 4.
@rule
def transpose_of_square(x: Varying, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = reshape(x, s), when the transpose has the shape of x"""
    moved = transpose(x, p)
    return rewrites(reshape(moved, s), reshape(x, s), moved.type.shape == x.type.shape)


@attribute_function
def complete(type_: TensorType, a: Slices, b: Slices, axis: Axis) -> bool:
    """Whether b begins where a ends, and both have all elements."""
    at = axis.index
    whole = all(
        a.sizes[i] == n and b.sizes[i] == n and a.starts[i] == 0 == b.starts[i]
        for i, n in enumerate(type_.shape)
        if i != at
    )
    return (
        whole
        and a.starts[at] == 0
        and b.starts[at] == a.sizes[at]
        and a.sizes[at] + b.sizes[at] == type_.shape[at]
    )


# x = [0, 1, 2, 3], a = [0+2*2] (0, 2), b = [2+2] (2, 3): [0, 2, 2, 3] on the left. Steps are not
# asked.
@rule
def rejoin(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = x, when b begins where a ends"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), x, complete(x.type, a, b, axis))


@attribute_function
def is_before(a: Axis, b: Axis) -> bool:
    return a.index < b.index


# x = f32[2, 3], i = i64[1, 2] [[0, 1]], a = 0, j = [0], b = 1: gather(x, i, 0) is [1, 2, 3], so
# that axis 1 of it is of i: [1, 1, 3]; on the right x's axis 1 is gathered: [2, 1], then [1, 2, 1].
@rule
def exchange_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), for a before b"""
    return rewrites(
        gather(gather(x, i, a), j, b),
        gather(gather(x, j, b), i, a),
        is_before(a, b),
        b.index < x.type.rank,
    )


@attribute_function
def inner(w: Window, p: Padding, c: Scalar) -> Window:
    """w with p's spatial part as border."""
    if w.has_border:
        raise Refuse("there is a border")
    if not all(isinstance(n, int) for n in (*p.lo, *p.hi)):
        raise Refuse("the padding is open")
    lo, hi = typing.cast(tuple[int, ...], p.lo), typing.cast(tuple[int, ...], p.hi)
    return Window(w.sizes, w.strides, w.dilations, lo[1:-1], hi[1:-1], c)


# x = f32[1, 3, 3, 1], p adds one image of zeros before the others: the left side has 2 images, the
# right side 1. (Padding of channels is not asked, either.)
@rule
def border_of_winograd(x: Tensor, c: Scalar, p: Padding, w: Tensor, window: Window) -> Law:
    """winograd(pad(x, c, p), w) = winograd(x, w) with p as border"""
    return rewrites(winograd(pad(x, c, p), w, window), winograd(x, w, inner(window, p, c)))


@attribute_function
def turned(type_: TensorType) -> Perm:
    r = type_.rank
    return Perm((*range(r - 2), r - 1, r - 2))


# x = [[1, 2], [3, 4]], y = [[0, 1], [0, 0]] (i32): xᵀyᵀ = [[1, 3], [2, 4]] [[0, 0], [1, 0]] =
# [[3, 0], [4, 0]]; (xy)ᵀ = [[0, 1], [0, 3]]ᵀ = [[0, 0], [1, 3]].
@rule(reassociates=True)
def transpose_out_of_matmul(x: Tensor, y: Tensor, p: Perm) -> Law:
    """matmul(transpose(x), transpose(y)) = transpose(matmul(x, y)), of matrices of one shape"""
    return rewrites(
        matmul(transpose(x, p), transpose(y, p)),
        transpose(matmul(x, y), p),
        p.order == turned(x.type).order,
        x.type.shape == y.type.shape,
        x.type.shape[x.type.rank - 1] == x.type.shape[x.type.rank - 2],
    )
