"""Firings with as much padding at both ends as the rule names: what is drawn pads by less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from satura.rewrite.check.every_choice import in_turns
from satura.rewrite.check.instances import Instance, fires, is_well_typed
from satura.rewrite.check.named_values import named_numbers
from satura.rewrite.language.dsl import Direction
from satura.rewrite.types.attributes import Padding

MOST_NAMED = 20  # elements at one end
BASES = 12  # firings for each number


def of_named_paddings(
    direction: Direction, firings: Sequence[Instance], scale: int
) -> Iterator[Instance]:
    """Matches that fire, of which one axis is padded by such a number, or by one more, at either
    end and at both."""
    named = [int(n) for n in named_numbers(direction) if n == n // 1 and 2 < n <= MOST_NAMED]
    names = [name for name, sort in direction.variables.items() if sort is Padding]
    bases = enumerate(in_turns(firings)[: BASES * scale])
    for (turn, base), name, least in product(bases, names, named):
        for amount in (least, least + 1):
            for ends in ((amount, amount), (amount, 0), (0, amount)):
                instance = _padded(base, name, turn, ends)
                if is_well_typed(instance) and fires(instance):
                    yield instance


def _padded(instance: Instance, name: str, turn: int, ends: tuple[int, int]) -> Instance:
    """The instance, whose padding of that name has these amounts at the ends of one axis."""
    padding = instance.bindings[name]
    assert isinstance(padding, Padding)
    lo, hi = [*padding.lo], [*padding.hi]
    if lo:
        lo[turn % len(lo)], hi[turn % len(hi)] = ends
    moved = Padding(tuple(lo), tuple(hi))
    values = tuple((key, moved if key == name else value) for key, value in instance.values)
    return replace(instance, values=values)
