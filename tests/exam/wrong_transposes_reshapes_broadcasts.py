"""Laws of transposes, reshapes and broadcasts, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Law,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    attribute_function,
    broadcast,
    concat,
    matmul,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
)


# x = i32[2,3,4], p = [1,2,0], q = [1,0,2]: left has order p[q] = (2,1,0) and shape [4,3,2]; right
# has q[p] = (0,2,1) and shape [2,4,3].
@rule
def compose_the_other_way(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q then p)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


# x = i32[2,2,2] = 0..7, p = [1,2,0], s = [0+1, 0+2, 0+2]: left takes index 0 of x's axis 1:
# x[:,0,:] = 0,1,4,5; s.permuted(p) = [0+2,0+2,0+1] takes index 0 of x's axis 2, and the shape is
# [2,1,2].
@rule
def slice_before_transpose(x: Tensor, p: Perm, s: Slices) -> Law:
    """slice(transpose(x, p), s) = transpose(slice(x, p(s)), p)"""
    return rewrites(slice_(transpose(x, p), s), transpose(slice_(x, s.permuted(p)), p))


@attribute_function
def through(p: Perm, axes: Axes) -> Axes:
    back = p.inverse.order
    refuse_unless(all(axis < len(back) for axis in axes.indices))
    return Axes(tuple(sorted(back[axis] for axis in axes.indices)))


# x = i32[2,2,2] = 0..7, p = [1,2,0], axes = [0]: result axis 0 is x's axis p[0] = 1, so left has
# max over x's axis 1; p^-1[0] = 2, right has max over x's axis 2 and the shape [2,1,2] for [1,2,2].
@rule
def reduce_before_transpose(x: Tensor, p: Perm, axes: Axes) -> Law:
    """max(transpose(x, p), axes) = transpose(max(x, p^-1(axes)), p)"""
    return rewrites(
        reduce("max", transpose(x, p), axes), transpose(reduce("max", x, through(p, axes)), p)
    )


@attribute_function
def has_unit(t: TensorType, p: Perm) -> bool:
    return any(dim == 1 and p.order[axis] != axis for axis, dim in enumerate(t.shape))


# x = i32[1,2,2] = [[[0,1],[2,3]]], p = [2,1,0]: left is [2,2,1] with 0,2,1,3 in row-major order (it
# is x[0,j,i]); right keeps 0,1,2,3.
@rule
def transpose_with_unit_is_reshape(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when p moves an axis of extent 1"""
    return rewrites(transpose(x, p), reshape(x, Shape(p.apply(x.type.shape))), has_unit(x.type, p))


# x = i32[2,2] = [[0,1],[2,3]], p = [1,0], s = [4]: left 0,2,1,3, right 0,1,2,3.
@rule
def flatten_forgets_order(x: Tensor, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = reshape(x, s), when p leaves the shape as it is"""
    return rewrites(reshape(transpose(x, p), s), reshape(x, s), x.type == transpose(x, p).type)


# x = i32[2,2] = [[1,1],[0,1]], y = [[1,0],[1,1]], p = [1,0]: xy = [[2,1],[1,1]], transposed the
# same; x'y' = [[1,0],[1,1]] [[1,1],[0,1]] = [[1,1],[1,2]].
@rule
def transpose_both_factors(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(x, p), transpose(y, p)), when the types
    agree"""
    left, right = transpose(matmul(x, y), p), matmul(transpose(x, p), transpose(y, p))
    return rewrites(left, right, left.type == right.type)


@attribute_function
def axis_is_within(t: TensorType, axis: Axis) -> bool:
    return axis.index < t.rank


@attribute_function
def as_reduced(s: Shape, axes: Axes) -> Shape:
    return Shape(tuple(1 if i in axes.indices else dim for i, dim in enumerate(s.dims)))


@attribute_function
def all_extents(t: TensorType, s: Shape, axes: Axes) -> bool:
    both = min(t.rank, len(s.dims))
    return all(axis < both and t.shape[axis] == s.dims[axis] for axis in axes.indices)


# x = i32[2,2,2] = 0..7, s = [4,2,1], f = max, axes [1]: left rows (0,1),(2,3),(4,5),(6,7): 1,3,5,7;
# right max over x's axis 1: 2,3,6,7.
@rule
def reduce_before_reshape(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """f(reshape(x, s), axes) = reshape(f(x, axes), s with 1 there), when both have these extents"""
    return rewrites(
        reduce(f, reshape(x, s), axes),
        reshape(reduce(f, x, axes), as_reduced(s, axes)),
        all_extents(x.type, s, axes),
    )


# x = y = i32[2,3] = 0..5, s = [3,2], axis = 1: left [[0,1,0,1],[2,3,2,3],[4,5,4,5]]; right is
# [[0,1,2,0,1,2],[3,4,5,3,4,5]] as [3,4]: [[0,1,2,0],[1,2,3,4],[5,3,4,5]].
@rule
def reshape_out_of_concat(x: Tensor, y: Tensor, s: Shape, axis: Axis) -> Law:
    """concat(reshape(x, s), reshape(y, s), axis) = reshape(concat(x, y, axis), ...), when they are
    of one type"""
    left = concat(reshape(x, s), reshape(y, s), axis)
    return rewrites(
        left,
        reshape(concat(x, y, axis), Shape(left.type.shape)),
        x.type == y.type,
        axis_is_within(x.type, axis),
    )


@attribute_function
def with_one_behind(t: TensorType, axis: Axis, number: int) -> Shape:
    at = axis.index + 1
    return Shape((*t.shape[:at], number, *t.shape[at:]))


# x = i32[2] = [1,2], axis = 0: left [1,2,1,2], right [[1,1],[2,2]] as [4]: [1,1,2,2].
@rule
def tile_is_repeat(x: Tensor, axis: Axis) -> Law:
    """concat(x, x, axis) = each element of x twice along the axis"""
    left = concat(x, x, axis)
    column = reshape(x, with_one_behind(x.type, axis, 1))
    return rewrites(
        left, reshape(broadcast(column, with_one_behind(x.type, axis, 2)), Shape(left.type.shape))
    )


# x = i32[2] = [1,2], axes = [0], s = [2]: left [2,2], right [1,2].
@rule
def broadcast_undoes_reduce(x: Tensor, axes: Axes, s: Shape) -> Law:
    """broadcast(max(x, axes), s) = x, when s is the shape of x"""
    return rewrites(broadcast(reduce("max", x, axes), s), x, s == Shape(x.type.shape))


# x = i32[3,3] = 0..8, sizes [1,2], strides [3,3], no border, p = [1,0]: both are 1 by 1: left
# max(x00, x10) = 3, right max(x00, x01) = 1.
@rule
def window_is_not_permuted(f: ReduceFn, x: Tensor, p: Perm, w: Window) -> Law:
    """pool(transpose(x, p), w) = transpose(pool(x, w), p), when the types agree"""
    left, right = pool(f, transpose(x, p), w), transpose(pool(f, x, w), p)
    return rewrites(left, right, left.type == right.type)


# x = y = i32[2,2] = [[0,1],[2,3]], p = [1,0], axis = 0: left [[0,2],[1,3],[0,2],[1,3]] is [4,2],
# right the transposed [4,2], which is [2,4].
@rule
def concat_axis_stays(x: Tensor, y: Tensor, p: Perm, axis: Axis) -> Law:
    """concat(transpose(x, p), transpose(y, p), axis) = transpose(concat(x, y, axis), p)"""
    return rewrites(
        concat(transpose(x, p), transpose(y, p), axis),
        transpose(concat(x, y, axis), p),
        x.type == y.type,
    )
