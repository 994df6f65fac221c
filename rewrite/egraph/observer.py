"""What may be told of a saturation while it runs."""

from __future__ import annotations

from satura.rewrite.egraph.attribute_tables import Answer
from satura.rewrite.language.rule import Direction
from satura.rewrite.ops.registry import Op


class Observer:
    """Is told what a saturation does; this one does nothing with it."""

    def watches(self, direction: Direction) -> bool:
        """Whether `direction` runs alone and is counted."""
        return False

    def start(self, direction: Direction | None) -> None:
        """`direction` is at work from now on; None: nothing in particular."""

    def count(self, direction: Direction, matches: int, nodes: int) -> None:
        """`direction`, which is watched, has fired: its matches, and the e-nodes that it made.

        Where it was not let, those that it could have made.
        """

    def answering(self, direction: Direction, answer: Answer) -> Answer:
        """What computes the attributes that `direction` asks for, in place of `answer`."""
        return answer

    def typing(self, op: Op, answer: Answer) -> Answer:
        """What computes the types of `op`'s results, in place of `answer`."""
        return answer


NOBODY = Observer()
