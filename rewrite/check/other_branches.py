"""Matches for which comparisons hold that hold for none of those that fired.

Of `n % 2 == 1 or n // 16 == 40` the first part holds for half of all extents, and the law may be
wrong where the second one does. Each comparison that was made and never held in a firing is one to
be met: extents are changed in the proportion of its sides, and by their difference, whichever
brings these nearer. That is the branch distance of search-based testing: B. Korel, Automated
software test data generation, IEEE TSE 1990.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from math import inf
from random import Random

from satura.rewrite.check.comparisons import Comparing, Pair, Place
from satura.rewrite.check.instances import (
    NO_WISH,
    Instance,
    draw_instance,
    is_trivial,
    is_well_typed,
    like,
)
from satura.rewrite.check.solved_within import MOST_NUMBER, equated, says_enough, with_extent
from satura.rewrite.language.dsl import Direction

DRAWS = 300  # that show which comparisons are made
MOST_BASES = 12  # for each comparison that is not met yet
TRIES = 24  # at each,
WANTED = 6  # of which so many are enough
ROUNDS = 6  # changes of one match
MOST_CHANGES = 40  # that are looked at in one round
MOST_ASKED = 12_000  # times that conditions are asked in all


def of_other_branches(
    direction: Direction, firings: Sequence[Instance], random: Random
) -> Iterator[Instance]:
    """Well-typed matches that fire, each for the sake of a comparison that holds there."""
    comparing = Comparing(direction, with_outputs=True)
    if not comparing.has_functions:
        return
    met: set[Place] = set()
    for instance in firings:
        if not comparing.asked(instance.bindings).read:
            met |= comparing.held
    for place, bases in _bases(direction, firings, comparing, random).items():
        if place in met:
            continue
        left = WANTED
        for base in islice(cycle(bases), TRIES):
            found = _where_it_holds(base, place, comparing, random)
            if found is not None and not is_trivial(found) and says_enough(found):
                left -= 1
                yield found
            if not left or comparing.times > MOST_ASKED:
                break


def _bases(
    direction: Direction, firings: Sequence[Instance], comparing: Comparing, random: Random
) -> dict[Place, list[Instance]]:
    """Matches for which a comparison is made, and does not hold."""
    bases: dict[Place, list[Instance]] = {}
    for number in range(DRAWS):
        wish = like(random.choice(firings), random) if firings and number % 2 else NO_WISH
        instance = draw_instance(direction, random, wish)
        if instance is not None and not is_trivial(instance):
            comparing.asked(instance.bindings)
            for place in comparing.missed:
                found = bases.setdefault(place, [])
                if len(found) < MOST_BASES:
                    found.append(instance)
    return bases


def _where_it_holds(
    instance: Instance, place: Place, comparing: Comparing, random: Random
) -> Instance | None:
    """The instance, changed until the comparison at a place holds and all conditions do."""
    nearest = (False, -inf, (0, 0))
    for _ in range(ROUNDS):
        answer = comparing.asked(instance.bindings)
        pairs = comparing.missed.get(place, []) or answer.pairs
        if not pairs:
            return None
        pair = random.choice(pairs)
        names = frozenset(name for name, _ in instance.values)
        others = [each for each, _ in equated(instance, names, pair)]
        others += _with_extents_near(instance, pair)
        random.shuffle(others)
        before = nearest
        for other in others[:MOST_CHANGES]:
            answer = comparing.asked(other.bindings)
            holds = place in comparing.held
            if holds and not answer.read:
                return other if is_well_typed(other) else None
            distance = min(map(_distance, comparing.missed.get(place, [])), default=inf)
            reached = (holds, 0.0 if holds else -distance, answer.met)
            if reached > nearest:
                nearest, instance = reached, other
        if nearest == before:
            return None
    return None


def _distance(pair: Pair) -> float:
    left, right = pair
    return float(abs(left - right)) if type(left) is type(right) is int else inf


def _with_extents_near(instance: Instance, pair: Pair) -> Iterator[Instance]:
    """The instance with an extent changed in the proportion of a pair, or by its difference."""
    left, right = pair
    if type(left) is not int or type(right) is not int:
        return
    extents = {dim for type_ in instance.types.values() for dim in type_.shape}
    for extent in sorted(dim for dim in extents if type(dim) is int):
        near = {extent + right - left, extent + left - right, left, right}
        for old, new in ((left, right), (right, left)):
            if old > 0:
                near |= {extent * new // old, extent * new // old + 1, (extent + 1) * new // old}
        for other in sorted(each for each in near if 0 < each <= MOST_NUMBER and each != extent):
            yield with_extent(instance, extent, other)
