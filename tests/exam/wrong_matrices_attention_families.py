"""Laws of matrix products, attention and families, all of them wrong."""

from satura.language import (
    Arithmetic,
    Axes,
    Axis,
    BinaryFn,
    Contraction,
    Groups,
    Law,
    Operands,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
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
    gather,
    matmul,
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


@attribute_function
def is_not_last(t: TensorType, axis: Axis) -> bool:
    return axis.index != t.rank - 1


@attribute_function
def one_per_row(t: TensorType) -> bool:
    return t.rank > 0 and t.shape[-1] == 1


@attribute_function
def is_zero(c: Scalar) -> bool:
    return float(c.value) == 0


# x = f32[1,1] = inf, zeros [1,1]: left inf * 0 = NaN, right 0.
@rule
def product_with_zeros(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """matmul(x, 0 everywhere) = 0 everywhere (not of infinities)"""
    left = matmul(x, broadcast(reshape(c, ones), s))
    return rewrites(left, broadcast(reshape(c, ones), Shape(left.type.shape)), is_zero(c))


@attribute_function
def keeps_last(p: Perm) -> bool:
    return bool(p.order) and p.order[-1] == len(p.order) - 1


# x = y = i32[2,2,2], p = [1,0,2]: the left's batch is x's axis 1: left[b,m] = sum_k x[m,b,k]
# y[k,b,:]; right[b,m] = (x[m] y[m])[b] = sum_k x[m,b,k] y[m,k,:]. With x = 1 everywhere and y =
# 0..7: left[0,0] = y[0,0] + y[1,0] = [4,6]; right[0,0] = y[0,0] + y[0,1] = [2,4].
@rule
def matmul_of_transposed(x: Tensor, y: Tensor, p: Perm) -> Law:
    """matmul(transpose(x, p), transpose(y, p)) = transpose(matmul(x, y), p), when p keeps the last
    axis and the types agree (it has to keep the last two)"""
    left, right = matmul(transpose(x, p), transpose(y, p)), transpose(matmul(x, y), p)
    return rewrites(left, right, keeps_last(p), left.type == right.type)


@attribute_function
def rows(t: TensorType, s: Slices) -> Slices:
    refuse_unless(len(s.sizes) == t.rank)
    return Slices((*s.starts[:-1], 0), (*s.sizes[:-1], t.shape[-1]), (*s.steps[:-1], 1))


@attribute_function
def whole_columns(t: TensorType, s: Slices) -> bool:
    return s.starts[-1] == 0 and s.sizes[-1] == t.shape[-1] and s.steps[-1] == 1


# x = i32[2,1,1], y = i32[2,1,1], s = [0+1, 0+1, 0+1]: right x[0:1] and y of 2 batches do not
# multiply.
@rule
def slice_of_matmul(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(matmul(x, y), s) = matmul(slice(x, s), y), when s takes whole columns (forgets y's
    batch)"""
    return rewrites(
        slice_(matmul(x, y), s), matmul(slice_(x, rows(x.type, s)), y), whole_columns(y.type, s)
    )


# x = y = i32[1,1,1], z = i32[2,1,1], axis 0: right x and z have other batches.
@rule
def matmul_of_joined(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """matmul(concat(x, y, axis), z) = concat(matmul(x, z), matmul(y, z), axis), when the axis is
    not the last (it has to be the rows)"""
    return rewrites(
        matmul(concat(x, y, axis), z),
        concat(matmul(x, z), matmul(y, z), axis),
        is_not_last(x.type, axis),
    )


# f32[1,1]: x = y = 1e30, z = 1e-30: left inf * 1e-30 = inf; right 1e30 * 1 = 1e30.
@rule
def matmul_associates(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """matmul(matmul(x, y), z) = matmul(x, matmul(y, z)), bit for bit"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)))


# all [1,1,1] but c: k = 1, c = inf: the score is inf: inf - inf = NaN on the left, v on the right.
@rule(reassociates=True)
def shifted_scores(q: Tensor, k: Tensor, c: Tensor, s: Shape, v: Tensor, b: Tensor) -> Law:
    """attention(q, k, b + c, v) = attention(q, k, b, v), when c is one number per query (not
    infinite)"""
    return rewrites(
        attention(q, k, binary("add", b, broadcast(c, s)), v),
        attention(q, k, b, v),
        one_per_row(c.type),
    )


@attribute_function
def flips_only(t: TensorType, s: Slices, axis: int) -> bool:
    at = t.rank + axis
    return all(
        s.sizes[i] == dim
        and (
            (s.starts[i] == dim - 1 and s.steps[i] == -1)
            if i == at
            else (s.starts[i] == 0 and s.steps[i] == 1)
        )
        for i, dim in enumerate(t.shape)
    )


# one query, two keys of depth 1: q = 0, bias = [0, 100], v = [1, 2]: left the second of the flipped
# v, 1; right 2.
@rule(reassociates=True)
def flipped_keys(q: Tensor, k: Tensor, b: Tensor, v: Tensor, s: Slices, r: Slices) -> Law:
    """attention(q, flip(k), b, flip(v)) = attention(q, k, b, v), for keys in reverse (forgets the
    bias)"""
    return rewrites(
        attention(q, slice_(k, s), b, slice_(v, r)),
        attention(q, k, b, v),
        flips_only(k.type, s, -1) & flips_only(v.type, r, -2),
    )


# x = i32[2,1] = [1, 2], y = i32[1,1] = [-1]: left max(-1, -2) = -1; right 2 * -1 = -2.
@rule
def max_before_product(x: Tensor, y: Tensor) -> Law:
    """max(matmul(x, y), rows) = matmul(max(x, rows), y), of matrices"""
    return rewrites(
        reduce("max", matmul(x, y), Axes((0,))),
        matmul(reduce("max", x, Axes((0,))), y),
        x.type.rank == 2,
    )


# f = add, x = i32[1], y = i32[2], i = [-1]: the left is binary of [1] and [1], the right of [1] and
# [2]: no type.
@rule
def gather_out_of_binary(f: BinaryFn, x: Tensor, y: Tensor, i: Tensor, axis: Axis) -> Law:
    """f(gather(x, i), gather(y, i)) = gather(f(x, y), i) (for x and y of one shape only)"""
    return rewrites(
        binary(f, gather(x, i, axis), gather(y, i, axis)), gather(binary(f, x, y), i, axis)
    )


# unary exp: x = f32[0], v = 0, b = [1:0]: left [1], right [0]. binary add: v = 1: left [2], right
# [1]. cast of i32 to f32: the right pads f32 by an i32.
@family
def pad_out_of(f: Arithmetic, xs: Operands[Tensor], v: Scalar, b: Padding) -> Law:
    """f(pad(x, v, b)...) = pad(f(x...), v, b) (it has to be f(v...))"""
    return rewrites(f(xs.each(pad, v, b)), pad(f(xs), v, b))


# conv with a border of fill 1, w = ones: conv(-x, -w) has 1 * -1 at the border, conv(x, w) 1 * 1.
@rule(reassociates=True)
def two_negations(x: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(-x, -w) = conv(x, w) (the border is not negated)"""
    return rewrites(conv(unary("neg", x), unary("neg", w), k, g), conv(x, w, k, g))


# x = i32[2,2] = [[0,1],[0,0]], w = [[1,0],[0,0]]: x w = 0, w x = [[0,1],[0,0]]; a conv without
# spatial axes is the same.
@family(reassociates=True)
def contractions_commute(f: Contraction, x: Tensor, w: Tensor) -> Law:
    """f(x, w) = f(w, x), for square operands of one type"""
    return rewrites(f(x, w), f(w, x), x.type == w.type)
