"""Where axes go when a shape is regrouped: plain functions that several groups of laws share.

A function that finds no answer for all sizes raises `Refuse`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from satura.rewrite.types.attributes import refuse_unless
from satura.rewrite.types.dims import Dim, product

Block = tuple[tuple[int, ...], tuple[int, ...]]


def replace_axis(values: Sequence[Dim], at: Iterable[int], by: Iterable[Dim]) -> tuple[Dim, ...]:
    """`values` with the entries at the given positions replaced."""
    result = list(values)
    for position, value in zip(at, by, strict=True):
        result[position] = value
    return tuple(result)


def blocks(old: Sequence[Dim], new: Sequence[Dim]) -> list[Block]:
    """The finest groups of axes of two shapes of as many elements that hold the same elements.

    Each group is (axes of `old`, axes of `new`), consecutive but for axes of extent 1, which
    belong to no group. Refuses for empty tensors, whose elements say nothing about their axes.
    """
    refuse_unless(0 not in (*old, *new), "the tensor is empty")
    mine = [axis for axis, dim in enumerate(old) if dim != 1]
    theirs = [axis for axis, dim in enumerate(new) if dim != 1]
    ends = [product(new[axis] for axis in theirs[: n + 1]) for n in range(len(theirs))]
    result: list[Block] = []
    first, start, size = 0, 0, product(())
    for n, axis in enumerate(mine):
        size = size * old[axis]
        if size in ends:
            end = ends.index(size) + 1
            result.append((tuple(mine[first : n + 1]), tuple(theirs[start:end])))
            first, start = n + 1, end
    return result


def order_of_groups(order: tuple[int, ...], groups: list[tuple[int, ...]]) -> list[int]:
    """Numbers of the groups in the order in which `order` lists their axes.

    Refuses unless the axes of each group stand side by side and in order. Axes in no group are
    ignored.
    """
    grouped = {axis for group in groups for axis in group}
    places = {axis: place for place, axis in enumerate(a for a in order if a in grouped)}
    for group in groups:
        first = places[group[0]]
        whole = [places[axis] for axis in group] == list(range(first, first + len(group)))
        refuse_unless(whole, "the transpose tears a group apart")
    return sorted(range(len(groups)), key=lambda n: places[groups[n][0]])


def around_units(shape: Sequence[Dim], wide: Iterable[int]) -> tuple[int, ...]:
    """The axes of `shape`: those of extent 1 in their places, the others in the order `wide`."""
    others = iter(wide)
    return tuple(axis if dim == 1 else next(others) for axis, dim in enumerate(shape))


def matched_axes(old: Sequence[Dim], new: Sequence[Dim], axes: Sequence[int]) -> tuple[int, ...]:
    """The axes of `new`, which has as many elements, that are the increasing `axes` of `old`.

    An axis is the same when it is as long and as many elements lie before and between the chosen
    ones, so also after them. Refuses when there is none, and for empty tensors.
    """
    refuse_unless(0 not in (*old, *new), "the tensor is empty")
    result: list[int] = []
    before, start = 0, 0
    for axis in axes:
        wanted = product(old[before:axis])
        found = [
            candidate
            for candidate in range(start, len(new))
            if new[candidate] == old[axis] and product(new[start:candidate]) == wanted
        ]
        refuse_unless(bool(found), f"axis {axis} is split or merged")
        result.append(found[0])
        before, start = axis + 1, found[0] + 1
    return tuple(result)
