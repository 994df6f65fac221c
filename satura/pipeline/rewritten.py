"""Rewritten: what the stages before the kernels made of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from satura.rewrite.errors import LimitWarning, StruckWarning, warn_caller

if TYPE_CHECKING:
    from satura.rewrite.egraph.limits import Limits
    from satura.rewrite.egraph.report import Report
    from satura.rewrite.extract.schedule import Schedule
    from satura.rewrite.program.program import Program


@dataclass(frozen=True)
class Rewritten:
    """The program as it was loaded, what is to run, and what the rules did for it.

    Where it `is_remembered`, the rules did it in an earlier call, maybe of another process. `dims`
    are the typical sizes that it was made for, where any were given.
    """

    source: Program
    schedule: Schedule
    report: Report
    phases: dict[str, float]
    is_remembered: bool = False
    dims: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def typical(self) -> dict[str, int]:
        """A size for each symbol: what `dims` say, and others at which the program runs."""
        given = {name: size for name, size in self.dims.items() if name in self.source.symbols}
        return self.source.typical_beside(given) if given else self.source.typical


def cut_short(report: Report, limits: Limits | None) -> str:
    """What to warn of: the limit that ended a search; nothing where none did, or where rules grow
    without end, which has a warning already."""
    if not report.is_cut_short or report.growing:
        return ""
    from satura.rewrite.egraph.limits import Limits as Usual

    kind, usual = report.stopped, Usual()
    limit = getattr(limits or usual, kind)
    bound = f"{'default ' if limit == getattr(usual, kind) else ''}limit of {limit:,}"
    what = {"nodes": "e-nodes"}.get(kind, kind)
    return (
        f"the search stopped at its {bound} {what}, and what was found by then is used: a higher"
        f" one, as by limits=satura.Limits({kind}=...) or --limits {kind}=..., may find a cheaper"
        " program"
    )


def warn_if_struck(report: Report) -> None:
    """Warn of fragments that could not be lowered."""
    if report.struck:
        shown = "; ".join(report.struck)
        warn_caller(
            f"what was chosen first cannot be lowered, and the next best was chosen: {shown};"
            " results are right, but please report the model",
            StruckWarning,
        )


def warn_if_cut_short(message: str) -> None:
    """Warn of what `cut_short` says."""
    if message:
        warn_caller(message, LimitWarning)
