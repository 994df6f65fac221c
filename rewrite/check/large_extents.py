"""Matches with large extents: positions and sums that a small dtype cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from random import Random

from satura.rewrite.check.every_choice import NAMED, in_turns
from satura.rewrite.check.extremes import MANY, SUMMING, dtypes_of_firing, element_count
from satura.rewrite.check.instances import Instance, Wish, draw_instance, ops_of
from satura.rewrite.check.named_values import large_extents, named_numbers
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.terms import type_of
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType

LARGE_DRAWS = 200
LARGE_EXTENTS: tuple[tuple[Dim, ...], ...] = (
    (513, 1),
    (384, 1),
    (2051, 1),
    (256, 1),
    (130, 1),
)
LONGEST = (140_001, 1)  # a sum of so many bytes is no f32, nor a position among them a u16
LONGEST_DRAWS = 120
MOST_LARGE_ELEMENTS = 1_000_000
LONG_DRAWS = 24
LONG_EXTENTS: tuple[tuple[Dim, ...], ...] = ((19, 1), (260, 2), (1030, 1))
PLACED = {"gather"}  # by indices, of which i8, u8, i16 and u16 hold few
PLACED_DRAWS = 120
PLACED_EXTENTS: tuple[tuple[Dim, ...], ...] = (
    (130, 1),
    (260, 1),
    (33_000, 1),
    (33_000, 1),
    (66_000, 1),
)
FAR_STARTS = (130, 259, 2051, 33_000)  # of slices of positions
FAR_DRAWS = 120
FEW_EXTENTS: tuple[Dim, ...] = (5, 1)
COUNTING = {"iota", "reduce", "arg_reduce", "extent", "matmul", "conv"}  # of how large an extent is


def of_large_extents(
    direction: Direction,
    firings: Sequence[Instance],
    seed: int,
    scale: int,
    *,
    longest: bool = False,
) -> Iterator[Instance]:
    """Matches whose positions or sums overflow a small dtype, and some others as large.

    The `longest` are not of floats alone; they overflow a u16 and the integers of a float, too.
    """
    random = Random(seed)
    firings = in_turns(firings)
    ranks = (2,) if ops_of(direction) & {"matmul", "conv"} else (1, 2)
    is_counting = ops_of(direction) & COUNTING
    named = large_extents(named_numbers(direction))
    usual, most = (LARGE_EXTENTS, LARGE_DRAWS) if is_counting else (LONG_EXTENTS, LONG_DRAWS)
    if ops_of(direction) & PLACED:
        usual, most = (*usual, *PLACED_EXTENTS), most + PLACED_DRAWS
    chosen, most = (*usual, *[(*named, 1)] * bool(named)), most * scale
    if is_counting and "slice" in ops_of(direction) and not longest:
        yield from _of_far_slices(direction, firings, random, scale)
    for number in range(most + LONGEST_DRAWS * scale * bool(is_counting and longest)):
        extents = chosen[number % len(chosen)] if number < most else LONGEST
        wish = Wish(random.choice(ranks), extents, dtypes_of_firing(firings, number))
        if number % 4 and firings:
            wish = _with_names(wish, firings[number // len(chosen) % len(firings)])
        instance = draw_instance(direction, random, wish)
        least = LONGEST[0] if extents is LONGEST else 0
        if instance is None or not least <= element_count(instance) <= MOST_LARGE_ELEMENTS:
            continue
        dtypes = [type_.dtype for type_ in instance.types.values()]
        if not longest or not dtypes or not all(dtype.is_float for dtype in dtypes):
            yield instance


def _of_far_slices(
    direction: Direction, firings: Sequence[Instance], random: Random, scale: int
) -> Iterator[Instance]:
    """Matches whose slices begin so far from 0 that small dtypes do not hold the place."""
    for number in range(FAR_DRAWS * scale):
        dtypes = dtypes_of_firing(firings, number)
        wish = Wish(random.choice((1, 2)), FEW_EXTENTS, dtypes, starts=FAR_STARTS)
        if firings:
            wish = _with_names(wish, firings[number % len(firings)])
        instance = draw_instance(direction, random, wish)
        if instance is not None and element_count(instance) <= MOST_LARGE_ELEMENTS:
            yield instance


def of_many_elements(
    direction: Direction, firings: Sequence[Instance], scale: int
) -> Iterator[Instance]:
    """Firings that count or sum many elements, and not floats alone: the largest ones overflow."""
    is_counting = ops_of(direction) & (COUNTING | SUMMING)
    many = (each for each in firings if is_counting and element_count(each) > MANY)
    yield from islice((each for each in many if not _are_floats(each)), MANY * scale)


def _are_floats(instance: Instance) -> bool:
    return all(type_.dtype.is_float for type_ in instance.types.values())


def _with_names(wish: Wish, instance: Instance) -> Wish:
    """The wish with the dtypes and functions among the attributes of an instance, which suit any
    extents, and with the dtype of its result."""
    given = tuple((name, value) for name, value in instance.values if isinstance(value, NAMED))
    if not given:
        return wish
    root = type_of(instance.direction.left, instance.bindings)
    named = (value for _, value in given if isinstance(value, DType))
    return replace(
        wish, given=given, dtypes=tuple(dict.fromkeys((root.dtype, *wish.dtypes, *named)))
    )
