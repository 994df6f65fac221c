"""What a proof says: whether a law holds for all sizes, at which ranks, and why not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """The verdict on one rule.

    "proved": both sides read the same elements, for all sizes, at every rank in `ranks`; what
    `reason` says is then what the proof covers. "refuted": `reason` shows sizes for which the law
    fails. "open": neither; `reason` says why, and `ranks` are those that are proved all the same.
    """

    rule: str
    status: str
    ranks: tuple[int, ...] = ()
    reason: str = ""

    @property
    def is_proved(self) -> bool:
        return self.status == "proved"

    def __str__(self) -> str:
        return f"{self.rule}: {self.status}" + (f" ({self.reason})" if self.reason else "")
