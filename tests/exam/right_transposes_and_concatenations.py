"""Laws of transposes, reshapes, broadcasts and concatenations, all of them right."""

import typing

from satura.language import (
    Axis,
    Dim,
    DType,
    Law,
    Padding,
    Perm,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    attribute_function,
    broadcast,
    concat,
    equates,
    exact_quotient,
    iota,
    pad,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    select,
    slice_,
    transpose,
)


@rule
def transpose_and_back(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p^-1) = x"""
    return rewrites(transpose(transpose(x, p), p.inverse), x)


@rule
def slice_under_transpose(x: Varying, p: Perm, s: Slices) -> Law:
    """slice(transpose(x, p), s) = transpose(slice(x, p^-1(s)), p), steps included"""
    return rewrites(slice_(transpose(x, p), s), transpose(slice_(x, s.permuted(p.inverse)), p))


@attribute_function
def is_turned(t: TensorType, s: Slices) -> bool:
    """Whether each axis is taken as a whole, forwards or backwards."""
    return len(s.sizes) == t.rank and all(
        size == dim and ((start == 0 and step == 1) or (start == dim - 1 and step == -1))
        for dim, start, size, step in zip(t.shape, s.starts, s.sizes, s.steps)
    )


@rule
def turn_twice(x: Tensor, s: Slices) -> Law:
    """slice(slice(x, s), s) = x, when s takes each axis as a whole, forwards or backwards"""
    return rewrites(slice_(slice_(x, s), s), x, is_turned(x.type, s))


@attribute_function
def picks_one_copy(t: TensorType, s: Shape, r: Slices) -> bool:
    """Whether r takes one element of each repeated axis and the whole of each other one."""
    return len(s.dims) == t.rank == len(r.sizes) and all(
        (old == 1 and size == 1) or (old == new == size and start == 0 and step == 1)
        for old, new, start, size, step in zip(t.shape, s.dims, r.starts, r.sizes, r.steps)
    )


@rule
def one_of_the_copies(x: Tensor, s: Shape, r: Slices) -> Law:
    """slice(broadcast(x, s), r) = x, when r takes one copy"""
    return rewrites(slice_(broadcast(x, s), r), x, picks_one_copy(x.type, s, r))


@attribute_function
def in_front(t: TensorType, axis: Axis, number: int) -> Shape:
    refuse_unless(axis.index < t.rank)
    return Shape((*t.shape[: axis.index], number, *t.shape[axis.index :]))


@rule
def twice_in_a_row(x: Varying, axis: Axis) -> Law:
    """concat(x, x, axis) = a new axis in front of it, repeated twice, and merged"""
    left = concat(x, x, axis)
    return rewrites(
        left,
        reshape(
            broadcast(reshape(x, in_front(x.type, axis, 1)), in_front(x.type, axis, 2)),
            Shape(left.type.shape),
        ),
    )


@attribute_function
def ones(rank: int) -> Shape:
    return Shape((1,) * rank)


@attribute_function
def is_empty(t: TensorType) -> bool:
    return t.size == 0


@rule
def pad_of_nothing(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = v everywhere, when x has no elements"""
    left = pad(x, v, b)
    return rewrites(
        left, broadcast(reshape(v, ones(x.type.rank)), Shape(left.type.shape)), is_empty(x.type)
    )


@rule
def pad_by_the_same(c: Tensor, one: Shape, s: Shape, b: Padding) -> Law:
    """pad(c everywhere, c, b) = c everywhere, in a larger shape"""
    left = pad(broadcast(reshape(c, one), s), c, b)
    return rewrites(left, broadcast(reshape(c, one), Shape(left.type.shape)))


@rule
def concat_in_any_order(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """concat(concat(x, y), z) = concat(x, concat(y, z)), along one axis"""
    return equates(concat(concat(x, y, axis), z, axis), concat(x, concat(y, z, axis), axis))


@attribute_function
def part(t: TensorType, x: TensorType, axis: Axis, is_first: bool) -> Slices:
    """The part of t that is x along the axis, at the start or at the end."""
    refuse_unless(t.rank == x.rank and axis.index < t.rank)
    at = axis.index
    start = 0 if is_first else t.shape[at] - x.shape[at]
    return Slices(
        tuple(start if i == at else 0 for i in range(t.rank)),
        tuple(x.shape[i] if i == at else dim for i, dim in enumerate(t.shape)),
        (1,) * t.rank,
    )


@rule
def select_part_by_part(c: Tensor, x: Tensor, y: Tensor, z: Tensor, w: Tensor, axis: Axis) -> Law:
    """select(c, concat(x, y), concat(z, w)) = concat(select(part of c, x, z), select(rest, y, w)),
    when x and z have one type"""
    return rewrites(
        select(c, concat(x, y, axis), concat(z, w, axis)),
        concat(
            select(slice_(c, part(c.type, x.type, axis, True)), x, z),
            select(slice_(c, part(c.type, y.type, axis, False)), y, w),
            axis,
        ),
        x.type == z.type,
    )


@attribute_function
def in_columns(t: TensorType, s: Slices) -> Shape:
    """[n / k, k], for a slice of one axis that takes every k-th of n elements."""
    refuse_unless(t.rank == 1 == len(s.sizes) and s.steps[0] > 1, "no steps")
    share = exact_quotient(t.shape[0], s.steps[0])
    refuse_unless(share is not None and share == s.sizes[0], "not one of each")
    return Shape((typing.cast(Dim, share), s.steps[0]))


@attribute_function
def one_column(t: TensorType, s: Slices) -> Slices:
    refuse_unless(t.rank == 1 == len(s.sizes) and isinstance(s.starts[0], int))
    refuse_unless(0 <= typing.cast(int, s.starts[0]) < s.steps[0], "no column")
    return Slices((0, s.starts[0]), (s.sizes[0], 1), (1, 1))


@rule
def every_kth_is_a_column(x: Tensor, s: Slices) -> Law:
    """slice(x, every k-th of n) = a column of reshape(x, [n / k, k]), as one axis"""
    return rewrites(
        slice_(x, s),
        reshape(slice_(reshape(x, in_columns(x.type, s)), one_column(x.type, s)), Shape(s.sizes)),
    )


@attribute_function
def moved(p: Perm, axis: Axis) -> Axis:
    refuse_unless(axis.index < len(p.order))
    return Axis(p.order.index(axis.index))


@rule
def transpose_of_iota(s: Shape, axis: Axis, d: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), where p moves the axis)"""
    return rewrites(transpose(iota(s, axis, d), p), iota(s.permuted(p), moved(p, axis), d))
