"""Matches of windows with borders over open extents, which may be 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from satura.rewrite.check.instances import Instance, draw_instance, like
from satura.rewrite.check.neighbours import stepped
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.terms import type_of
from satura.rewrite.ops.draw import SIZES
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.dims import Dim, symbols_of

OPEN_EXTENTS: tuple[Dim, ...] = (*SIZES, 1, 3)
OPEN_DRAWS = 3200


def of_open_borders(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Matches like firings whose windows have a border, of open extents: where one of these is 0,
    some windows fit into the border alone, and others nowhere. Of most the result may be empty."""
    random = Random(seed)
    chosen = [each for each in firings if any(_has_border(value) for _, value in each.values)]
    for number in range(OPEN_DRAWS * scale if chosen else 0):
        base = chosen[number % len(chosen)]
        wish = like(base, random, OPEN_EXTENTS)
        for _ in range(number % 3):  # other windows, too
            given = tuple((name, stepped(value, random)) for name, value in wish.given)
            wish = replace(wish, given=given)
        instance = draw_instance(direction, random, wish)
        if instance is None or not instance.symbols:
            continue
        if _may_be_empty(instance) or not number % 8:
            yield instance


def _may_be_empty(instance: Instance) -> bool:
    """Whether its left side has no elements where sizes are 0."""
    shape = type_of(instance.direction.left, instance.bindings).shape
    none = dict.fromkeys(symbols_of(shape), 0)
    return any(evaluate(dim, none) == 0 for dim in shape)


def _has_border(value: object) -> bool:
    return isinstance(value, Window) and value.has_border
