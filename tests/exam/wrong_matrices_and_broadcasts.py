"""Laws of families, matrices, broadcasts and choices of rows, all of them wrong."""

from satura.language import (
    Arithmetic,
    Axes,
    Axis,
    BinaryFn,
    Contraction,
    Known,
    Law,
    Operands,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    concat,
    equates,
    family,
    gather,
    has_value,
    matmul,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    unary,
)


# unary exp, v = 0, x = [1], one after: left [e, exp(0) = 1], right [e, 0]. cast: v f32 300.5 to i8
# has another dtype: ill typed; binary add, v = 1: border 2 and 1.
@family
def pad_out_of_any(f: Arithmetic, xs: Operands[Tensor], v: Scalar, b: Padding) -> Law:
    """f(pad(x, v, b)…) = pad(f(x…), v, b)"""
    return rewrites(f(xs.each(pad, v, b)), pad(f(xs), v, b))


# binary add: x = f32[1,2], y = f32[2,1], s = [2,2]: the right side adds f32[1,2] and f32[2,1]: ill
# typed.
@rule
def broadcasts_out_of_binary(f: BinaryFn, x: Tensor, y: Tensor, s: Shape) -> Law:
    """f(broadcast(x, s), broadcast(y, s)) = broadcast(f(x, y), s), when x and y have one rank and
    dtype"""
    return rewrites(
        binary(f, broadcast(x, s), broadcast(y, s)),
        broadcast(binary(f, x, y), s),
        x.type.rank == y.type.rank,
        x.type.dtype == y.type.dtype,
    )


# matmul f32 x = [[0.0]], w = [[1.0]]: left 0.0 + (-0.0 * 1) = 0.0, right -(0.0) = -0.0; conv
# likewise, and with fill 1, lo = 1, w = 1: left [1, -x], right [-1, -x].
@family
def negation_out_of_contraction(f: Contraction, x: Tensor, w: Tensor) -> Law:
    """f(-x, w) = -f(x, w), bit for bit"""
    return rewrites(f(unary("neg", x), w), unary("neg", f(x, w)))


# i32 x = [[1,2],[3,4]], c = 1: left rows' sums [[3,3],[7,7]], right columns' sums [[4,6],[4,6]].
@rule
def constant_matrix_commutes(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """matmul(x, c everywhere) = matmul(c everywhere, x), for integers and square matrices"""
    return rewrites(
        matmul(x, broadcast(reshape(c, o), s)),
        matmul(broadcast(reshape(c, o), s), x),
        x.type.dtype.is_integer,
        x.type.shape[-1] == x.type.shape[-2],
    )


@attribute_function
def side_by_side(y: TensorType) -> Shape:
    """[b, k, n] as [1, k, b·n]."""
    refuse_unless(y.rank == 3, "not one batch axis")
    return Shape((1, y.shape[1], y.shape[0] * y.shape[2]))


# i32 x = [[[1, 10]]] (m=1, k=2), y [2,2,1] = 1,2,3,4: left [[21],[43]]; right matmul([1,10],
# [[1,2],[3,4]]) = [31, 42].
@rule(reassociates=True)
def shared_rows_of_batch(x: Tensor, s: Shape, y: Tensor) -> Law:
    """matmul(broadcast(x, s), y) = reshape(matmul(x, y side by side)), for one x of one row and a
    batch of y"""
    left = matmul(broadcast(x, s), y)
    return rewrites(
        left,
        reshape(matmul(x, reshape(y, side_by_side(y.type))), Shape(left.type.shape)),
        (x.type.shape[0] == 1) & (x.type.shape[-2] == 1),
    )


@attribute_function
def is_rows(axes: Axes, t: TensorType) -> bool:
    """Whether only the rows are reduced."""
    return axes.indices == (t.rank - 2,)


# i32 max, x = [[1],[2]], y = [[-1]]: left max(-1, -2) = -1, right 2 * -1 = -2.
@rule
def maximum_inside_matmul(f: ReduceFn, x: Tensor, y: Tensor, axes: Axes) -> Law:
    """f(matmul(x, y), rows) = matmul(f(x, rows), y), for integers: rows are independent"""
    return rewrites(
        reduce(f, matmul(x, y), axes),
        matmul(reduce(f, x, axes), y),
        is_rows(axes, x.type),
        x.type.dtype.is_integer,
    )


# x f32[1,1], y f32[1,2]; w f32[2,1], v f32[1,1]: left is f32[1,1]; right matmul(f32[1,1],
# f32[2,1]): ill typed.
@rule(reassociates=True)
def split_inner_axis(x: Tensor, y: Tensor, w: Tensor, v: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y), concat(w, v)) = matmul(x, w) + matmul(y, v), when both are joined along
    the inner axis"""
    return rewrites(
        matmul(concat(x, y, a), concat(w, v, b)),
        binary("add", matmul(x, w), matmul(y, v)),
        a.index == x.type.rank - 1,
        b.index == w.type.rank - 2,
    )


# f32 x = [1000, 0], axes [0]: left inf / inf = NaN and 0; right [1, 0].
@rule(reassociates=True)
def stable_softmax(x: Tensor, axes: Axes, s: Shape) -> Law:
    """exp(x) / sum(exp(x)) = exp(x - max(x)) / sum(exp(x - max(x))), up to rounding"""
    shifted = unary("exp", binary("sub", x, broadcast(reduce("max", x, axes), s)))
    return rewrites(
        binary("div", unary("exp", x), broadcast(reduce("sum", unary("exp", x), axes), s)),
        binary("div", shifted, broadcast(reduce("sum", shifted, axes), s)),
    )


# x = [1,1], c = [1,2], s = [2], i = [1,0]: left [2,1], right [1,2].
@rule
def scale_gathered_rows(x: Tensor, c: Known, s: Shape, i: Tensor, axis: Axis) -> Law:
    """gather(x * broadcast(c), i, axis) = gather(x, i, axis) * broadcast(c), for i of rank 1, where
    c broadcasts"""
    taken = gather(x, i, axis)
    return rewrites(
        gather(binary("mul", x, broadcast(c, s)), i, axis),
        binary("mul", taken, broadcast(c, Shape(taken.type.shape))),
        i.type.rank == 1,
        has_value(broadcast(c, Shape(taken.type.shape)).type),
    )


# f32 x = y = 1.0: left -(0.0) = -0.0, right 0.0.
@rule
def negated_difference(x: Tensor, y: Tensor) -> Law:
    """-(x - y) = y - x"""
    return equates(unary("neg", binary("sub", x, y)), binary("sub", y, x))
