"""Laws of convolutions, matrix products and attention, all of them right."""

from __future__ import annotations

from satura.language import (
    Axis,
    Dim,
    Groups,
    Law,
    Movable,
    Perm,
    Shape,
    Tensor,
    TensorType,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    has_value,
    matmul,
    product,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    transpose,
    winograd,
)


@attribute_function
def all_are(values: tuple[Dim, ...], value: int) -> bool:
    """Whether all of the values are `value`."""
    return all(each == value for each in values)


@attribute_function
def swap_last(rank: int) -> Perm:
    """The permutation that exchanges the last two axes."""
    refuse_unless(rank >= 2, "too few axes")
    return Perm((*range(rank - 2), rank - 1, rank - 2))


@attribute_function
def is_1_by_1(w: Window, g: Groups) -> bool:
    return set(w.sizes) | set(w.strides) <= {1} and g.count == 1 and not w.has_border


@attribute_function
def rows(t: TensorType) -> Shape:
    return Shape((product(t.shape[:-1]), t.shape[-1]))


@attribute_function
def last_two(t: TensorType) -> Shape:
    return Shape(t.shape[-2:])


@rule(reassociates=True)
def conv_of_one_tap_as_matmul(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = matmul(x, w), for kernels of one tap in steps of 1, one group and no border"""
    return rewrites(
        conv(x, w, window, g),
        reshape(
            matmul(reshape(x, rows(x.type)), reshape(w, last_two(w.type))),
            Shape(conv(x, w, window, g).type.shape),
        ),
        is_1_by_1(window, g),
    )


@rule
def conv_of_more_images(x: Tensor, y: Tensor, w: Tensor, window: Window, g: Groups, a: Axis) -> Law:
    """conv(concat(x, y, images), w) = concat(conv(x, w), conv(y, w), images)"""
    return rewrites(
        conv(concat(x, y, a), w, window, g),
        concat(conv(x, w, window, g), conv(y, w, window, g), a),
        a.index == 0,
    )


@rule
def conv_of_more_kernels(
    x: Tensor, w: Tensor, u: Tensor, window: Window, g: Groups, a: Axis
) -> Law:
    """conv(x, concat(w, u, channels)) = concat(conv(x, w), conv(x, u), channels), for one group"""
    return rewrites(
        conv(x, concat(w, u, a), window, g),
        concat(conv(x, w, window, g), conv(x, u, window, g), a),
        a.index == x.type.rank - 1,
        g.count == 1,
    )


@attribute_function
def is_swap_of_spatial(p: Perm) -> bool:
    return p.order == (0, 2, 1, 3)


@rule(reassociates=True)
def conv_of_transposed_image(x: Movable, p: Perm, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(transpose(x, p), w) = transpose(conv(x, transpose(w)), p), when p swaps height and
    width"""
    swapped = Perm((1, 0))
    return rewrites(
        conv(transpose(x, p), w, window, g),
        transpose(conv(x, transpose(w, Perm((1, 0, 2, 3))), window.permuted(swapped), g), p),
        is_swap_of_spatial(p),
    )


@attribute_function
def fill_is_zero(w: Window) -> bool:
    return not w.has_border or bool(w.fill.value == 0)


@rule
def integer_images_add_up(x: Tensor, y: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x + y, w) = conv(x, w) + conv(y, w), on integers, when the border is 0"""
    return rewrites(
        conv(binary("add", x, y), w, window, g),
        binary("add", conv(x, w, window, g), conv(y, w, window, g)),
        x.type.dtype.is_integer,
        fill_is_zero(window),
    )


@rule(reassociates=True)
def plain_conv_of_winograd(x: Tensor, w: Tensor, window: Window) -> Law:
    """winograd(x, w) = conv(x, w) in one group"""
    return rewrites(winograd(x, w, window), conv(x, w, window, Groups(1)))


@rule(reassociates=True)
def sum_of_split_products(x: Tensor, y: Tensor, v: Tensor, u: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y, columns), concat(v, u, rows)) = matmul(x, v) + matmul(y, u), when x has
    as many columns as v has rows"""
    return rewrites(
        matmul(concat(x, y, a), concat(v, u, b)),
        binary("add", matmul(x, v), matmul(y, u)),
        (a.index == x.type.rank - 1) & (b.index == x.type.rank - 2),
        x.type.shape[-1] == v.type.shape[-2],
    )


@rule
def concat_columns(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """matmul(x, concat(y, z, columns)) = concat(matmul(x, y), matmul(x, z), columns)"""
    return rewrites(
        matmul(x, concat(y, z, axis)),
        concat(matmul(x, y), matmul(x, z), axis),
        axis.index == x.type.rank - 1,
    )


@attribute_function
def whole_inner(s: Shape) -> Dim:
    refuse_unless(len(s.dims) >= 2, "no matrix")
    return s.dims[-1]


@rule
def broadcast_out_of_matmul(x: Tensor, y: Tensor, s: Shape, t: Shape) -> Law:
    """matmul(broadcast(x), broadcast(y)) = broadcast(matmul(x, y)), when x and y multiply and their
    inner axis is not repeated"""
    whole = matmul(broadcast(x, s), broadcast(y, t))
    return rewrites(
        whole,
        broadcast(matmul(x, y), Shape(whole.type.shape)),
        has_value(matmul(x, y).type),
        x.type.shape[-1] == whole_inner(s),
    )


@rule
def batch_as_rows(x: Tensor, y: Tensor, s: Shape) -> Law:
    """matmul(x, broadcast(y, s)) = reshape(matmul(x with its batch as rows, y), …), when y is one
    matrix"""
    whole = matmul(x, broadcast(y, s))
    return rewrites(
        whole,
        reshape(
            matmul(reshape(x, rows(x.type)), reshape(y, last_two(y.type))), Shape(whole.type.shape)
        ),
        all_are(y.type.shape[:-2], 1),
        last_two(y.type).dims == s.dims[-2:],
    )


@rule(reassociates=True)
def transpose_of_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(y, p), transpose(x, p)), when p swaps the last
    two axes"""
    return rewrites(
        transpose(matmul(x, y), p),
        matmul(transpose(y, p), transpose(x, p)),
        p.order == swap_last(x.type.rank).order,
    )


@rule(reassociates=True)
def values_of_attention_side_by_side(
    q: Tensor, k: Tensor, b: Tensor, v: Tensor, w: Tensor, a: Axis
) -> Law:
    """attention of values side by side = both attentions side by side"""
    return rewrites(
        attention(q, k, b, concat(v, w, a)),
        concat(attention(q, k, b, v), attention(q, k, b, w), a),
        a.index == q.type.rank - 1,
    )
