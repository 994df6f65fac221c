"""Laws of matrix products, batches and attention, all of them wrong."""

from __future__ import annotations

from satura.language import (
    Axis,
    Contraction,
    Law,
    Perm,
    Shape,
    Tensor,
    TensorType,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    family,
    has_value,
    matmul,
    product,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    transpose,
    unary,
)


@attribute_function
def swap_last(rank: int) -> Perm:
    """The permutation that exchanges the last two axes."""
    refuse_unless(rank >= 2, "too few axes")
    return Perm((*range(rank - 2), rank - 1, rank - 2))


@attribute_function
def swaps_into_last(p: Perm) -> bool:
    return len(p.order) >= 2 and p.order[-1] == len(p.order) - 2


# x = i32[2, 2, 3], p = [2, 0, 1] (its last entry is 1): transposed it is [3, 2, 2], with the batch
# inside. y = i32[2, 2, 3], q = [2, 0, 1]: the same, and they multiply: [3, 2, 2]. On the right y
# [2, 2, 3] and x [2, 2, 3] do not multiply. Nor must p and q only end so: all batch axes have to
# stay.
@rule(reassociates=True)
def product_of_transposed(x: Tensor, y: Tensor, p: Perm, q: Perm) -> Law:
    """matmul(transpose(x, p), transpose(y, q)) = transpose of matmul(y, x), when p and q end with
    the last but one axis"""
    return rewrites(
        matmul(transpose(x, p), transpose(y, q)),
        transpose(matmul(y, x), swap_last(x.type.rank)),
        swaps_into_last(p) & swaps_into_last(q),
    )


# x = y = i32[2, 2], x = [[1, 1], [0, 1]], y = [[1, 0], [1, 1]], p = [1, 0]: xy = [[2, 1], [1, 1]]
# is its own transpose; with y = [[1, 0], [0, 0]]: xy = [[1, 0], [0, 0]]; xᵀyᵀ = [[1, 0], [1, 0]].
# Not equal: (xy)ᵀ = yᵀxᵀ.
@rule(reassociates=True)
def transposed_product_in_order(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(x, p), transpose(y, p)), for square matrices"""
    return rewrites(
        transpose(matmul(x, y), p),
        matmul(transpose(x, p), transpose(y, p)),
        p == Perm((1, 0)),
        x.type == y.type,
    )


# x = f32[2, 1, 1], y = f32[2, 1, 1], z = f32[2, 2, 1] cannot stand beside y along axis 2; along
# axis 1 y and z become f32[2, 3, 1], and x has to be f32[2, 1, 3]: matmul(x, y) does not fit. Axis
# 1 are the columns for rank 2 alone.
@rule
def concat_columns(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """matmul(x, concat(y, z, 1)) = concat(matmul(x, y), matmul(x, z), 1)"""
    return rewrites(
        matmul(x, concat(y, z, axis)),
        concat(matmul(x, y), matmul(x, z), axis),
        axis.index == 1,
    )


# x = i32[1, 1], y = i32[1, 2], v = i32[2, 1], u = i32[1, 1]: both concatenations have 3 elements,
# but x and v do not multiply. Where each part has one type, it would hold.
@rule(reassociates=True)
def sum_of_split_products(x: Tensor, y: Tensor, v: Tensor, u: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y, columns), concat(v, u, rows)) = matmul(x, v) + matmul(y, u)"""
    return rewrites(
        matmul(concat(x, y, a), concat(v, u, b)),
        binary("add", matmul(x, v), matmul(y, u)),
        (a.index == x.type.rank - 1) & (b.index == x.type.rank - 2),
    )


