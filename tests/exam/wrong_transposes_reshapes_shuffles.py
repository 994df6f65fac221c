"""Laws of transposes, reshapes and shuffles of channels, all of them wrong."""

from satura.language import (
    Axes,
    Law,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    matmul,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
)


@attribute_function
def selects(f: ReduceFn) -> bool:
    """Whether f is max or min."""
    return f.name in ("max", "min")


@attribute_function
def axes_under(p: Perm, a: Axes) -> Axes:
    """The places of the axes behind p."""
    return Axes(tuple(sorted(p.inverse.order[i] for i in a.indices)))


@attribute_function
def has_unit(t: TensorType) -> bool:
    """Whether an axis has extent 1."""
    return any(d == 1 for d in t.shape)


@attribute_function
def permuted_shape(t: TensorType, p: Perm) -> Shape:
    """The shape of the transposed tensor."""
    return Shape(p.apply(t.shape))


@attribute_function
def cubic(s: Slices) -> bool:
    """Whether all sizes and all steps of s are equal."""
    return len(set(s.sizes)) <= 1 and len(set(s.steps)) <= 1


@attribute_function
def keeps_last(p: Perm) -> bool:
    """Whether the last axis stays the last."""
    return len(p.order) > 0 and p.order[-1] == len(p.order) - 1


@attribute_function
def is_rows(s: Shape, t: TensorType) -> bool:
    """Whether s is a matrix with t's last axis."""
    return t.rank >= 1 and len(s.dims) == 2 and s.dims[1] == t.shape[-1]


@attribute_function
def is_shuffle(p: Perm) -> bool:
    """Whether p exchanges the last two of three axes."""
    return p.order == (0, 2, 1)


@attribute_function
def swaps_last_two(p: Perm) -> bool:
    """Whether p exchanges the last two axes and nothing else."""
    n = len(p.order)
    return n >= 2 and p.order == (*range(n - 2), n - 1, n - 2)


@attribute_function
def axis_one(t: TensorType) -> Axes:
    """Axis 1, of at least 2."""
    refuse_unless(t.rank >= 2)
    return Axes((1,))


@attribute_function
def unit_at_one(s: Shape) -> Shape:
    """s with extent 1 on axis 1."""
    return Shape((s.dims[0], 1, *s.dims[2:]))


@attribute_function
def same_at_one(t: TensorType, s: Shape, a: Axes) -> bool:
    """Whether axis 1 has the same extent before and after, and is the one that is reduced."""
    return t.rank >= 2 and len(s.dims) >= 2 and t.shape[1] == s.dims[1] and a.indices == (1,)


# x = arange(6) : f32[1, 2, 3], p = [1, 0, 2], q = [0, 2, 1]. left: axis i is x's axis
# p[q[i]] = [1, 2, 0], shape [2, 3, 1]; right: q[p[i]] = [2, 0, 1], shape [3, 1, 2].
@rule
def compose_transposes_in_wrong_order(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q then p)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


# x = arange(8) : f32[2, 2, 2], p = [1, 2, 0] (a cycle): twice p is [2, 0, 1], and not the identity,
# though the shape is that of x. left[0,0,1] = x[0,1,0] = 2, right[0,0,1] = 1.
@rule
def transpose_twice(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p) = x, where the shape comes out again"""
    return rewrites(transpose(transpose(x, p), p), x, transpose(transpose(x, p), p).type == x.type)


# x = arange(8) : f32[2, 2, 2], p = [1, 2, 0], a = [0], f = max. Axis 0 of the transposed is axis 1
# of x; the right side reduces x's axis p.inverse[0] = 2, and has extent 1 where the left one has
# not: shapes [1, 2, 2] and transpose of [2, 2, 1] = [2, 1, 2].
@rule
def transpose_past_reduce_by_inverse(f: ReduceFn, x: Tensor, p: Perm, a: Axes) -> Law:
    """reduce(transpose(x, p), a) = transpose(reduce(x, the axes of a before p), p)"""
    return rewrites(
        reduce(f, transpose(x, p), a), transpose(reduce(f, x, axes_under(p, a)), p), selects(f)
    )


# x = [[[0, 1, 2], [3, 4, 5]]] : f32[1, 2, 3], p = [0, 2, 1]: left [[[0, 3], [1, 4], [2, 5]]], right
# [[[0, 1], [2, 3], [4, 5]]].
@rule
def transpose_beside_unit(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when x has an axis of extent 1"""
    return rewrites(transpose(x, p), reshape(x, permuted_shape(x.type, p)), has_unit(x.type))


