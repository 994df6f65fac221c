"""A cheap answer to one question: is there an instance for which a rule is wrong?

`check` draws first, then compares in order of size, so that what it shows is small. Here each
instance is compared as soon as it is drawn: for the many wrong rules by which the checker itself is
tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from zlib import crc32

from satura.rewrite.check.both_sides import Failure, examine
from satura.rewrite.check.instances import Instance, draw_instance
from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.ops.draw import Draw


def refutation(rule: Rule, seed: int = 0, attempts: int = 6000) -> Failure | None:
    """The first failure among `attempts` draws per direction, or None."""
    for direction in rule.directions:
        found = first_failure(draws(direction, seed, attempts), rule.exact, seed)
        if found is not None:
            return found
    return None


def draws(direction: Direction, seed: int, attempts: int) -> Iterator[Instance]:
    """Well-typed matches of the left side; the same for the same label, pattern and seed."""
    random = Random(crc32(direction.label.encode()) + seed)
    for _ in range(attempts):
        instance = draw_instance(direction, random)
        if instance is not None:
            yield instance


def first_failure(
    instances: Iterable[Instance], exact: bool, seed: int = 0, values: str = "any"
) -> Failure | None:
    """The failure on the first of `instances` for which a rule fails; None where it never does."""
    draw = Draw(Random(seed))
    draw.values = values
    for draw.turn, instance in enumerate(instances):
        failure = examine(instance, exact, draw)
        if failure is not None:
            return failure
    return None
