"""What may be told of a saturation while it runs."""

from __future__ import annotations

from satura.rewrite.egraph.attribute_tables import Answer
from satura.rewrite.egraph.report import Report
from satura.rewrite.language.rule import Direction


class Observer:
    """Is told what a saturation does; this one does nothing with it."""

    def watches(self, direction: Direction) -> bool:
        """Whether `direction` runs alone and is counted."""
        return False

    def start_round(self) -> None:
        """A round of all rules begins."""

    def start(self, direction: Direction | None) -> None:
        """`direction` is at work from now on; None: nothing in particular."""

    def count(self, direction: Direction, matches: int, nodes: int) -> None:
        """`direction`, which is watched, has matched, and made e-nodes."""

    def answering(self, direction: Direction, answer: Answer) -> Answer:
        """What computes the attributes that `direction` asks for, in place of `answer`."""
        return answer

    def typing(self, answer: Answer) -> Answer:
        """What computes types, in place of `answer`."""
        return answer

    def judge(self, report: Report) -> None:
        """The saturation has ended. May raise RuleError for a rule that is to blame for how."""


NOBODY = Observer()
