"""Classes of sizes, as they are reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class ClassReport:
    """A class of sizes: sizes for which one lowering and the same kernels serve.

    `sizes` were the first, `facts` say which others are of the class. `missed` is the fact of the
    class used before that did not hold for `sizes`; None for the first class. `plans` counts how
    often sizes of the class were new, `uses` how often they were asked for. `values` are those of
    the inputs that decide shapes.
    """

    sizes: Mapping[str, int]
    facts: tuple[str, ...]
    missed: str | None
    plans: int
    uses: int
    values: Mapping[str, object]

    def __str__(self) -> str:
        given = {**self.values, **self.sizes}
        shown = ", ".join(f"{name}={each}" for name, each in given.items())
        why = f"not {self.missed}" if self.missed else "first sizes"
        facts = "\n".join(f"  {fact}" for fact in self.facts)
        return f"class of {shown} ({why}): {self.plans} sizes, {self.uses} uses\n{facts}"
