"""EqualSizes: two extents that a model needs to be equal, which they are not for all sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from satura.rewrite.errors import ProgramError
from satura.rewrite.types.dims import Dim, evaluate


@dataclass(frozen=True)
class EqualSizes:
    """What a call must fulfil: `left` is `right`, or `place` in the model would not run."""

    left: Dim
    right: Dim
    place: str

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise ProgramError where the extents differ at `sizes`."""
        left, right = evaluate(self.left, sizes), evaluate(self.right, sizes)
        if left != right:
            shown = ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))
            raise ProgramError(
                f"{self.place}: {self.left} and {self.right} must be equal, but are {left} and"
                f" {right} where {shown}"
            )
