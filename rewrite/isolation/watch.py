"""What is watched while rules run that are not ours: which one is at work, what it hands over.

A rule of ours may fail because of what another rule has made. So there is always a suspect, too:
the watched rule that has made most e-nodes so far, or else matched most often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from satura.rewrite.egraph.attribute_tables import Answer, TypeConflictError
from satura.rewrite.egraph.interner import Value, content
from satura.rewrite.egraph.observer import Observer
from satura.rewrite.egraph.report import Report
from satura.rewrite.errors import RuleError
from satura.rewrite.isolation.validate import flaw, is_intact, type_flaw
from satura.rewrite.language.rule import Direction, Rule
from satura.rewrite.types.tensor_type import TensorType

# Which part of the seconds makes a rule guilty of a limit.
_GUILTY_SHARE = 0.25


class LimitError(RuleError):
    """A rule that may be why a saturation met a limit."""


@dataclass
class Watch(Observer):
    """Follows one saturation; `tell` is told who is at work: the rule's name, then the suspect's.

    The name is empty while rules that are not watched are at work. A watch that `judges` ends a
    saturation that met a limit, if it was perhaps for a watched rule.
    """

    rules: Iterable[Rule]
    tell: Callable[[str], None] = lambda text: None
    working: str = ""
    judges: bool = True
    constant_bytes: int = 0  # of the program's largest constant
    made: Counter[str] = field(default_factory=Counter)
    rounds: list[Counter[str]] = field(default_factory=list)
    matches: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._names = {entry.label: rule.name for rule in self.rules for entry in rule.directions}

    def watches(self, direction: Direction) -> bool:
        return direction.label in self._names

    @property
    def suspect(self) -> str:
        """The rule to suspect where none of the watched ones is at work; empty before any match."""
        for counts in (+self.made, +self.matches):
            if counts:
                return max(sorted(counts), key=counts.__getitem__)
        return ""

    def start_round(self) -> None:
        """A round of all rules begins."""
        self.rounds.append(Counter())

    def start(self, direction: Direction | None) -> None:
        """`direction` is at work from now on; None: nothing in particular."""
        self.working = "" if direction is None else self._names.get(direction.label, "")
        self.tell(f"{self.working}\n{self.suspect}")

    def count(self, direction: Direction, matches: int, nodes: int) -> None:
        """`direction` has matched, and made e-nodes."""
        name = self._names[direction.label]
        self.matches[name] += matches
        self.made[name] += nodes
        self.rounds[-1][name] += nodes

    def answering(self, direction: Direction, answer: Answer) -> Answer:
        """`answer` of a direction's demand, watched."""
        if not self.watches(direction):

            def own(arguments: tuple[Value, ...]) -> tuple[Value, ...] | None:
                self.start(direction)
                return answer(arguments)

            return own

        def watched(arguments: tuple[Value, ...]) -> tuple[Value, ...] | None:
            self.start(direction)
            before = tuple(map(content, arguments))
            results = answer(arguments)
            place = f"rule '{direction.label}' ({direction.place})"
            shown = ", ".join(map(str, arguments))
            if tuple(map(content, arguments)) != before or not all(map(is_intact, arguments)):
                raise RuleError(f"{place}: it changed its arguments ({shown})")
            for value, output in zip(results or (), direction.outputs, strict=results is not None):
                if problem := flaw(value, self.constant_bytes):
                    raise RuleError(f"{place}: {output.expression} for {shown}: {problem}")
            return results

        return watched

    def typing(self, answer: Answer) -> Answer:
        """`answer` of a demand for types, which refuses tensors beyond all measure."""

        def typed(arguments: tuple[Value, ...]) -> tuple[Value, ...] | None:
            results = answer(arguments)
            for result in results or ():
                if isinstance(result, TensorType) and (problem := type_flaw(result)):
                    raise TypeConflictError(f"it makes a tensor of type {result}: {problem}")
            return results

        return typed

    def judge(self, report: Report) -> None:
        """Note in the report which watched rules still grew the e-graph when it met a limit.

        Raises LimitError where one of them may be why it met the limit of nodes or seconds. Rounds
        cost little: who needs more of them than there are is only slow.
        """
        if report.stopped == "saturated":
            return
        report.growing = self._growing()
        if not self.judges or report.stopped == "rounds":
            return
        most = max(report.growing, key=self.made.__getitem__, default="")
        name = self._names.get(report.stopped_before) or self._slowest(report) or most
        if name:
            self.working = name
            done = f"{self.matches[name]:,} matches and {self.made[name]:,} new e-nodes so far"
            if report.stopped_before:
                raise LimitError(
                    f"it would take the e-graph far beyond its limit of nodes ({done})"
                )
            raise LimitError(f"it drove the e-graph to its limit of {report.stopped} ({done})")

    def _slowest(self, report: Report) -> str:
        """The rule that took most of the seconds that are over, if it took many."""
        if report.stopped != "seconds":
            return ""
        seconds = dict.fromkeys(self._names.values(), 0.0)
        for entry in report.rules:
            if entry.name in self._names:
                seconds[self._names[entry.name]] += entry.seconds
        slowest = max(seconds, key=seconds.__getitem__)
        return slowest if seconds[slowest] > _GUILTY_SHARE * report.seconds else ""

    def _growing(self) -> tuple[str, ...]:
        """Rules that still made e-nodes in the last rounds."""
        return tuple(sorted(+sum(self.rounds[-2:], Counter())))
