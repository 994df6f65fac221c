"""Compilation of a schedule."""

from __future__ import annotations

from collections.abc import Mapping

from satura.backend.cores import usable_threads
from satura.backend.plan.executables import Executable
from satura.backend.plan.lowered import Progress
from satura.backend.plan.measure import Measured, measure
from satura.backend.plan.plan import Plan
from satura.backend.plan.plans import Again, Elsewhere, Plans, plan_of
from satura.backend.run.part import Part
from satura.backend.run.signatures import Values
from satura.rewrite.errors import CallError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.system.heap import give_back_freed
from satura.rewrite.types.tensor_type import Array

_SEVERAL = "sizes of results depend on data, so there are several programs and not one"


class CompiledSchedule(Part):
    """A part that is compiled in this process."""

    @property
    def plans(self) -> Plans:
        """The one program. Raises CallError where there are more."""
        program = self.program
        if not isinstance(program, Plans):
            raise CallError(f"{_SEVERAL} to look at or to prepare: ask each of its `parts`")
        return program

    def prepare(self, sizes: Mapping[str, int], progress: Progress | None = None) -> Plan:
        """The plan for these sizes of all symbols, its kernels compiled."""
        return plan_of(self.plans.planned(tuple(sorted(sizes.items())), progress))

    def measure(
        self, arguments: Mapping[str, Array], rounds: int, is_warm: bool = False
    ) -> Measured:
        """What one call does and how long each of its launches takes; see `measure`.

        Raises CallError where Python runs between several programs.
        """
        planned, others = self.planned_for(arguments)
        if not isinstance(planned.plan, Plan):
            raise CallError(f"{_SEVERAL} to measure: measure each of its `parts`")
        return measure(plan_of(planned), others, rounds, is_warm)

    def executables(self, sizes: Mapping[str, int] | None = None) -> tuple[Executable, ...]:
        """The distinct kernels for `sizes` (default: typical ones), which are only looked at."""
        typical = self.plans.schedule.program.typical
        plan, _ = self.plans.looked_at(typical if sizes is None else sizes)
        return plan.executables


def compile_schedule(
    schedule: Schedule,
    threads: int | None = None,
    progress: Progress | None = None,
    elsewhere: Elsewhere | None = None,
    merging: str = "cost",
    values: Values = (),
    made: object = None,
    again: Again | None = None,
) -> CompiledSchedule:
    """Compile `schedule` for `threads` threads (default: every CPU this process may use).

    A program without symbols is compiled at once, another one with the first call of each new
    sizes (its kernels are mostly shared by all sizes). `progress` gets a text and a fraction, and
    `elsewhere` the sizes at which the schedule does not run. `merging` says which dispatches share
    a kernel, see `executables.py`. `values` decided the schedule, which was `made` so; where a
    dispatch of it cannot be lowered, `again` makes another one.
    """
    constants = (node.constant for node in schedule.program.nodes if node.op.name == "constant")
    give_back_freed(sum(constant.nbytes for constant in constants))  # what the search has left
    count = threads or usable_threads()
    program = Plans(schedule, count, elsewhere, merging, values, made, again)
    part = CompiledSchedule(count, [program])
    if not schedule.program.symbols:
        part.prepare({}, progress)
    return part
