"""What the side conditions of a direction say of instances of its left side: where it fires."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from traceback import walk_tb

from satura.rewrite.check.both_sides import fingerprint, has_left_value
from satura.rewrite.check.from_operands import draw_from_operands
from satura.rewrite.check.instances import (
    NO_WISH,
    Instance,
    Wish,
    draw_from,
    draw_instance,
    high_ranks_of,
    is_trivial,
    like,
)
from satura.rewrite.check.named_values import named_dtypes
from satura.rewrite.check.other_branches import of_other_branches
from satura.rewrite.check.report import DirectionReport
from satura.rewrite.check.retyped import retyped
from satura.rewrite.check.solved import solved
from satura.rewrite.check.solved_within import solved_within
from satura.rewrite.egraph.interner import content
from satura.rewrite.errors import ExpressionError, RuleError
from satura.rewrite.language.conditions import asks_for_value
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Expression
from satura.rewrite.language.ours import is_ours
from satura.rewrite.language.terms import type_of
from satura.rewrite.types.attributes import Attribute, Refuse
from satura.rewrite.types.tensor_type import COMPUTED, TensorType

USUAL_RANKS = (None,) * 4  # so often, beside high ones, where little fires
MOST_NEAREST = 50
FURTHER = 300  # draws after something has failed
RARELY = 50  # of so many matches one fires, or none: few dtypes may be what it needs
UPWARDS = 4  # where little fires, one of so many draws begins with operands; or half of them
FLOATING = tuple(dtype for dtype in COMPUTED if dtype.is_float)
MOST_TRIVIAL = 0.1  # of what is wanted
WHOLE = tuple(dtype for dtype in COMPUTED if dtype.is_integer)


@dataclass
class Firings:
    """Instances of one direction: the distinct ones that fire, and counts of the others.

    `answers` are the attributes that each firing computed. `refusals` counts how often each line of
    a function refused, under the first reason it gave. `broken` is an instance for which a
    computation of the rule failed, or changed its arguments, and `error` what a condition raised:
    a few more are drawn then, as a difference between both sides tells more.
    """

    direction: Direction
    found: dict[object, Instance] = field(default_factory=dict)
    answers: dict[object, tuple[Attribute, ...]] = field(default_factory=dict)
    matches: int = 0
    broken: Instance | None = None
    error: ExpressionError | None = None
    refusals: dict[str, int] = field(default_factory=dict)
    _reasons: dict[str, str] = field(default_factory=dict)  # by the place of a refusal
    _nearest: list[Instance] = field(default_factory=list)
    _most_met: int = 0
    _alike: dict[object, list[Instance]] = field(default_factory=dict)  # by their attributes
    _put_off: list[Instance] = field(default_factory=list)  # as they say little
    _ranks: list[int] = field(default_factory=list)  # of left sides that were well typed
    _left: int = FURTHER  # draws, once something has failed

    def __post_init__(self) -> None:
        conditions = [each for each in self.direction.conditions if not asks_for_value(each)]
        self.decisions = conditions
        self.conditions = {str(each): {True: 0, False: 0} for each in conditions}

    @property
    def has_undecided(self) -> bool:
        """Whether a condition has given one answer only."""
        return not all(all(counts.values()) for counts in self.conditions.values())

    @property
    def is_over(self) -> bool:
        """Whether something has failed, and enough was drawn since."""
        return self._left < 0

    def draw(self, random: Random, wanted: int, attempts: int) -> None:
        """Draw until there are `wanted` firings and every condition gave both answers.

        If a quarter of the `attempts` gave hardly any firings, later draws are varied: they
        resemble what fired or met most conditions, use one family of dtypes or high ranks, prefer
        functions and dtypes that the rule names, reverse what is sliced or reshaped, or begin with
        the operands. Some meet what conditions say that variables are equal to. If firings
        stay rare, twice as many attempts are made, then the equations within the conditions'
        functions are solved. Comparisons that held in no firing are met one by one, and at last
        dtypes are tried for which the conditions hold.
        """
        alike = self._draw(random, wanted, attempts)
        if 3 * (len(self.found) - alike) < wanted:
            enough = max(wanted, len(self.found) + wanted // 2)
            for instance in solved_within(self.direction, random):
                self._try(instance, NO_WISH, room=True)
                if len(self.found) >= enough:
                    break
        for instance in of_other_branches(self.direction, [*self.found.values()], random):
            self._try(instance, NO_WISH, room=True)
            if self.is_over:
                return
        for instance in self._put_off:
            if self.is_over or len(self.found) >= wanted:
                break
            self._try(instance, NO_WISH, room=True)
        if 3 * len(self.found) < wanted and RARELY * len(self.found) < self.matches:
            for instance in retyped(
                self.direction, [*self.found.values()] or self._nearest, random
            ):
                if self.is_over or len(self.found) >= wanted:
                    return
                self._try(instance, NO_WISH, room=True)

    def _draw(self, random: Random, wanted: int, attempts: int) -> int:
        """Draw, and say how many of what was found were drawn like others."""
        alike = 0
        trivial = 0  # and how many say little
        for number in range(2 * attempts):
            found = len(self.found)
            if found - alike >= wanted and not self.has_undecided:
                return alike
            if number >= attempts and not 3 * found < wanted < 10 * found:
                return alike
            is_late = 4 * number >= attempts
            is_rare = is_late and 3 * (found - alike) < wanted
            wish = self._rare_wish(random, number) if is_rare else NO_WISH
            is_like = is_late and alike < wanted and number % (2 if is_rare else 4) == 0
            if is_like and (near := self._any_near(random)):
                wish = like(near, random)
            turns = UPWARDS if RARELY * self.matches > number else 2
            is_upwards = is_rare and number % turns == 1
            if is_upwards:
                instance = draw_from_operands(self.direction, random, self._any_near(random))
            else:
                instance = draw_instance(self.direction, random, wish)
            if instance is not None and (is_upwards or number % 3 == 1):
                instance = solved(instance)
            if instance is None:
                continue
            says_little = is_trivial(instance)
            if says_little and trivial >= wanted * MOST_TRIVIAL:
                self._put_off.append(instance)
                continue
            self._try(instance, wish, room=found < 2 * wanted)
            if self.is_over:
                return alike
            alike += is_like * (len(self.found) - found)
            trivial += says_little * (len(self.found) - found)
        return alike

    def _any_near(self, random: Random) -> Instance | None:
        """A firing, of any of the attributes that some have; else what met most conditions."""
        if self._alike:
            return random.choice(random.choice(list(self._alike.values())))
        return random.choice(self._nearest) if self._nearest else None

    def _rare_wish(self, random: Random, number: int) -> Wish:
        """The next of several restrictions for draws, used when little fires."""
        rare = (*USUAL_RANKS, *high_ranks_of(self.direction))
        rank = random.choice(self._ranks if self._ranks and number % 8 < 4 else rare)
        family = random.choice((FLOATING, WHOLE, (random.choice(COMPUTED),)))
        dtypes = (family, named_dtypes(self.direction), ())[number // 2 % 3]
        return Wish(rank, (), dtypes, named=number % 4 < 2, reverses=number % 16 < 8)

    def report(self) -> DirectionReport:
        return DirectionReport(
            self.direction.label,
            self.matches,
            len(self.found),
            self.conditions,
            self.refusals,
        )

    def unstable_firing(self) -> Instance | None:
        """A firing whose attributes come out differently now: a computation is not pure."""
        for values, instance in reversed(self.found.items()):
            try:
                answer = self.direction.compute(instance.bindings)
            except (Refuse, RuleError):
                return instance
            if content(answer) != content(self.answers[values]):
                return instance
        return None

    def _try(self, instance: Instance, wish: Wish, room: bool) -> None:
        """Count what the conditions say of an instance whose left side has a value."""
        if not has_left_value(instance):
            return
        self.matches += 1
        self._ranks.append(type_of(self.direction.left, instance.bindings).rank)
        before = fingerprint(instance)
        try:
            met = 0
            for number, condition in enumerate(self.decisions):
                holds = self._holds(condition, instance, is_asked=met == number)
                self.conditions[str(condition)][holds] += 1
                met += holds
            self._keep_nearest(instance, met)
            answer = self.direction.compute(instance.bindings)
        except Refuse as refusal:
            self._count(refusal)
        except ExpressionError as error:
            self.error = self.error or error
        except RuleError:
            self.broken = self.broken or instance
        else:
            if room and instance.values not in self.found:
                self.found[instance.values] = instance
                attributes = [
                    each for _, each in instance.values if not isinstance(each, TensorType)
                ]
                self._alike.setdefault(tuple(attributes), []).append(instance)
                self.answers[instance.values] = answer
        if fingerprint(instance) != before:
            self.broken = draw_from(self.direction, Random(instance.seed), instance.seed, wish)
            self._left = 0
        self._left -= self.broken is not None or self.error is not None

    def _keep_nearest(self, instance: Instance, met: int) -> None:
        """Keep the instance where none has met more conditions."""
        if met > self._most_met:
            self._most_met, self._nearest = met, []
        if met == self._most_met > 0 and len(self._nearest) < MOST_NEAREST:
            self._nearest.append(instance)

    def _holds(self, condition: Expression, instance: Instance, is_asked: bool) -> bool:
        """Whether a condition holds; where one before it does not, a rule does not ask, and it may
        have no answer."""
        try:
            return self.direction.holds(condition, instance.bindings)
        except Refuse:
            return False
        except (Exception, SystemExit) as error:
            if not is_asked:
                return False
            raise self.direction.failure(error, instance.bindings) from error

    def _count(self, refusal: Refuse) -> None:
        place = _place(refusal)
        if place:
            text = self._reasons.setdefault(place, f"{place}: {refusal}")
            self.refusals[text] = self.refusals.get(text, 0) + 1


def _place(refusal: Refuse) -> str:
    """The author's function and the line in it where it refused, or satura's own function.

    Empty for a condition of the rule that is false, which is counted by itself.
    """
    frames = list(walk_tb(refusal.__traceback__))
    authored = [each for each in frames if not is_ours(each[0])]
    if authored:
        frame, line = authored[-1]
        return f"{frame.f_code.co_name}, line {line}"
    names = [frame.f_code.co_qualname for frame, _ in frames]
    called = [name for name in names if name != "refuse_unless"]
    return "" if called[-1].startswith("Direction.") else called[-1]
