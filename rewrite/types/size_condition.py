"""SizeCondition: what a model needs of its sizes, which does not hold for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import eq, ge, le
from typing import Literal, TypeAlias

from satura.rewrite.errors import ProgramError
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import Dim, symbols_of

Relation: TypeAlias = Literal["=", ">=", "<="]

_HOLDS: Mapping[Relation, Callable[[int, int], bool]] = {"=": eq, ">=": ge, "<=": le}
_NEEDED: Mapping[Relation, str] = {"=": "equal to", ">=": "at least", "<=": "at most"}


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Sizes by name, for messages."""
    return ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))


@dataclass(frozen=True)
class SizeCondition:
    """What a call must fulfil, else `place` would not run.

    Where `left <= right` does not hold, with a number for `left`, an extent is negative or has too
    few elements, and no other program of the model runs.
    """

    left: Dim
    right: Dim
    relation: Relation
    place: str

    @property
    def is_of_extent(self) -> bool:
        """Whether it says that an extent is not negative, or has so many elements."""
        return self.relation == "<="

    @property
    def excused(self) -> SizeCondition:
        """The same, but where it does not hold another program may run."""
        if not self.is_of_extent:
            return self
        return replace(self, left=self.right, right=self.left, relation=">=")

    @property
    def never_holds(self) -> bool:
        """Whether it is one of numbers that do not fulfil it."""
        return not symbols_of([self.left, self.right]) and not self.holds({})

    def __str__(self) -> str:
        return f"{self.left} must be {_NEEDED[self.relation]} {self.right}"

    @property
    def natural(self) -> tuple[Dim, ...]:
        """What is at least 0 where it holds."""
        more = self.left - self.right
        return {">=": (more,), "<=": (-more,), "=": (more, -more)}[self.relation]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether a call of these sizes fulfils it; not where it divides by 0."""
        try:
            left, right = evaluate(self.left, sizes), evaluate(self.right, sizes)
        except ProgramError:
            return False
        return _HOLDS[self.relation](left, right)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise ProgramError where the condition does not hold at `sizes`."""
        if not self.holds(sizes):
            left, right = evaluate(self.left, sizes), evaluate(self.right, sizes)
            shown = sizes_text(sizes)
            if self.is_of_extent:
                least = f", and must be at least {left}," if left else ""
                raise ProgramError(
                    f"{self.place}: the extent {self.right} is {right}{least} where {shown}"
                )
            raise ProgramError(
                f"{self.place}: {self}, but these are {left} and {right} where {shown}"
            )


@dataclass(frozen=True)
class FixedSize(SizeCondition):
    """What a program needs of its sizes, and its model may not: there are other programs of it."""
