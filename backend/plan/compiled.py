"""Compilation of a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from satura.backend.cores import usable_threads
from satura.backend.plan.executables import Executable
from satura.backend.plan.lowered import Progress
from satura.backend.plan.measure import Measured, measure
from satura.backend.plan.plan import Plan
from satura.backend.plan.plans import Elsewhere, PlannedHere, Plans
from satura.backend.run.part import ClassReport, Part, Table
from satura.backend.run.signatures import Sizes, Values
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.system.heap import give_back_freed
from satura.rewrite.types.tensor_type import Array


class CompiledSchedule(Part[Plans]):
    """A part whose programs are compiled in this process."""

    def prepare(self, sizes: Mapping[str, int], progress: Progress | None = None) -> Plan:
        """The plan for these sizes of all symbols, its kernels compiled."""
        return cast(PlannedHere, self.planned(sizes, progress)).plan

    def measure(
        self, arguments: Mapping[str, Array], rounds: int, is_warm: bool = False
    ) -> Measured:
        """What one call does and how long each of its launches takes; see `measure`."""
        planned, others = self.planned_for(arguments)
        return measure(cast(PlannedHere, planned).plan, others, rounds, is_warm)

    def executables(self, sizes: Mapping[str, int] | None = None) -> tuple[Executable, ...]:
        """The distinct kernels for `sizes` (default: typical ones)."""
        typical = self.program.schedule.program.typical
        return self.prepare(typical if sizes is None else sizes).executables

    def ready(self, program: Plans) -> list[tuple[Sizes, Plan]]:
        """The plans of one of its programs that are kept, each with its sizes."""
        return [(at, cast(PlannedHere, each).plan) for at, each in self._table.ready(program)]

    @property
    def classes(self) -> tuple[ClassReport, ...]:
        """The classes of sizes so far, the one that new sizes were of last comes first.

        Those of one size each come behind them, as long as their plans are kept.
        """
        found: list[ClassReport] = []
        for program in self.programs:
            own = [report for report, _ in program.classes]
            kept = [each.report for _, each in self._table.ready(program)]
            found += own + [each for each in kept if each and all(each is not one for one in own)]
        return tuple(map(replace, found))

    def release(self) -> None:
        """Give back the memory that no call uses at the moment, and plans of sizes."""
        self._table.release()
        for program in self.programs:
            program.workspaces.forget()


def compile_schedule(
    schedule: Schedule,
    threads: int | None = None,
    progress: Progress | None = None,
    elsewhere: Elsewhere | None = None,
    merging: str = "cost",
    table: Table[Plans] | None = None,
    values: Values = (),
    made: object = None,
) -> CompiledSchedule:
    """Compile `schedule` for `threads` threads (default: every CPU this process may use).

    A program without symbols is compiled at once, another one with the first call of each new
    sizes (its kernels are mostly shared by all sizes). `progress` gets a text and a fraction, and
    `elsewhere` the sizes at which the schedule does not run. `merging` says which dispatches share
    a kernel, see `executables.py`. `table` keeps the plans; `values` decided the schedule, which
    was `made` so.
    """
    constants = (node.constant for node in schedule.program.nodes if node.op.name == "constant")
    give_back_freed(sum(constant.nbytes for constant in constants))  # what the search has left
    count = threads or usable_threads()
    program = Plans(schedule, count, elsewhere, merging, values, made)
    part = CompiledSchedule(table or Table(), count, program)
    if not schedule.program.symbols:
        part.prepare({}, progress)
    return part