# x = f32[1, 1] = 3, s = [1, 2], y = f32[1, 1] = 5, t = [2, 1]: the left side is 3 * 5 + 3 * 5 = 30,
# the right side 15. The inner extents must not be repeated.
@rule(reassociates=True)
def broadcast_out_of_matmul(x: Tensor, y: Tensor, s: Shape, t: Shape) -> Law:
    """matmul(broadcast(x), broadcast(y)) = broadcast(matmul(x, y)), when x and y multiply"""
    whole = matmul(broadcast(x, s), broadcast(y, t))
    return rewrites(
        whole,
        broadcast(matmul(x, y), Shape(whole.type.shape)),
        x.type.shape[-1] == y.type.shape[-2],
        has_value(matmul(x, y).type),
    )


# All f32[1, 1] with 2 keys: q = 0, k = f32[1, 2] = 0, 0, bias 0, 0, c = f32[1, 2] = 0, 1000, s =
# [1, 2]: c is not repeated along the keys, whose last axis it has. v = f32[2, 1] = 1, 2: left 2
# (the second key has all the weight), right 1.5.
@rule(reassociates=True)
def drop_shift_of_scores(q: Tensor, k: Tensor, b: Tensor, c: Tensor, s: Shape, v: Tensor) -> Law:
    """attention(q, k, bias + broadcast(c), v) = attention(q, k, bias, v), when c is the same for
    all queries"""
    return rewrites(
        attention(q, k, binary("add", b, broadcast(c, s)), v),
        attention(q, k, b, v),
        c.type.shape[-2] == 1,
    )


# q = f32[1, 1] = 0, k = f32[1, 1] = 0 and l = f32[1, 1] = 0, bias 0, v = 1 and w = 3: softmax gives
# each of the two keys one half: left 2; the right side has a softmax for each: 1 + 3 = 4.
@rule(reassociates=True)
def split_keys_of_attention(
    q: Tensor, k: Tensor, l: Tensor, b: Tensor, c: Tensor, v: Tensor, w: Tensor, a: Axis, d: Axis
) -> Law:
    """attention with the keys k and l and the values v and w is the sum of two"""
    return rewrites(
        attention(q, concat(k, l, a), concat(b, c, a), concat(v, w, d)),
        binary("add", attention(q, k, b, v), attention(q, l, c, w)),
        (a.index == q.type.rank - 1) & (d.index == q.type.rank - 2),
        k.type.shape[-1] == v.type.shape[-2],
        b.type.shape[-1] == v.type.shape[-2],
    )


@attribute_function
def as_rows(t: TensorType) -> Shape:
    return Shape((product(t.shape[:-1]), t.shape[-1]))


@attribute_function
def one_matrix(t: TensorType) -> Shape:
    return Shape(t.shape[-2:])


# x = f32[2, 1, 1] = 1, 2, y = f32[2, 1, 1] = 3, 5 (two matrices, not one repeated): left 3, 10; y
# does not reshape to one matrix [1, 1].
@rule
def batch_as_rows(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = reshape(matmul(x with its batch as rows, y), …), for one batch axis"""
    whole = matmul(x, y)
    return rewrites(
        whole,
        reshape(
            matmul(reshape(x, as_rows(x.type)), reshape(y, one_matrix(y.type))),
            Shape(whole.type.shape),
        ),
        x.type.rank == 3,
    )


# f = matmul, x = f32[1, 0], y = f32[0, 1]: both products are sums of nothing, 0.0: left 0.0, right
# -0.0. For conv x = f32[1, 0] without spatial axes and w = f32[0, 1] in one group do the same. (Up
# to rounding it may.)
@family
def negation_out_of(f: Contraction, x: Tensor, y: Tensor) -> Law:
    """f(x, -y) = -f(x, y)"""
    return rewrites(f(x, unary("neg", y)), unary("neg", f(x, y)))


# x = f32[1, 1] = 1e20, y = 1e20, z = 1e-20: (xy)z = inf, x(yz) = 1e20; and for x = [1, 1], y =
# [[0.1], [0.2]], z = [3]: two roundings in another order, while the law does not say that it
# reassociates.
@rule
def matmul_is_associative(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """matmul(matmul(x, y), z) = matmul(x, matmul(y, z))"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)))
