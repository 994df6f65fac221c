"""Laws of transposes, reshapes and what moves past them, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Elementwise,
    Groups,
    Law,
    Others,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Some,
    Tensor,
    TensorType,
    Unpadded,
    Varying,
    Window,
    attribute_function,
    broadcast,
    concat,
    conv,
    family,
    matmul,
    pad,
    product,
    reduce,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
)


@attribute_function
def after(q: Perm, p: Perm) -> Perm:
    """The permutations in the order in which they are written from outside."""
    return q[p]


# x f32[2,3,5], p=[1,2,0], q=[0,2,1]: left p then q = [1,0,2], shape [3,2,5]; right order
# q.order[p] = [2,1,0], shape [5,3,2].
@rule
def compose_transposes_outside_in(x: Varying, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q after p)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, after(q, p)))


# x i32[3,3,3]=arange(27), p=[1,2,0], s=[0+2,1+2,0+2]: left takes axis 1 of x from 0, axis 2 from 1,
# axis 0 from 0; right's s.permuted(p) = [1+2,0+2,0+2] takes axis 0 of x from 1. Both [2,2,2],
# left[0,0,0] = x[0,0,1] = 1, right[0,0,0] = x[1,0,0] = 9.
@rule
def slice_into_transpose(x: Tensor, p: Perm, s: Slices) -> Law:
    """slice(transpose(x, p), s) = transpose(slice(x, p(s)), p), where the types agree"""
    left = slice_(transpose(x, p), s)
    right = transpose(slice_(x, s.permuted(p)), p)
    return rewrites(left, right, left.type == right.type)


# binary add, x=[[1,2],[3,4]], p=[1,0], z=[[10,20]], s=[2,2]: left [[11,23],[12,24]];
# right T([[11,22],[13,24]]) = [[11,13],[22,24]].
@family
def transpose_past_square_broadcast(
    f: Elementwise, xs: Some[Tensor], zs: Others[Tensor], p: Perm, s: Shape
) -> Law:
    """f(transpose(x, p)…, broadcast(z, s)…) = transpose(f(x…, broadcast(z, s)…), p), for s that p
    leaves"""
    return rewrites(
        f(xs.each(transpose, p), zs.each(broadcast, s)),
        transpose(f(xs, zs.each(broadcast, s)), p),
        s.permuted(p) == s,
    )


@attribute_function
def has_one_tap(window: Window, groups: Groups) -> bool:
    """Whether the kernel is 1x1 and dense."""
    return all(k == 1 for k in window.sizes) and groups.count == 1


@attribute_function
def as_rows(t: TensorType) -> Shape:
    """All but the last axis in one."""
    return Shape((product(t.shape[:-1]), t.shape[-1]))


@attribute_function
def as_matrix(t: TensorType) -> Shape:
    """The last two axes: the others are of one tap."""
    return Shape(t.shape[-2:])


@attribute_function
def keeps_extents(a: TensorType, b: TensorType) -> bool:
    """Whether all but the channels are the same."""
    return a.shape[:-1] == b.shape[:-1]


# x f32[1,3,1] = [1,2,3], w f32[1,1,1] = [1], window 1 tap, stride 2, lo=hi=1, fill 0: outer =
# (3+2-1)//2+1 = 3 = extent. left reads positions -1,1,3: [0,2,0]; right [1,2,3].
@rule(reassociates=True)
def pointwise_conv_as_matmul(x: Tensor, w: Tensor, window: Window, groups: Groups) -> Law:
    """conv(x, w) = matmul of x's pixels and w, when the kernel has one tap and no extent changes"""
    left = conv(x, w, window, groups)
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, as_rows(x.type)), reshape(w, as_matrix(w.type))),
            Shape(left.type.shape),
        ),
        has_one_tap(window, groups),
        keeps_extents(left.type, x.type),
    )


