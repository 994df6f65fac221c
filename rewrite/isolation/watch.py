"""Which of a user's rules is at work in a saturation, and how many e-nodes and matches each adds.

A rule of the book may fail because of what a user's rule has made. So there is always a suspect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from satura.rewrite.egraph.attribute_tables import Answer, TypeConflictError
from satura.rewrite.egraph.interner import Value, content
from satura.rewrite.egraph.observer import Observer
from satura.rewrite.errors import RuleError
from satura.rewrite.isolation.process import Doing
from satura.rewrite.language.rule import Direction, Rule
from satura.rewrite.ops.registry import Op
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.plain import as_plain

BOOK = 10  # times as long as a step of a user's rule one of the book may take


@dataclass
class Watch(Observer):
    """Follows one saturation with `rules` of users.

    `doing` is told whom to blame if it ends now. A step of one of the rules may take `seconds`. One
    of the book may take far more, because the users' rules are mostly not at fault then.
    """

    rules: Sequence[Rule]
    doing: Doing
    seconds: float
    constant_bytes: int  # of the largest constant that they may compute
    direction: Direction | None = None  # which is at work
    working: str = ""  # its rule
    made: Counter[str] = field(default_factory=Counter)
    matches: Counter[str] = field(default_factory=Counter)
    made_last: dict[str, int] = field(default_factory=dict)  # by direction

    def __post_init__(self) -> None:
        self._names = {entry.label: rule.name for rule in self.rules for entry in rule.directions}

    @property
    def suspect(self) -> str:
        """The rule that made most e-nodes, or else matched most often; empty before any match."""
        added = {name: (self.made[name], count) for name, count in (+self.matches).items()}
        return max(sorted(added), key=added.__getitem__, default="")

    @property
    def rule_to_blame(self) -> str:
        """The rule at work, or else the suspect."""
        return self.working or self.suspect

    @property
    def growing(self) -> tuple[str, ...]:
        """Rules that made e-nodes when they fired last."""
        return tuple(sorted({self._names[label] for label, made in self.made_last.items() if made}))

    def watches(self, direction: Direction) -> bool:
        return direction.label in self._names

    def start(self, direction: Direction | None) -> None:
        if direction is not self.direction:
            self.direction = direction
            self.working = "" if direction is None else self._names.get(direction.label, "")
            self.doing(self.rule_to_blame, self.seconds if self.working else BOOK * self.seconds)

    def count(self, direction: Direction, matches: int, nodes: int) -> None:
        name = self._names[direction.label]
        self.matches[name] += matches
        self.made[name] += nodes
        self.made_last[direction.label] = nodes

    def wrap_answer(self, direction: Direction, answer: Answer) -> Answer:
        """`answer`, refused where it changes its arguments or makes huge constants."""

        def checked_answer(arguments: tuple[Value, ...]) -> tuple[Value, ...] | None:
            self.start(direction)
            if not self.watches(direction):
                return answer(arguments)
            before = [*map(_state, arguments)]
            results = answer(arguments)
            place = f"rule '{direction.label}' ({direction.place})"
            shown = ", ".join(map(str, arguments))
            if [*map(_state, arguments)] != before:
                raise RuleError(f"{place}: it changed its arguments ({shown})")
            for value in results or ():
                if isinstance(value, Constant) and value.nbytes > self.constant_bytes:
                    size = f"{value.nbytes:,} bytes"
                    raise RuleError(f"{place}: it computes a constant of {size} for {shown}")
            return results

        return checked_answer

    def wrap_typing(self, op: Op, answer: Answer) -> Answer:
        """`answer`, refused where a type is not plain; a user's op may take as long as a rule."""

        def plain_answer(arguments: tuple[Value, ...]) -> tuple[Value, ...] | None:
            if op.user:
                self.doing(self.rule_to_blame, self.seconds)
            try:
                return as_plain(answer(arguments))
            except TypeError as error:
                raise TypeConflictError(f"it makes a tensor of no type: {error}") from error
            finally:
                if op.user:
                    self.doing(self.rule_to_blame, BOOK * self.seconds)

        return plain_answer


def _state(value: Value) -> Hashable:
    """A key that changes with a value. A constant's array is read-only, but may be replaced."""
    if isinstance(value, Constant):
        return id(value.kept), value.digest
    return content(value)
