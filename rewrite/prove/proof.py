"""What a proof says: whether a law holds for all sizes, at which ranks, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from satura.rewrite.language.dsl import Direction


@dataclass(frozen=True)
class Found:
    """A match for which the two sides of a direction differ; `text` says how."""

    direction: Direction
    bindings: Mapping[str, object]
    text: str


@dataclass(frozen=True)
class Proof:
    """The verdict on one rule.

    "proved": both sides read the same elements for all sizes at every rank in `ranks`; `reason`
    says what the proof covers. "refuted": `reason` and `found` show sizes for which the law fails.
    "open": neither is known; `reason` says why, and `ranks` are the ranks that are proved; both
    sides may differ at the `suspects`. Where it `is_late`, more steps may decide it.
    """

    rule: str
    status: str
    ranks: tuple[int, ...] = ()
    reason: str = ""
    found: Found | None = field(default=None, repr=False, compare=False)
    suspects: tuple[Found, ...] = field(default=(), repr=False, compare=False)
    is_late: bool = field(default=False, repr=False, compare=False)

    @property
    def is_proved(self) -> bool:
        return self.status == "proved"

    def __str__(self) -> str:
        return f"{self.rule}: {self.status}" + (f" ({self.reason})" if self.reason else "")
