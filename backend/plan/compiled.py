"""Compilation of a schedule."""

from __future__ import annotations

from satura.backend.cores import usable_threads
from satura.backend.plan.lowered import Progress
from satura.backend.plan.part import Part, Table
from satura.backend.plan.plans import Elsewhere, Plans
from satura.backend.run.signatures import Values
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.system.heap import give_back_freed


def compile_schedule(
    schedule: Schedule,
    threads: int | None = None,
    progress: Progress | None = None,
    elsewhere: Elsewhere | None = None,
    merging: str = "cost",
    table: Table | None = None,
    values: Values | None = None,
    made: object = None,
) -> Part:
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
    program = Plans(schedule, count, elsewhere, merging, values or (), made)
    part = Part(table or Table(), count, program)
    if not schedule.program.symbols:
        part.prepare({}, progress)
    return part