# x = [[0,1,2],[3,4,5]], y = x + 10, s = [3,2], axis 1: left row 0 = [0,1,10,11];
# right: concat [2,6] = [0,1,2,10,11,12,...] as [3,4]: row 0 = [0,1,2,10].
@rule
def reshapes_out_of_concat(x: Tensor, y: Tensor, s: Shape, axis: Axis) -> Law:
    """concat(reshape(x, s), reshape(y, s), axis) = reshape(concat(x, y, axis), …), for x and y of
    one type"""
    left = concat(reshape(x, s), reshape(y, s), axis)
    return rewrites(
        left,
        reshape(concat(x, y, axis), Shape(left.type.shape)),
        x.type == y.type,
        axis.index < x.type.rank,
    )


# x = [[1,2],[3,4]], p = [1,0], s = [4]: left [1,3,2,4], right [1,2,3,4].
@rule
def transpose_of_equal_extents_is_no_move(x: Varying, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = reshape(x, s), when p leaves x's shape as it is"""
    return rewrites(
        reshape(transpose(x, p), s), reshape(x, s), p.apply(x.type.shape) == x.type.shape
    )


@attribute_function
def keeps_reduced(t: TensorType, s: Shape, axes: Axes) -> bool:
    """Whether the axes have the same extents before and after."""
    return t.rank == len(s.dims) and all(t.shape[a] == s.dims[a] for a in axes.indices)


# f = max, x i32[2,2,3] = arange(12), s = [3,2,2], axes [1]: left reduces flat (0,2)(1,3)(4,6)...:
# [2,3,6,7,10,11]; right reduces (0,3)(1,4)(2,5)...: [3,4,5,9,10,11].
@rule
def reshape_past_kept_reduction(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """reduce(reshape(x, s), axes) = reshape(reduce(x, axes), …), when s keeps the extents of the
    axes"""
    left = reduce(f, reshape(x, s), axes)
    return rewrites(
        left, reshape(reduce(f, x, axes), Shape(left.type.shape)), keeps_reduced(x.type, s, axes)
    )


@attribute_function
def column(s: Shape) -> bool:
    """Whether it is [n, 1]."""
    return len(s.dims) == 2 and s.dims[1] == 1


@attribute_function
def flipped(s: Shape) -> Shape:
    """The dims in reverse order."""
    return Shape(s.dims[::-1])


# x = [1,2], s = [2,1], w = [2,2], t = [4]: left [1,1,2,2], right [1,2,1,2].
@rule
def repeat_as_tile(x: Tensor, s: Shape, w: Shape, t: Shape) -> Law:
    """reshape(broadcast(x as a column, [n, k]), [n·k]) = reshape(broadcast(x as a row, [k, n]),
    [n·k])"""
    return rewrites(
        reshape(broadcast(reshape(x, s), w), t),
        reshape(broadcast(reshape(x, flipped(s)), flipped(w)), t),
        column(s),
    )


@attribute_function
def swaps_last_two(p: Perm) -> bool:
    """Whether only the last two axes change places."""
    n = len(p.order)
    return n >= 2 and p.order == (*range(n - 2), n - 1, n - 2)


# x = [[1,1],[0,1]], y = [[1,0],[1,1]]: xy = [[2,1],[1,1]], its transpose the same;
# xT yT = [[1,0],[1,1]] [[1,1],[0,1]] = [[1,1],[1,2]].
@rule(reassociates=True)
def transpose_into_square_matmul(x: Varying, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(x, p), transpose(y, p)), for square matrices"""
    return rewrites(
        transpose(matmul(x, y), p),
        matmul(transpose(x, p), transpose(y, p)),
        swaps_last_two(p),
        x.type == y.type,
    )


@attribute_function
def moved_front(b: Padding, p: Perm) -> Padding:
    """The padding of the operand below the transpose."""
    return Padding(b.permuted(p.inverse).lo, b.hi)


# x = [[1]], p = [1,0], c = 0, b = [0:1, 0:0] (one after axis 0): left [[1],[0]];
# right pads x after axis 0: [[1],[0]], transposed [[1,0]]: another shape.
@rule
def pad_into_transpose(x: Unpadded, c: Scalar, p: Perm, b: Padding) -> Law:
    """pad(transpose(x, p), c, b) = transpose(pad(x, c, p⁻¹(b)), p)"""
    return rewrites(pad(transpose(x, p), c, b), transpose(pad(x, c, moved_front(b, p)), p))
