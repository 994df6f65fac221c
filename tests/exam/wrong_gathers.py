"""Laws of gathers, all of them wrong."""

from __future__ import annotations

import typing

from satura.language import (
    Axes,
    Axis,
    Constant,
    Dim,
    DType,
    Known,
    Law,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    gather,
    known_at_least,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
)


@attribute_function
def ones(t: TensorType) -> Shape:
    """A shape of as many 1 as t has axes."""
    return Shape((1,) * t.rank)


@attribute_function
def full(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


@attribute_function
def number(value: Dim, t: TensorType) -> Scalar:
    """`value` as an element of t's type, where it is one."""
    refuse_unless(isinstance(value, int), "the number is not known")
    if t.dtype.is_integer:
        low, high = t.dtype.bounds
        refuse_unless(low <= typing.cast(int, value) <= high, "the type does not hold the number")
    return Scalar.of(value, t.dtype)


def everywhere(value: Scalar, like: TensorType) -> Term:
    """The scalar `value` repeated to the type `like`."""
    return broadcast(reshape(scalar(value), ones(like)), full(like))


@attribute_function
def all_ints(*groups: tuple[Dim, ...]) -> bool:
    """Whether all dims are numbers."""
    return all(isinstance(dim, int) for group in groups for dim in group)


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


@attribute_function
def only_axis(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s takes everything, in order, on all axes but `axis`."""
    return all(
        i == axis.index or (s.starts[i] == 0 and s.sizes[i] == t.shape[i] and s.steps[i] == 1)
        for i in range(t.rank)
    )


@attribute_function
def along(t: TensorType, axis: Axis, start: Dim, size: Dim, step: int) -> Slices:
    """The slices of t that take everything but along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    starts: list[Dim] = [0] * t.rank
    sizes, steps = list(t.shape), [1] * t.rank
    starts[axis.index], sizes[axis.index], steps[axis.index] = start, size, step
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@attribute_function
def start_at(s: Slices, t: TensorType, axis: Axis, i: TensorType) -> Scalar:
    refuse_unless(only_axis(s, t, axis) and s.steps[axis.index] == 1, "it slices more")
    return number(s.starts[axis.index], i)


# x = f32[3] = 1, 2, 3, s = [0+2], i = i32[1] = -1: of the slice 1, 2 the last is 2; on the right
# side the index stays -1, and the last of x is 3. Negative indices must be moved to the end of the
# slice.
@rule
def gather_from_slice(x: Tensor, s: Slices, i: Tensor, axis: Axis) -> Law:
    """gather(slice(x, s), i, axis) = gather(x, i + start, axis), when s cuts the axis alone"""
    return rewrites(
        gather(slice_(x, s), i, axis),
        gather(x, binary("add", i, everywhere(start_at(s, x.type, axis, i.type), i.type)), axis),
    )


# x = f32[2, 2, 2], i = i32[] (rank 0), a = 0, b = 1: after the first gather axis 1 of the result is
# x's axis 2. x = 0…7, i = 0, j = i32[1] = 1: left gather([[0, 1], [2, 3]], [1], 1) = [[1], [3]];
# right: gather(x, [1], 1) = [[[2, 3]], [[6, 7]]], and at 0: [[2, 3]] of shape [1, 2].
@rule
def exchange_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), when a and b differ"""
    return rewrites(gather(gather(x, i, a), j, b), gather(gather(x, j, b), i, a), a.index < b.index)


@attribute_function
def is_permutation(c: Constant, n: Dim) -> bool:
    return (
        c.type.rank == 1
        and c.type.dtype.is_integer
        and (sorted(c.array.tolist()) == list(range(n)) if isinstance(n, int) else False)
    )


# x = f32[2] = 1, 2, the constant 1, 0: left 2, 1.
@rule
def gather_everything(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, c, axis) = x, when c has every index once"""
    return rewrites(gather(x, constant(c), axis), x, is_permutation(c, x.type.shape[axis.index]))


@attribute_function
def not_reduced(axis: Axis, a: Axes) -> bool:
    return axis.index not in a.indices


# x = f32[2, 3], a = [1], i = i32[1, 1], axis 0: the left side is f32[1, 1, 1]; gather(x, i, 0) is
# f32[1, 1, 3], of which the right side reduces axis 1, and leaves [1, 1, 3]. It holds for indices
# of rank 1.
@rule
def gather_before_reduce(f: ReduceFn, x: Tensor, a: Axes, i: Tensor, axis: Axis) -> Law:
    """gather(f(x, a), i, axis) = f(gather(x, i, axis), a), for max and min along other axes"""
    return rewrites(
        gather(reduce(f, x, a), i, axis),
        reduce(f, gather(x, i, axis), a),
        not_reduced(axis, a),
        is_one_of(f.name, ("max", "min")),
    )


# x = f32[1], i = i64[1] = 4294967296: as i32 it is 0 (the low bits), and the left side is x; the
# right side is an index outside x. The other way of rewriting, from i32 to i64, would hold.
@rule
def gather_by_narrowed_indices(x: Tensor, i: Tensor, axis: Axis) -> Law:
    """gather(x, cast(i, i32), axis) = gather(x, i, axis), for indices i of i64"""
    return rewrites(
        gather(x, cast(i, DType.I32), axis), gather(x, i, axis), i.type.dtype == DType.I64
    )


# x = f32[2] = 1, 2, i = -1: the left side takes element 0, which is 1, the right side the last, 2.
@rule
def gather_by_indices_not_below_0(x: Tensor, i: Tensor, axis: Axis) -> Law:
    """gather(x, relu(i), axis) = gather(x, i, axis): an index below 0 is an error"""
    return rewrites(gather(x, unary("relu", i), axis), gather(x, i, axis))


# x = f32[2] = 1, 2, s = [2] (nothing is repeated), i = i32[2] = 1, 0: left 2, 1, right 1, 2.
@rule
def gather_from_broadcast(x: Tensor, s: Shape, i: Tensor, axis: Axis) -> Law:
    """gather(broadcast(x, s), i, axis) = broadcast(x, …): all slices are alike"""
    taken = gather(broadcast(x, s), i, axis)
    return rewrites(taken, broadcast(x, Shape(taken.type.shape)), i.type.rank == 1)


# x = f32[2, 2] = [[1, 2], [3, 4]], i = i32[1] = 1: left [[2], [4]] for axis 1; gather(x, i, 0) =
# [[3, 4]], transposed [[3], [4]].
@rule
def gather_columns_as_rows(x: Tensor, i: Tensor) -> Law:
    """gather(x, i, 1) = transpose(gather(x, i, 0)), for square matrices"""
    return rewrites(
        gather(x, i, Axis(1)),
        transpose(gather(x, i, Axis(0)), Perm((1, 0))),
        (x.type.rank == 2) & (i.type.rank == 1),
        x.type.shape[0] == x.type.shape[1],
    )


@attribute_function
def even_steps(c: Constant, t: TensorType, axis: Axis) -> Slices:
    """The slice that c counts, if it does so in even steps."""
    refuse_unless(c.type.rank == 1 and c.type.dtype.is_integer, "not a list of indices")
    places = [int(place) for place in c.array]
    refuse_unless(len(places) >= 2, "too short")
    step = places[1] - places[0]
    refuse_unless(step != 0 and places[-1] - places[0] == step * (len(places) - 1), "uneven")
    refuse_unless(min(places) >= 0, "an index counts from the end")
    return along(t, axis, places[0], len(places), step)


# x = f32[4], the constant 0, 1, 3, 3: first step 1, and 3 - 0 = 1 * 3, but the third is 3, not 2.
# The steps between have to be compared, too.
@rule
def gather_as_slice_by_ends(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, c, axis) = slice(x, s), when c counts in even steps"""
    return rewrites(gather(x, constant(c), axis), slice_(x, even_steps(c, x.type, axis)))


# x = f32[1] = 1, y = f32[2] = 2, 3, i = i32[1] = -1, axis 0: left 3, the last of all, right 1, the
# last of x. Nor does the condition say that indices lie in x: i = 1 is y's first on the left, and
# outside x on the right.
@rule
def gather_from_first_part(x: Tensor, y: Tensor, i: Known, axis: Axis) -> Law:
    """gather(concat(x, y, axis), i, axis) = gather(x, i, axis), for fewer indices than x has"""
    return rewrites(
        gather(concat(x, y, axis), i, axis),
        gather(x, i, axis),
        i.type.rank == 1,
        all_ints(x.type.shape, i.type.shape),
        known_at_least(x.type.shape[axis.index] - i.type.size, 0),
    )
