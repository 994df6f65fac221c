"""Laws of matrices and convolutions, all of them wrong."""

from satura.language import (
    Axis,
    Contraction,
    DType,
    Groups,
    Law,
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
    family,
    matmul,
    rewrites,
    rule,
    transpose,
    unary,
    winograd,
)


# i32, x[a, i, k] = y[a, i, k] = 4 a + 2 i + k of [2, 2, 2], p = [2, 0, 1]: p moves the batch, too.
# The left side is the transposed product of each batch, the right one multiplies other matrices:
# left[0, 0, 0] = (x @ y)[0, 0, 0] = 2, right[0, 0, 0] = sum of y[0, k, 0] x[k, 0, 0] = 8.
@rule
def transpose_of_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(x y, p) = transpose(y, p) transpose(x, p), when p puts the rows last, on
    integers"""
    product = matmul(x, y)
    return rewrites(
        transpose(product, p),
        matmul(transpose(y, p), transpose(x, p)),
        p.order[-1] == product.type.rank - 2,
        x.type == y.type,
        x.type.dtype.is_integer,
    )


# x i32[1, 1], y i32[1, 2], z i32[2, 1], w i32[1, 1]: both concatenations have 3, but x z is
# [1, 1] by [2, 1], which do not multiply.
@rule
def split_inner(x: Tensor, y: Tensor, z: Tensor, w: Tensor, a: Axis, b: Axis) -> Law:
    """concat(x, y) concat(z, w) = x z + y w along the inner axis, on integers"""
    return rewrites(
        matmul(concat(x, y, a), concat(z, w, b)),
        binary("add", matmul(x, z), matmul(y, w)),
        a.index == x.type.rank - 1,
        b.index == x.type.rank - 2,
        x.type.dtype.is_integer,
    )


# i32, x = [[1, 2], [0, 0]], c = [[1, 10]], y = [[0, 1], [1, 0]]: (x * c) y = [[20, 1], ...];
# (x y) * c = [2, 1] * [1, 10] = [[2, 10], ...]. c may have one factor per row of x, not per column.
@rule
def scale_after_product(x: Tensor, c: Tensor, s: Shape, y: Tensor) -> Law:
    """(x * broadcast(c)) y = (x y) * broadcast(c), when c does not depend on the row, on
    integers"""
    product = matmul(x, y)
    return rewrites(
        matmul(binary("mul", x, broadcast(c, s)), y),
        binary("mul", product, broadcast(c, s)),
        c.type.shape[-2] == 1,
        product.type == x.type,
        x.type.dtype.is_integer,
    )


# One query and two keys, q = k = 0, b = 0, c = [[0, 100]], v = [[0], [1]]: with c the second key
# has all the weight: 1.0; without it 0.5. (It holds for c that does not depend on the key.)
@rule(reassociates=True)
def drop_shift_of_scores(q: Tensor, k: Tensor, b: Tensor, c: Tensor, s: Shape, v: Tensor) -> Law:
    """attention(q, k, b + broadcast(c), v) = attention(q, k, b, v), when c is the same for all
    queries: softmax does not change by shifts"""
    return rewrites(
        attention(q, k, binary("add", b, broadcast(c, s)), v),
        attention(q, k, b, v),
        c.type.shape[-2] == 1,
    )


@attribute_function
def divisible(w: TensorType, groups: Groups) -> bool:
    return w.shape[-1] % groups.count == 0


# 2 groups, x i32[1, 2] = [1, 10], w = v = ones [1, 2]: of 4 output channels the first two are of
# the first group: [1, 1, 10, 10]; of each part one is of either: [1, 10, 1, 10].
@rule
def split_outputs(x: Tensor, w: Tensor, v: Tensor, axis: Axis, window: Window, g: Groups) -> Law:
    """conv(x, concat(w, v)) = concat(conv(x, w), conv(x, v)), along the output channels, when those
    of each part split into the groups"""
    last = conv(x, w, window, g)
    return rewrites(
        conv(x, concat(w, v, axis), window, g),
        concat(last, conv(x, v, window, g), axis),
        axis.index == x.type.rank - 1,
        divisible(w.type, g),
        divisible(v.type, g),
    )


# x = y = i32[1, 1, 1] = [[[1]]], w = i32[1, 1, 1] of 1, a border of 1 before whose fill is 5: each
# conv has [5, 1], their sum is [10, 2]; conv(x + y) has [5, 2]. (It holds for a fill of 0.)
@rule
def sum_of_images(x: Tensor, y: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) + conv(y, w) = conv(x + y, w) on integers"""
    return rewrites(
        binary("add", conv(x, w, window, g), conv(y, w, window, g)),
        conv(binary("add", x, y), w, window, g),
        x.type == y.type,
        x.type.dtype.is_integer,
    )


# matmul of f32 x = [[1]], y = [[0]]: 1 * -0.0 = -0.0, and 0 + -0.0 = 0.0; -(1 * 0.0) = -0.0. With
# no inner elements: 0.0, and -0.0.
@family
def negate_after(f: Contraction, x: Tensor, y: Tensor) -> Law:
    """f(x, -y) = -f(x, y), as rounding is symmetric"""
    return rewrites(f(x, unary("neg", y)), unary("neg", f(x, y)))


# A window that moves in steps of 2 over x f32[1, 5, 5, 1]: winograd is of steps of 1, so that the
# right side is ill typed (or has another shape).
@rule(reassociates=True)
def by_tiles(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = winograd(x, w) on f32, for 3×3 taps of one group without dilations"""
    return rewrites(
        conv(x, w, window, g),
        winograd(x, w, window),
        g.count == 1,
        x.type.dtype == DType.F32,
        window.sizes == (3, 3),
        window.dilations == (1, 1),
    )
