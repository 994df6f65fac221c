"""Laws of transposes and reshapes, all of them right."""

from __future__ import annotations

from satura.language import (
    Axes,
    Axis,
    Law,
    Movable,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Untransposed,
    Varying,
    attribute_function,
    broadcast,
    concat,
    exact_quotient,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
)


@attribute_function
def mapped(axes: Axes, p: Perm) -> Axes:
    """Where the axes of a transposed tensor were before."""
    return Axes(tuple(sorted(p.order[i] for i in axes.indices)))


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


@rule
def undo_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p⁻¹) = x"""
    return rewrites(transpose(transpose(x, p), p.inverse), x)


@rule
def extremum_of_transposed(f: ReduceFn, x: Varying, p: Perm, a: Axes) -> Law:
    """max(transpose(x, p), a) = transpose(max(x, p(a)), p), and so for min"""
    return rewrites(
        reduce(f, transpose(x, p), a),
        transpose(reduce(f, x, mapped(a, p)), p),
        is_one_of(f.name, ("max", "min")),
    )


@rule
def transpose_of_broadcast(x: Movable, s: Shape, p: Perm) -> Law:
    """transpose(broadcast(x, s), p) = broadcast(transpose(x, p), p(s))"""
    return rewrites(transpose(broadcast(x, s), p), broadcast(transpose(x, p), s.permuted(p)))


@attribute_function
def at_most_one_longer(t: TensorType) -> bool:
    return sum(dim != 1 for dim in t.shape) <= 1


@rule
def transpose_of_a_line_is_reshape(x: Untransposed, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when at most one axis may be longer than 1"""
    return rewrites(
        transpose(x, p), reshape(x, Shape(p.apply(x.type.shape))), at_most_one_longer(x.type)
    )


@attribute_function
def first_two_swap(p: Perm) -> bool:
    return p.order == (1, 0)


@attribute_function
def turned_shape(s: Shape) -> Shape:
    refuse_unless(len(s.dims) == 2, "not two axes")
    return Shape((s.dims[1], s.dims[0]))


@rule
def undo_channel_shuffle(x: Tensor, s: Shape, t: Shape, r: Shape, p: Perm) -> Law:
    """a shuffle of channels in g groups of m, and then one in m groups of g, is nothing"""
    return rewrites(
        reshape(transpose(reshape(reshape(transpose(reshape(x, s), p), t), turned_shape(s)), p), r),
        x,
        r.dims == x.type.shape,
        first_two_swap(p),
    )


@attribute_function
def first_stays(t: TensorType, s: Shape) -> bool:
    return t.rank >= 1 and len(s.dims) >= 1 and t.shape[0] == s.dims[0]


@attribute_function
def others(rank: int) -> Axes:
    return Axes(tuple(range(1, rank)))


@attribute_function
def first_alone(s: Shape) -> Shape:
    refuse_unless(len(s.dims) >= 1, "no axes")
    return Shape((s.dims[0], *(1,) * (len(s.dims) - 1)))


@rule
def extremum_of_reshaped_rows(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """max of each row of reshape(x, s) = max of each row of x, when both have the same rows, and so
    for min; a row is what shares the first index"""
    return rewrites(
        reduce(f, reshape(x, s), a),
        reshape(reduce(f, x, others(x.type.rank)), first_alone(s)),
        is_one_of(f.name, ("max", "min")),
        first_stays(x.type, s),
        a.indices == others(reshape(x, s).type.rank).indices,
    )


@attribute_function
def leads_with_ones(t: TensorType, axis: Axis) -> bool:
    return all(dim == 1 for dim in t.shape[: axis.index])


@attribute_function
def flat(t: TensorType) -> Shape:
    return Shape((t.size,))


@rule
def flattened_concat(x: Tensor, y: Tensor, axis: Axis, s: Shape) -> Law:
    """reshape(concat(x, y, axis), s) = reshape(concat(reshape(x, [k]), reshape(y, [m]), 0), s),
    when all axes before the axis have the extent 1"""
    return rewrites(
        reshape(concat(x, y, axis), s),
        reshape(concat(reshape(x, flat(x.type)), reshape(y, flat(y.type)), Axis(0)), s),
        leads_with_ones(x.type, axis),
    )


@attribute_function
def is_column(u: Shape) -> bool:
    return len(u.dims) == 2 and u.dims[1] == 1


@attribute_function
def interleaves(a: Slices, b: Slices, t: TensorType) -> bool:
    """Whether a takes the even places of a list, and b the odd ones, of which there are as many."""
    if t.rank != 1 or a.steps != (2,) or b.steps != (2,):
        return False
    n = exact_quotient(t.shape[0], 2)
    return (a.starts, b.starts) == ((0,), (1,)) and n is not None and a.sizes == b.sizes == (n,)


@rule
def interleave_evens_and_odds(
    x: Tensor, a: Slices, b: Slices, u: Shape, axis: Axis, r: Shape
) -> Law:
    """x[0::2] and x[1::2] as two columns, row by row, are x, when x has an even length"""
    return rewrites(
        reshape(concat(reshape(slice_(x, a), u), reshape(slice_(x, b), u), axis), r),
        x,
        interleaves(a, b, x.type),
        r.dims == x.type.shape,
        is_column(u) & (axis.index == 1),
    )
