"""Firings with more axes: what a condition says of five axes, it seldom says of what is drawn.

Each attribute gets an axis at the same place: one that is read in order or from its end, that stays
or changes places with another, with a border or without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from satura.rewrite.check.instances import (
    Instance,
    Wish,
    draw_instance,
    fires,
    high_ranks_of,
)
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.terms import type_of
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    Padding,
    Perm,
    Shape,
    Slices,
    Window,
)
from satura.rewrite.types.tensor_type import TensorType

T = TypeVar("T")

DRAWS = 600
WANTED = 100  # that fire
BASES = 60  # firings of the highest ranks, to which axes are added
EXTENTS = (2, 2, 3, 1)
TURNED = 0.3  # of slices, along the axis that is new
SWAPPED = 0.5  # of permutations
PADDED = 0.2
OTHER_TAPS = 0.4  # of windows that are not those of another axis
TAPS = ((1, 1, 1, 0, 0), (1, 1, 1, 0, 0), (2, 1, 1, 0, 0), (2, 2, 1, 1, 0), (2, 1, 2, 0, 1))
"""Size, stride, dilation and border of a window along the axis that is new."""


def of_more_axes(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Matches at high ranks that fire, made of those that fired by an axis more or several."""
    random = Random(seed)
    ranked = [(_root(each).rank, each) for each in firings]
    high = sorted(ranked, key=lambda each: -each[0])[: BASES * scale]
    ranks = high_ranks_of(direction)
    bases = [each for rank, each in high if 0 < rank < ranks[-1]]
    found: set[object] = set()
    for _ in range(DRAWS * scale if bases else 0):
        if len(found) == WANTED * scale:
            return
        instance = _lifted(random.choice(bases), random.choice(ranks), random)
        if instance is None or instance.values in found or not fires(instance):
            continue
        found.add(instance.values)
        yield instance


def _root(instance: Instance) -> TensorType:
    return type_of(instance.direction.left, instance.bindings)


def _lifted(instance: Instance, wanted: int, random: Random) -> Instance | None:
    """The match with attributes and a left side of more axes; None where they are ill typed."""
    root = _root(instance)
    values: dict[str, Attribute] = {
        name: value for name, value in instance.values if not isinstance(value, TensorType)
    }
    dtypes = dict.fromkeys((root.dtype, *(type_.dtype for type_ in instance.types.values())))
    while root.rank < wanted:
        is_image = any(_rank_of_window(each) == root.rank - 2 for each in values.values())
        at = random.randint(1, root.rank - 1) if is_image else random.randint(0, root.rank)
        extent = random.choice((*EXTENTS, *(n for n in root.shape if isinstance(n, int))))
        add = partial(_with_axis, rank=root.rank, at=at, extent=extent, random=random)
        values = {name: add(value) for name, value in values.items()}
        root = root.with_shape(_with(root.shape, at, extent))
    wish = Wish(root.rank, dtypes=tuple(dtypes), given=tuple(values.items()), root=root)
    return draw_instance(instance.direction, random, wish)


def _rank_of_window(value: Attribute) -> int | None:
    return value.rank if isinstance(value, Window) else None


def _with(parts: tuple[T, ...], at: int, part: T) -> tuple[T, ...]:
    return (*parts[:at], part, *parts[at:])


def _with_axis(value: Attribute, rank: int, at: int, extent: int, random: Random) -> Attribute:
    """The attribute of a left side that has another axis of this extent at `at`."""
    match value:
        case Perm(order) if len(order) == rank:
            return _with_axis_of_perm(order, at, random)
        case Shape(dims) if len(dims) == rank:
            return Shape(_with(dims, at, extent))
        case Axis(index):
            return Axis(index + (index >= at))
        case Axes(indices):
            more = (at,) if extent == 1 and random.random() < 0.5 else ()
            return Axes(tuple(sorted((*(each + (each >= at) for each in indices), *more))))
        case Padding(lo, hi) if len(lo) == rank:
            amounts = (1, 0) if extent > 1 and random.random() < PADDED else (0, 0)
            return Padding(_with(lo, at, amounts[0]), _with(hi, at, amounts[1]))
        case Slices(starts, sizes, steps) if len(sizes) == rank:
            start, step = (extent - 1, -1) if random.random() < TURNED else (0, 1)
            return Slices(
                _with(starts, at, start), _with(sizes, at, extent), _with(steps, at, step)
            )
        case Window() if value.rank in (rank, rank - 2):
            place = at if value.rank == rank else at - 1  # the images' number is before it
            size, stride, dilation, before, behind = _taps(value, random)
            return Window(
                _with(value.sizes, place, size),
                _with(value.strides, place, stride),
                _with(value.dilations, place, dilation),
                _with(value.lo, place, before),
                _with(value.hi, place, behind),
                value.fill,
            )
    return value


def _taps(window: Window, random: Random) -> tuple[int, int, int, int, int]:
    """Size, stride, dilation and border along a new axis: often those of another axis, the border
    from its other side, so that extents are the same where axes are mistaken for each other."""
    if not window.rank or random.random() < OTHER_TAPS:
        return random.choice(TAPS)
    axis = random.randrange(window.rank)
    lo, hi = random.sample((window.lo[axis], window.hi[axis]), 2)
    return window.sizes[axis], window.strides[axis], window.dilations[axis], lo, hi


def _with_axis_of_perm(order: tuple[int, ...], at: int, random: Random) -> Perm:
    """The permutation with another axis, that stays or changes places: with one that has moved
    already, where there are some, so that more than two go round in a circle."""
    axes = [*_with(tuple(axis + (axis >= at) for axis in order), at, at)]
    if order and random.random() < SWAPPED:
        others = [axis for axis in range(len(axes)) if axis != at]
        other = random.choice([axis for axis in others if axes[axis] != axis] or others)
        axes[at], axes[other] = axes[other], axes[at]
    return Perm(tuple(axes))
