"""Who follows a saturation while it runs."""

from __future__ import annotations

from satura.rewrite.egraph.attribute_tables import Answer
from satura.rewrite.language.rule import Direction
from satura.rewrite.ops.registry import Op


class Observer:
    """Follows a saturation; this one ignores what it hears."""

    def watches(self, direction: Direction) -> bool:
        """Whether `direction` runs alone and is counted."""
        return False

    def start(self, direction: Direction | None) -> None:
        """Hear that `direction` is at work from now on; None stands for no single one."""

    def count(self, direction: Direction, matches: int, nodes: int) -> None:
        """Hear that `direction`, which is watched, has fired: its matches, and the new e-nodes.

        Where a limit kept it from firing, these are what it could have made.
        """

    def wrap_answer(self, direction: Direction, answer: Answer) -> Answer:
        """The function that computes the attributes of `direction`, in place of `answer`."""
        return answer

    def wrap_typing(self, op: Op, answer: Answer) -> Answer:
        """The function that computes the types of `op`'s results, in place of `answer`."""
        return answer


NOBODY = Observer()
