"""What the checker makes of a wrong rule, on instances that are drawn once for all mutants of it.

An instance for which a mutant computes what its rule computes says nothing, as the rule is sound;
so only the others are compared, and a mutant costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random
from typing import Literal

from satura.rewrite.check.instances import Instance
from satura.rewrite.check.refute import draws, first_failure
from satura.rewrite.check.solved_within import solved_within
from satura.rewrite.check.testing import FIRINGS
from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.language.expressions import Expression
from satura.rewrite.types.attributes import Attribute, Refuse
from satura.rules import DEFAULT
from tests.reach import MATCHES, answer

# refuted: some instance shows that it is wrong. fails: its functions raise something.
# vacuous: it hardly fires. elsewhere: it fires more or less often than tests/reach.json records.
# same: it computes the same on all instances. survives: it does not, and none shows it wrong.
SOLVED = 200  # matches that meet rare conditions
MutantVerdict = Literal["refuted", "fails", "vacuous", "elsewhere", "survives", "same"]
CAUGHT: tuple[MutantVerdict, ...] = ("refuted", "fails", "vacuous", "elsewhere")
Answer = tuple[Attribute, ...] | None


@dataclass(frozen=True)
class Drawn:
    """Instances of a direction's left side, and what the sound rule answers; None: it refuses."""

    direction: Direction
    instances: Sequence[Instance]
    answers: Sequence[Answer]


@cache
def draw_matches(name: str, attempts: int) -> tuple[Drawn, ...]:
    """Instances of the left sides of a rule of the book."""
    found = []
    for direction in DEFAULT[name].directions:
        instances = list(draws(direction, 0, attempts))
        if sum(answer(direction, instance) is not None for instance in instances) < FIRINGS:
            instances += islice(solved_within(direction, Random(0)), SOLVED)
        answers = tuple(answer(direction, instance) for instance in instances)
        found.append(Drawn(direction, instances, answers))
    return tuple(found)


def _holds(direction: Direction, instance: Instance, condition: Expression) -> bool:
    try:
        return direction.holds(condition, instance.bindings)
    except Refuse:
        return False


def verdict(rule: Rule, attempts: int) -> MutantVerdict:
    """What shows on `attempts` draws per direction, while a mistake is planted in `rule`.

    `draw_matches` must have been called before it was planted.
    """
    parts = [_verdict(part, rule.exact) for part in draw_matches(rule.name, attempts)]
    order: list[MutantVerdict] = [*CAUGHT, "survives", "same"]
    return min(parts, key=order.index)


def _verdict(part: Drawn, exact: bool) -> MutantVerdict:
    direction = part.direction
    fired: set[object] = set()
    fires: list[bool] = []
    conditions: dict[str, set[bool]] = {str(each): set() for each in direction.conditions}
    differs = False
    for instance, expected in zip(part.instances, part.answers, strict=True):
        try:
            for condition in direction.conditions:
                conditions[str(condition)].add(_holds(direction, instance, condition))
            found = answer(direction, instance)
        except Exception:  # whatever a mistake raises
            return "fails"
        fires.append(found is not None)
        if found is None:
            continue
        fired.add(instance.values)
        if found != expected:
            differs = True
            if first_failure([instance], exact) is not None:
                return "refuted"
    if len(fired) < FIRINGS or any(len(seen) < 2 for seen in conditions.values()):
        return "vacuous"
    if sum(fires[:MATCHES]) != sum(expected is not None for expected in part.answers[:MATCHES]):
        return "elsewhere"
    return "survives" if differs else "same"
