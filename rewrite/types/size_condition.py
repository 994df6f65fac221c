"""SizeCondition: what a model needs of its sizes, which does not hold for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from satura.rewrite.errors import ProgramError
from satura.rewrite.types.dims import Dim, evaluate


@dataclass(frozen=True)
class SizeCondition:
    """What a call must fulfil: `left` is `right` (or `is_more`), else `place` would not run."""

    left: Dim
    right: Dim
    is_more: bool
    place: str

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether a call of these sizes fulfils it."""
        left, right = evaluate(self.left, sizes), evaluate(self.right, sizes)
        return left >= right if self.is_more else left == right

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise ProgramError where the condition does not hold at `sizes`."""
        if not self.holds(sizes):
            left, right = evaluate(self.left, sizes), evaluate(self.right, sizes)
            what = "at least" if self.is_more else "equal to"
            shown = ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))
            raise ProgramError(
                f"{self.place}: {self.left} must be {what} {self.right}, but these are {left} and"
                f" {right} where {shown}"
            )

    @property
    def relation(self) -> str:
        return ">=" if self.is_more else "="
