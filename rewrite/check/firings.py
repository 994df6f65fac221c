"""Firings: instances of a direction's left side, and what its side conditions say of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from satura.rewrite.check.instances import Instance, draw_from, draw_instance
from satura.rewrite.check.refusals import authored_functions, refusal_sites, site_of
from satura.rewrite.check.report import DirectionReport
from satura.rewrite.check.sides import fingerprint
from satura.rewrite.egraph.interner import content
from satura.rewrite.errors import RuleError
from satura.rewrite.language.conditions import asks_for_value
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Expression
from satura.rewrite.types.attributes import Attribute, Refuse


@dataclass
class Firings:
    """Instances of one direction: the distinct ones that fire, counts of all the others.

    `answers` are the attributes that each firing computed. `broken` is an instance for which a
    computation of the rule failed, or changed its arguments.
    """

    direction: Direction
    found: dict[object, Instance] = field(default_factory=dict)
    answers: dict[object, tuple[Attribute, ...]] = field(default_factory=dict)
    matches: int = 0
    broken: Instance | None = None

    def __post_init__(self) -> None:
        self.sites = refusal_sites(self.direction)
        self.watched = any(True for _ in authored_functions(self.direction))
        self.refusals = {site.text: 0 for site in self.sites}
        conditions = [each for each in self.direction.conditions if not asks_for_value(each)]
        self.decisions = conditions
        self.conditions = {str(each): {True: 0, False: 0} for each in conditions}

    @property
    def undecided(self) -> bool:
        """Whether a condition gave one answer only, so far."""
        return not all(all(counts.values()) for counts in self.conditions.values())

    def draw(self, random: Random, wanted: int, attempts: int) -> None:
        """Draw until there are `wanted` firings and every condition gave both answers."""
        for _ in range(attempts):
            if len(self.found) >= wanted and not self.undecided:
                return
            instance = draw_instance(self.direction, random)
            if instance is not None:
                self._try(instance, room=len(self.found) < 2 * wanted)
                if self.broken is not None:
                    return

    def report(self) -> DirectionReport:
        return DirectionReport(
            self.direction.label,
            self.matches,
            len(self.found),
            self.conditions,
            self.refusals,
        )

    def moody(self) -> Instance | None:
        """A firing whose attributes are different now: a computation depends on something else."""
        for values, instance in reversed(self.found.items()):
            try:
                answer = self.direction.compute(instance.bindings)
            except (Refuse, RuleError):
                return instance
            if content(answer) != content(self.answers[values]):
                return instance
        return None

    def _try(self, instance: Instance, room: bool) -> None:
        self.matches += 1
        before = fingerprint(instance) if self.watched else None
        try:
            for condition in self.decisions:
                self.conditions[str(condition)][self._holds(condition, instance)] += 1
            answer = self.direction.compute(instance.bindings)
        except Refuse as refusal:
            self._count(refusal)
        except RuleError:
            self.broken = instance
        else:
            if room and instance.values not in self.found:
                self.found[instance.values] = instance
                self.answers[instance.values] = answer
        if self.watched and fingerprint(instance) != before:
            self.broken = draw_from(self.direction, Random(instance.seed), instance.seed)

    def _holds(self, condition: Expression, instance: Instance) -> bool:
        try:
            return self.direction.holds(condition, instance.bindings)
        except Refuse:
            return False
        except Exception as error:
            raise self.direction.failure(error, instance.bindings) from error

    def _count(self, refusal: Refuse) -> None:
        site = site_of(refusal, self.sites)
        if not site.startswith("Direction."):  # a condition: it is counted above
            self.refusals[site] = self.refusals.get(site, 0) + 1
