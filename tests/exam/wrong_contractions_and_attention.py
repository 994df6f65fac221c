"""Laws of contractions and attention, all of them wrong."""

import typing

from satura.language import (
    Axis,
    Contraction,
    DType,
    Groups,
    Law,
    Others,
    Perm,
    Scalar,
    Shape,
    Some,
    Tensor,
    TensorType,
    Term,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    family,
    matmul,
    product,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    transpose,
    unary,
    winograd,
)


# x f32[1, 1, 1] = 1, w = 1, c = 2, window of size 1 with border (1:0) of 5: left 5 2, right 10 2:
# the border is not scaled on the left.
@rule(reassociates=True)
def scale_out_of_conv(
    x: Tensor, c: Scalar, u: Shape, s: Shape, w: Tensor, window: Window, g: Groups
) -> Law:
    """conv(x * c, w) = conv(x, w) * c"""
    sums = conv(x, w, window, g)
    return rewrites(
        conv(binary("mul", x, broadcast(reshape(c, u), s)), w, window, g),
        binary("mul", sums, broadcast(reshape(c, u), Shape(sums.type.shape))),
    )


@attribute_function
def is_last(axis: Axis, x: TensorType) -> bool:
    """Whether it is the last axis."""
    return axis.index == x.rank - 1


# rank 2: x, y f32[1, 1] = 1, 10; w f32[1, 1] = 1, v f32[1, 3] = 1 1 1: of 4 output channels the
# first 2 belong to the group of x: left 1 1 10 10, right 1 10 10 10.
@rule(reassociates=True)
def split_groups(
    x: Tensor, y: Tensor, w: Tensor, v: Tensor, a: Axis, b: Axis, window: Window
) -> Law:
    """conv(concat(x, y), concat(w, v), two groups) = concat(conv(x, w), conv(y, v))"""
    return rewrites(
        conv(concat(x, y, a), concat(w, v, b), window, Groups(2)),
        concat(conv(x, w, window, Groups(1)), conv(y, v, window, Groups(1)), a),
        is_last(a, x.type),
        is_last(b, w.type),
        x.type.shape == y.type.shape,
    )


@attribute_function
def is_one_tap(w: Window) -> bool:
    """Whether the window sees one element, and nothing else."""
    return all(n == 1 for n in w.sizes) and not w.has_border


@attribute_function
def rows(x: TensorType) -> Shape:
    """All but the last axis as one."""
    return Shape((product(x.shape[:-1]), x.shape[-1]))


# x f32[1, 3, 1], w f32[1, 1, 1], stride 2: left f32[1, 2, 1], right 3 rows do not reshape to 2.
@rule(reassociates=True)
def conv_as_matmul(x: Tensor, w: Tensor, window: Window) -> Law:
    """conv(x, w) = matmul(pixels of x, w), for windows of one element and no border"""
    images = conv(x, w, window, Groups(1))
    return rewrites(
        images,
        reshape(
            matmul(reshape(x, rows(x.type)), reshape(w, rows(w.type))), Shape(images.type.shape)
        ),
        is_one_tap(window),
    )


@attribute_function
def inner(p: Perm) -> Perm:
    """How p permutes the spatial axes: the first and the last stay."""
    order = p.order
    refuse_unless(len(order) > 2 and (order[0], order[-1]) == (0, len(order) - 1))
    return Perm(tuple(axis - 1 for axis in order[1:-1]))


# x f32[1, 2, 2, 1] = 1 2 3 4, w f32[2, 2, 1, 1] = 1 10 100 1000, p = [0, 2, 1, 3]: left 1·1 + 3·10
# + 2·100 + 4·1000, right 1·1 + 2·10 + 3·100 + 4·1000: w is not transposed; of a square kernel
# nothing is ill typed.
@rule(reassociates=True)
def transpose_out_of_conv(x: Tensor, p: Perm, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(transpose(x, p), w, p(window)) = transpose(conv(x, w, window), p), for square kernels"""
    return rewrites(
        conv(transpose(x, p), w, window, g),
        transpose(conv(x, w, window.permuted(inner(p.inverse)), g), p),
    )


@attribute_function
def is_plain(w: Window) -> bool:
    """Whether the window has 3×3 taps, and neither strides nor dilations."""
    return w.sizes == (3, 3) and all(n == 1 for n in (*w.strides, *w.dilations))


# Winograd's products have other roundings, as ops.md says: 3×3 random f32 differ in the last bits.
@rule
def conv_by_tiles(x: Tensor, w: Tensor, window: Window) -> Law:
    """conv(x, w) = winograd(x, w), on f32, of one group by 3×3 taps in steps of 1"""
    return rewrites(
        conv(x, w, window, Groups(1)),
        winograd(x, w, window),
        x.type.dtype == DType.F32,
        is_plain(window),
    )


# x f32[1, 1, 1] = 1, w = 1, window of size 1 with border (1:0) of 5: left 5 * -1 = -5, right 5.
@rule
def signs_out_of_conv(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(-x, -w) = conv(x, w): a product does not know two signs"""
    return rewrites(conv(unary("neg", x), unary("neg", w), window, g), conv(x, w, window, g))


@attribute_function
def is_row(c: TensorType) -> bool:
    """Whether there is one number for each key, whatever the query."""
    return c.rank >= 2 and c.shape[-2] == 1


# q = k = 0 (1 query, 2 keys), b = 0, c = [0, 10], v = [1, 2]: left nearly 2, right 1.5: what may be
# left out is equal for all keys of a query, not for all queries of a key.
@rule(reassociates=True)
def shift_scores(q: Tensor, k: Tensor, b: Tensor, c: Tensor, s: Shape, v: Tensor) -> Law:
    """attention(q, k, b + broadcast(c), v) = attention(q, k, b, v), when c is the same for all
    queries"""
    return rewrites(
        attention(q, k, binary("add", b, broadcast(c, s)), v),
        attention(q, k, b, v),
        is_row(c.type),
    )


@attribute_function
def everywhere(c: Scalar) -> bool:
    """Whether multiplication by c rounds to what fits."""
    return c.dtype.is_float and bool(abs(typing.cast(float, c.value)) <= 1)


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


def scaled(x: Tensor, c: Scalar) -> Term:
    """x * c."""
    return binary("mul", x, broadcast(reshape(c, units(x.type)), Shape(x.type.shape)))


# matmul of one product, f32, x = 0.7, y = 3, c = 0.1: (x * y) * c and (x * c) * y round
# differently.
@family
def scale_after_contraction(
    f: Contraction, xs: Some[Tensor], ys: Others[Tensor], c: Scalar, u: Shape, s: Shape
) -> Law:
    """f(x, y) * c = f(x * c, y), exactly, when c is not larger than 1"""
    whole = f(xs, ys)
    return rewrites(
        binary("mul", whole, broadcast(reshape(c, u), s)),
        f(xs.each(scaled, c), ys),
        everywhere(c),
    )
