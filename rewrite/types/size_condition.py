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

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise ProgramError where the condition does not hold at `sizes`."""
        left, right = evaluate(self.left, sizes), evaluate(self.right, sizes)
        holds = left >= right if self.is_more else left == right
        if not holds:
            what = "at least" if self.is_more else "equal to"
            shown = ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))
            raise ProgramError(
                f"{self.place}: {self.left} must be {what} {self.right}, but these are {left} and"
                f" {right} where {shown}"
            )

    @property
    def relation(self) -> str:
        return ">=" if self.is_more else "="
