"""Laws of gathers and broadcasts, all of them right."""

from __future__ import annotations

import itertools
import typing

from satura.language import (
    Axes,
    Axis,
    Constant,
    Dim,
    DType,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    broadcast,
    cast,
    constant,
    equates,
    gather,
    iota,
    known_at_least,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
)


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


@attribute_function
def along(t: TensorType, axis: Axis, start: Dim, size: Dim, step: int) -> Slices:
    """The slices of t that take everything but along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    starts: list[Dim] = [0] * t.rank
    sizes, steps = list(t.shape), [1] * t.rank
    starts[axis.index], sizes[axis.index], steps[axis.index] = start, size, step
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@rule
def compose_gathers(x: Tensor, i: Tensor, j: Tensor, axis: Axis) -> Law:
    """gather(gather(x, i, a), j, a) = gather(x, gather(i, j, 0), a), when i has axes"""
    return rewrites(
        gather(gather(x, i, axis), j, axis),
        gather(x, gather(i, j, Axis(0)), axis),
        i.type.rank >= 1,
    )


@rule
def exchange_gathers_of_lists(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), when a and b differ and i and
    j are lists"""
    return rewrites(
        gather(gather(x, i, a), j, b),
        gather(gather(x, j, b), i, a),
        a.index != b.index,
        (i.type.rank == 1) & (j.type.rank == 1),
    )


@attribute_function
def leading(s: Shape, t: TensorType, axis: Axis) -> Slices:
    """The first ones along the axis, as many as s says."""
    refuse_unless(len(s.dims) == 1, "more axes")
    n, all_ = s.dims[0], t.shape[axis.index]
    inside = n == all_ or (isinstance(n, int) and isinstance(all_, int) and n <= all_)
    refuse_unless(inside, "not known to be inside")
    return along(t, axis, 0, n, 1)


@rule
def gather_by_iota(x: Tensor, s: Shape, t: DType, axis: Axis) -> Law:
    """gather(x, iota([n]), axis) = slice(x, the first n), when there are so many"""
    return rewrites(gather(x, iota(s, Axis(0), t), axis), slice_(x, leading(s, x.type, axis)))


@attribute_function
def counted(c: Constant, t: TensorType, axis: Axis) -> Slices:
    """The slice that a constant counts in even steps, from indices that may count from the end."""
    n = t.shape[axis.index]
    refuse_unless(c.type.rank == 1 and isinstance(n, int), "not a list, or an open axis")
    refuse_unless(len(c.array) >= 1, "no indices")
    refuse_unless(
        all(-typing.cast(int, n) <= int(place) < typing.cast(int, n) for place in c.array),
        "an index is outside",
    )
    places = [int(place) % typing.cast(int, n) for place in c.array]
    step = places[1] - places[0] if len(places) > 1 else 1
    even = all(b - a == step for a, b in itertools.pairwise(places))
    refuse_unless(step != 0 and even, "the steps differ")
    return along(t, axis, places[0], len(places), step)


@rule
def gather_in_even_steps(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, c, axis) = slice(x, s), when c counts in even steps, each index inside the axis"""
    return rewrites(gather(x, constant(c), axis), slice_(x, counted(c, x.type, axis)))


@attribute_function
def one_place(c: Scalar, t: TensorType, axis: Axis) -> Slices:
    n = t.shape[axis.index]
    refuse_unless(isinstance(n, int) and -n <= int(c.value) < n, "not known to be inside")
    return along(t, axis, int(c.value) % typing.cast(int, n), 1, 1)


@rule
def gather_one_slice(x: Tensor, c: Scalar, axis: Axis) -> Law:
    """gather(x, c, axis) = the slice of x at c without its axis, for one known index inside x"""
    return rewrites(
        gather(x, c, axis),
        reshape(slice_(x, one_place(c, x.type, axis)), Shape(gather(x, c, axis).type.shape)),
    )


@rule
def gather_by_widened_indices(x: Tensor, i: Tensor, axis: Axis) -> Law:
    """gather(x, cast(i, i64), axis) = gather(x, i, axis), for indices i of i32"""
    return equates(
        gather(x, cast(i, DType.I64), axis), gather(x, i, axis), i.type.dtype == DType.I32
    )


@attribute_function
def spread(b: Padding, axis: Axis, rank: int) -> Padding:
    """The padding b, which leaves `axis`, where `rank` axes stand in the place of it."""
    at = axis.index
    refuse_unless(b.lo[at] == 0 and b.hi[at] == 0, "the axis is padded")
    none = (0,) * rank
    return Padding((*b.lo[:at], *none, *b.lo[at + 1 :]), (*b.hi[:at], *none, *b.hi[at + 1 :]))


@rule
def gather_past_pad(x: Tensor, v: Tensor, b: Padding, i: Tensor, axis: Axis) -> Law:
    """gather(pad(x, v, b), i, axis) = pad(gather(x, i, axis), v, b'), when b leaves the axis"""
    return rewrites(
        gather(pad(x, v, b), i, axis), pad(gather(x, i, axis), v, spread(b, axis, i.type.rank))
    )


@attribute_function
def behind(a: Axes, axis: Axis, rank: int) -> Axes:
    """The axes a, of which `axis` is none, where `rank` axes stand in the place of it."""
    at = axis.index
    refuse_unless(at not in a.indices, "the axis is reduced")
    return Axes(tuple(i if i < at else i + rank - 1 for i in a.indices))


@rule
def gather_before_reduce(f: ReduceFn, x: Tensor, a: Axes, i: Tensor, axis: Axis) -> Law:
    """gather(max(x, a), i, axis) = max(gather(x, i, axis), a'), along other axes; also min"""
    return rewrites(
        gather(reduce(f, x, a), i, axis),
        reduce(f, gather(x, i, axis), behind(a, axis, i.type.rank)),
        is_one_of(f.name, ("max", "min")),
    )


@attribute_function
def with_ones(s: Shape, a: Axes) -> Shape:
    return Shape(tuple(1 if i in a.indices else n for i, n in enumerate(s.dims)))


@attribute_function
def never_empty(s: Shape, a: Axes) -> bool:
    return all(known_at_least(s.dims[i], 1) for i in a.indices)


@rule
def extremum_of_repeated(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """max(broadcast(x, s), a) = broadcast(max(x, a), s with 1 at a), when no axis of a may be
    empty; also min"""
    return rewrites(
        reduce(f, broadcast(x, s), a),
        broadcast(reduce(f, x, a), with_ones(s, a)),
        is_one_of(f.name, ("max", "min")),
        never_empty(s, a),
    )
