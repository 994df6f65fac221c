"""Laws of grouped convolutions, matrix products and attention, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Contraction,
    Groups,
    Known,
    Law,
    Perm,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    equates,
    family,
    matmul,
    product,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
)


@attribute_function
def joined(g: Groups, h: Groups) -> Groups:
    """As many groups as both have."""
    return Groups(g.count + h.count)


@attribute_function
def groups_agree(
    x: TensorType, y: TensorType, w: TensorType, v: TensorType, g: Groups, h: Groups
) -> bool:
    """Whether all groups have as many channels, in and out, and the images one size."""
    return (
        x.shape[:-1] == y.shape[:-1]
        and w.shape[-2] == v.shape[-2]
        and w.shape[-1] * h.count == v.shape[-1] * g.count
    )


@rule(reassociates=True)
def join_grouped_convs(
    x: Tensor, y: Tensor, w: Tensor, v: Tensor, window: Window, g: Groups, h: Groups, axis: Axis
) -> Law:
    """concat(conv(x, w), conv(y, v), channels) = conv(concat(x, y), concat(w, v)) of all their
    groups, when these are of one size"""
    return rewrites(
        concat(conv(x, w, window, g), conv(y, v, window, h), axis),
        conv(concat(x, y, axis), concat(w, v, axis), window, joined(g, h)),
        axis.index == x.type.rank - 1,
        groups_agree(x.type, y.type, w.type, v.type, g, h),
    )


@attribute_function
def of_weights(s: Slices, t: TensorType, w: TensorType) -> Slices:
    """The slice of the output channels, where s takes all else."""
    k = t.rank - 1
    for start, size, step, n in list(zip(s.starts, s.sizes, s.steps, t.shape))[:k]:
        refuse_unless((start, size, step) == (0, n, 1), "another axis is cut")
    refuse_unless(
        isinstance(s.sizes[k], int) and typing.cast(int, s.sizes[k]) >= 1, "no channel is left"
    )
    return Slices((*(0,) * k, s.starts[k]), (*w.shape[:-1], s.sizes[k]), (*(1,) * k, s.steps[k]))


@rule(reassociates=True)
def slice_channels_of_weights(x: Tensor, w: Tensor, window: Window, s: Slices) -> Law:
    """slice(conv(x, w), channels) = conv(x, slice(w, output channels)), of one group"""
    whole = conv(x, w, window, Groups(1))
    return rewrites(
        slice_(whole, s),
        conv(x, slice_(w, of_weights(s, whole.type, w.type)), window, Groups(1)),
    )


@attribute_function
def is_pointwise(w: Window, g: Groups) -> bool:
    """Whether each pixel is multiplied by the weights."""
    return all(k == 1 for k in (*w.sizes, *w.strides)) and not w.has_border and g.count == 1


@attribute_function
def as_rows(t: TensorType) -> Shape:
    """All but the last axis in one."""
    return Shape((product(t.shape[:-1]), t.shape[-1]))


@attribute_function
def as_matrix(t: TensorType) -> Shape:
    """The last two axes: the others are of one tap."""
    return Shape(t.shape[-2:])


@rule(reassociates=True)
def pointwise_conv_by_matmul(x: Varying, w: Known, window: Window, groups: Groups) -> Law:
    """conv(x, w) = reshape(matmul(pixels of x, w)), for kernels of one tap without strides and
    border, of one group"""
    left = conv(x, w, window, groups)
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, as_rows(x.type)), reshape(w, as_matrix(w.type))),
            Shape(left.type.shape),
        ),
        is_pointwise(window, groups),
    )


@attribute_function
def swaps_last_two(p: Perm) -> bool:
    """Whether only the last two axes change places."""
    n = len(p.order)
    return n >= 2 and p.order == (*range(n - 2), n - 1, n - 2)


@rule(reassociates=True)
def transpose_of_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(y, p), transpose(x, p)), when p swaps the last
    two axes"""
    return rewrites(
        transpose(matmul(x, y), p), matmul(transpose(y, p), transpose(x, p)), swaps_last_two(p)
    )


@rule(reassociates=True)
def split_product(x: Tensor, y: Tensor, w: Tensor, v: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y), concat(w, v)) = matmul(x, w) + matmul(y, v), when both are joined at one
    place of the inner axis"""
    return rewrites(
        matmul(concat(x, y, a), concat(w, v, b)),
        binary("add", matmul(x, w), matmul(y, v)),
        a.index == x.type.rank - 1,
        b.index == w.type.rank - 2,
        x.type.shape[-1] == w.type.shape[-2],
    )


@attribute_function
def is_shared(y: TensorType, s: Shape) -> bool:
    """Whether y is one matrix that is repeated for a batch."""
    return all(n == 1 for n in y.shape[:-2]) and y.shape[-2:] == s.dims[-2:]


@rule(reassociates=True)
def one_matrix_for_a_batch(x: Tensor, y: Tensor, s: Shape) -> Law:
    """matmul(x, broadcast(y, s)) = reshape(matmul(all rows of x, y)), when only the batch is
    repeated"""
    left = matmul(x, broadcast(y, s))
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, as_rows(x.type)), reshape(y, as_matrix(y.type))),
            Shape(left.type.shape),
        ),
        is_shared(y.type, s),
    )


@rule(reassociates=True)
def join_queries(
    q: Tensor, r: Tensor, k: Tensor, b: Tensor, c: Tensor, v: Tensor, axis: Axis
) -> Law:
    """concat(attention(q, k, b, v), attention(r, k, c, v), queries) = attention(concat(q, r), k,
    concat(b, c), v)"""
    return rewrites(
        concat(attention(q, k, b, v), attention(r, k, c, v), axis),
        attention(concat(q, r, axis), k, concat(b, c, axis), v),
        axis.index == q.type.rank - 2,
    )


@family(reassociates=True)
def merge_offsets(f: Contraction, x: Tensor, y: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """(f(x, y) - broadcast(a)) + broadcast(b) = f(x, y) + broadcast(b - a), for a and b of one
    shape"""
    return rewrites(
        binary("add", binary("sub", f(x, y), broadcast(a, s)), broadcast(b, s)),
        binary("add", f(x, y), broadcast(binary("sub", b, a), s)),
        a.type == b.type,
    )


@rule(reassociates=True)
def add_before_matmul(x: Tensor, y: Tensor, w: Tensor) -> Law:
    """matmul(x, w) + matmul(y, w) = matmul(x + y, w) on integers"""
    return equates(
        binary("add", matmul(x, w), matmul(y, w)),
        matmul(binary("add", x, y), w),
        w.type.dtype.is_integer,
    )


@attribute_function
def is_rows(axes: Axes, t: TensorType) -> bool:
    """Whether only the columns are summed."""
    return axes.indices == (t.rank - 1,)


@rule(reassociates=True)
def sum_columns_of_weights(x: Tensor, w: Known, axes: Axes) -> Law:
    """sum(matmul(x, w), columns) = matmul(x, sum(w, columns)), up to rounding"""
    return rewrites(
        reduce("sum", matmul(x, w), axes),
        matmul(x, reduce("sum", w, axes)),
        is_rows(axes, w.type),
    )
