"""Rewritten: what the stages before the kernels made of a model."""

from __future__ import annotations

from dataclasses import dataclass

from satura.rewrite.egraph.report import Report
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.program import Program


@dataclass(frozen=True)
class Rewritten:
    """The program as it was loaded, what is to run, and what the rules did for it.

    Where it `is_remembered`, the rules did it in an earlier call, maybe of another process.
    """

    source: Program
    schedule: Schedule
    report: Report
    phases: dict[str, float]
    is_remembered: bool = False
