"""Laws of transposes and reshapes, all of them wrong."""

from __future__ import annotations

import typing

from satura.language import (
    Axes,
    Axis,
    Law,
    Perm,
    ReduceFn,
    Shape,
    Tensor,
    TensorType,
    Untransposed,
    Varying,
    attribute_function,
    concat,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    transpose,
)


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


# x = f32[1, 2, 3], p = [1, 2, 0], q = [1, 0, 2]: the left side has the shape [3, 2, 1] (p gives
# [2, 3, 1], q exchanges its first two); q[p] is [0, 2, 1], which gives [1, 3, 2].
@rule
def compose_transposes_in_the_wrong_order(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q then p)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


@attribute_function
def axes_by_inverse(axes: Axes, p: Perm) -> Axes:
    return Axes(tuple(sorted(p.inverse.order[i] for i in axes.indices)))


# x = f32[2, 3, 4], p = [1, 2, 0], axes [0]: transposed it is [3, 4, 2]; its axis 0 is x's axis 1.
# The inverse is [2, 0, 1], so the right side reduces x's axis 2: [2, 3, 1], transposed [3, 1, 2],
# not [1, 4, 2].
@rule
def extremum_of_transposed_by_inverse(f: ReduceFn, x: Tensor, p: Perm, a: Axes) -> Law:
    """max(transpose(x, p), a) = transpose(max(x, a'), p), where a' are the axes a behind p⁻¹"""
    return rewrites(
        reduce(f, transpose(x, p), a),
        transpose(reduce(f, x, axes_by_inverse(a, p)), p),
        is_one_of(f.name, ("max", "min")),
    )


# x = f32[2, 2] = [[1, 2], [3, 4]], p = [1, 0]: the left side is [[1, 3], [2, 4]].
@rule
def transpose_of_a_cube(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = x, when the shape stays the same"""
    return rewrites(transpose(x, p), x, x.type.shape == transpose(x, p).type.shape)


@attribute_function
def longer_axes(t: TensorType) -> int:
    """How many axes are not of extent 1."""
    return sum(dim != 1 for dim in t.shape)


# x = f32[2, 1, 2] = [[[1, 2]], [[3, 4]]], p = [2, 1, 0]: the left side is [[[1, 3]], [[2, 4]]], the
# reshape keeps 1, 2, 3, 4. With one longer axis it would hold.
@rule
def transpose_of_few_axes_is_reshape(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when at most two axes are longer than 1"""
    return rewrites(
        transpose(x, p), reshape(x, Shape(p.apply(x.type.shape))), longer_axes(x.type) <= 2
    )


@attribute_function
def comes_back_to_first(p: Perm) -> bool:
    refuse_unless(len(p.order) >= 1, "no axes")
    return p.order[p.order[0]] == 0


# p = [0, 2, 3, 1] is not its own inverse: x = f32[1, 2, 3, 4] becomes [1, 3, 4, 2], then [1, 4, 2,
# 3].
@rule
def twice_the_same_transpose(x: Varying, p: Perm) -> Law:
    """transpose(transpose(x, p), p) = x, when p is an exchange of axes"""
    return rewrites(transpose(transpose(x, p), p), x, comes_back_to_first(p))


# x = f32[2, 2] = [[1, 2], [3, 4]], p = [1, 0], s = [4]: left 1, 3, 2, 4, right 1, 2, 3, 4.
@rule
def flattened_transpose(x: Tensor, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = reshape(x, s), when s has one axis"""
    return rewrites(
        reshape(transpose(x, p), s),
        reshape(x, s),
        transpose(x, p).type.rank > reshape(x, s).type.rank,
    )


@attribute_function
def middle_stays(t: TensorType, s: Shape) -> bool:
    return t.rank == 3 and len(s.dims) == 3 and t.shape[1] == s.dims[1]


@attribute_function
def without_middle(s: Shape) -> Shape:
    refuse_unless(len(s.dims) == 3, "not three axes")
    return Shape((s.dims[0], 1, s.dims[2]))


# x = f32[1, 2, 2] = [[[1, 2], [3, 4]]], s = [2, 2, 1]: reshaped [[[1], [2]], [[3], [4]]], the max
# along axis 1 is 2, 4; along axis 1 of x it is 3, 4.
@rule
def extremum_along_the_middle_of_reshaped(f: ReduceFn, x: Tensor, s: Shape) -> Law:
    """f(reshape(x, s), 1) = reshape(f(x, 1), …), for three axes of which the middle one stays"""
    return rewrites(
        reduce(f, reshape(x, s), Axes((1,))),
        reshape(reduce(f, x, Axes((1,))), without_middle(s)),
        middle_stays(x.type, s),
        is_one_of(f.name, ("max", "min")),
    )


@attribute_function
def is_flat(s: Shape) -> bool:
    return len(s.dims) == 1


@attribute_function
def leads(t: TensorType, axis: Axis) -> bool:
    return axis.index == 0 or t.shape[0] == 1


# x = f32[1, 2, 1] = 1, 2 and y = f32[1, 2, 1] = 3, 4, axis = 2: the concatenation [[[1, 3], [2,
# 4]]] is 1, 3, 2, 4 in row-major order; the right side is 1, 2, 3, 4. All extents before the axis
# must be 1.
@rule
def flattened_concat(x: Tensor, y: Tensor, axis: Axis, s: Shape) -> Law:
    """reshape(concat(x, y, axis), [n]) = concat(reshape(x, [k]), reshape(y, [m]), 0), when only
    axes of extent 1 stand before the axis"""
    return rewrites(
        reshape(concat(x, y, axis), s),
        concat(reshape(x, Shape((x.type.size,))), reshape(y, Shape((y.type.size,))), Axis(0)),
        is_flat(s),
        leads(x.type, axis),
    )


# s = [2, 3, 1], u = [1, 6]: six channels 0…5 in 2 groups of 3 become 0, 3, 1, 4, 2, 5, and by the
# same shuffle 0, 4, 3, 2, 1, 5. It is undone by the shuffle with 3 groups of 2.
@rule
def same_channel_shuffle_twice(x: Tensor, s: Shape, t: Shape, u: Shape) -> Law:
    """a shuffle of channels, done twice, is nothing"""
    swap = Perm((1, 0, 2))
    return rewrites(
        reshape(transpose(reshape(reshape(transpose(reshape(x, s), swap), t), s), swap), u),
        x,
        u.dims == x.type.shape,
    )


# x = f32[2, 3], s = [3, 2], p = [1, 0]: x = 1…6; reshaped [[1, 2], [3, 4], [5, 6]], transposed
# [[1, 3, 5], [2, 4, 6]], which is not x.
@rule
def reshape_as_transpose(x: Untransposed, s: Shape, p: Perm) -> Law:
    """transpose(reshape(x, s), p) = x, when that is its shape again"""
    return rewrites(
        transpose(reshape(x, s), p),
        x,
        transpose(reshape(x, s), p).type == x.type,
        typing.cast(bool, ~p.is_identity),
    )