# x = f32[2, 2, 2], p = [1, 2, 0], b: lo = (1, 0, 0), hi = (0, 1, 1), v = 0: all extents become 3.
# left: x begins at 1 along result axis 0, which is x's axis 1. right: b.permuted(p) has lo = (0, 0,
# 1): x begins at 1 along x's axis 2. left[0] is all 0; right[0] is not.
@rule
def transpose_past_pad_by_itself(x: Tensor, v: Tensor, p: Perm, b: Padding) -> Law:
    """pad(transpose(x, p), v, b) = transpose(pad(x, v, p(b)), p), where the shape fits"""
    left = pad(transpose(x, p), v, b)
    right = transpose(pad(x, v, b.permuted(p)), p)
    return rewrites(left, right, left.type == right.type)


# x = [[0, 1], [2, 3]] : i32[2, 2], p = [1, 0], s = [0+1, 1+1]: left = transposed[0, 1] = x[1, 0] =
# 2; right: x[0, 1] = 1.
@rule
def transpose_past_even_slice(x: Tensor, p: Perm, s: Slices) -> Law:
    """slice(transpose(x, p), s) = transpose(slice(x, s), p), when s is alike on all axes"""
    return rewrites(slice_(transpose(x, p), s), transpose(slice_(x, s), p), cubic(s))


# x = arange(4) : f32[2, 2, 1], p = [1, 0, 2], s = [4, 1]: left 0, 2, 1, 3; right 0, 1, 2, 3.
@rule
def flatten_after_transpose(x: Tensor, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = reshape(x, s), when p keeps the last axis and s the rows"""
    return rewrites(reshape(transpose(x, p), s), reshape(x, s), keeps_last(p) & is_rows(s, x.type))


# x = arange(8) : f32[1, 8], s = [1, 2, 4]. One shuffle: 0 4 1 5 2 6 3 7; the second one by the same
# s: 0 2 4 6 1 3 5 7, and not x.  (By s and then by [1, 4, 2] it would be x.)
@rule
def channel_shuffle_twice(x: Tensor, s: Shape, t: Shape, p: Perm) -> Law:
    """shuffle(shuffle(x)) = x, where shuffle splits channels, swaps the parts, and merges them"""
    once = reshape(transpose(reshape(x, s), p), t)
    return rewrites(
        reshape(transpose(reshape(once, s), p), t), x, is_shuffle(p) & (t == Shape(x.type.shape))
    )


# x = [[0, 1], [0, 0]], y = [[0, 0], [1, 0]] : f32[2, 2], p = [1, 0]. xy = [[1, 0], [0, 0]], and so
# is its transpose; x'y' = [[0, 0], [1, 0]] [[0, 1], [0, 0]] = [[0, 0], [0, 1]].
@rule
def transpose_of_square_matmul(x: Tensor, y: Tensor, p: Perm) -> Law:
    """matmul(x, y) transposed = matmul(x transposed, y transposed), for square matrices"""
    return rewrites(
        transpose(matmul(x, y), p),
        matmul(transpose(x, p), transpose(y, p)),
        swaps_last_two(p) & (x.type == y.type),
        matmul(x, y).type == transpose(x, p).type,
    )


# x = arange(8) : f32[1, 2, 4], s = [4, 2, 1]. left: max of neighbours (0, 1), (2, 3), … = 1 3 5 7;
# right: max over x's rows: 4 5 6 7.
@rule
def reshape_past_reduce_of_middle(x: Tensor, f: ReduceFn, s: Shape, a: Axes) -> Law:
    """reduce(reshape(x, s), 1) = reshape(reduce(x, 1), s with 1), when axis 1 keeps its extent"""
    return rewrites(
        reduce(f, reshape(x, s), a),
        reshape(reduce(f, x, axis_one(x.type)), unit_at_one(s)),
        selects(f) & same_at_one(x.type, s, a),
    )
