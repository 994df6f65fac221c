"""A compiled schedule: kernels, a plan per sizes, and memory for concurrent calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from satura.backend.constants import fold_constants
from satura.backend.cores import usable_threads
from satura.backend.plan.executables import Executable
from satura.backend.plan.lowered import Progress
from satura.backend.plan.measure import Measured, measure
from satura.backend.plan.plan import Plan
from satura.backend.plan.plans import ClassReport, Elsewhere, Planned, Plans
from satura.backend.run.bound import Bound
from satura.backend.run.signatures import Signatures, Sizes
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.system.forks import renew_after_fork
from satura.rewrite.system.heap import give_back_freed
from satura.rewrite.types.tensor_type import Array


class CompiledSchedule:
    """Runs a schedule. Several threads may call `run` at once; results do not depend on that."""

    def __init__(
        self, schedule: Schedule, threads: int, elsewhere: Elsewhere | None = None,
        merging: str = "cost",
    ) -> None:  # fmt: skip
        self.schedule = schedule
        self.threads = threads
        nodes = (schedule.program.nodes[index] for index in schedule.program.inputs)
        self._signatures = Signatures({node.input_name: node.type for node in nodes})
        self._declared = None if elsewhere is None else Signatures(elsewhere.types)
        self._plans = Plans(schedule, threads, elsewhere, merging)
        self._lock = threading.Lock()  # of the plans that there are
        self._making = threading.Lock()  # of new ones: calls of known sizes do not wait for them
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Unlock a forked copy."""
        self._lock, self._making = threading.Lock(), threading.Lock()

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Outputs by name, in the arrays of `out` or in new ones, for arguments by name.

        Raises CallError where the arguments do not fit the inputs, or arrays of `out` the outputs,
        or an index leaves its axis.
        """
        return self._planned_for(arguments).instances.run(arguments, out)

    def release(self) -> None:
        """Give back the memory that no call uses at the moment, and plans of sizes."""
        with self._lock:
            self._plans.forget()

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """A call on these arrays. Raises CallError as `run` does."""
        return self._planned_for(arguments).instances.bind(arguments, out)

    def prepare(self, sizes: Mapping[str, int], progress: Progress | None = None) -> Plan:
        """The plan for these sizes of all symbols, its kernels compiled."""
        return self._planned(tuple(sorted(sizes.items())), progress).plan

    def measure(
        self, arguments: Mapping[str, Array], rounds: int, is_warm: bool = False
    ) -> Measured:
        """What one call does and how long each of its launches takes; see `measure`."""
        plan = self._planned_for(arguments).plan
        return measure(plan, arguments, rounds, is_warm)

    def executables(self, sizes: Mapping[str, int] | None = None) -> tuple[Executable, ...]:
        """The distinct kernels for `sizes` (default: typical ones)."""
        return self.prepare(self._typical(sizes)).executables

    def transient_memory_size(self, sizes: Mapping[str, int] | None = None) -> int:
        """Bytes of the arena that holds intermediate tensors, for `sizes` (default: typical)."""
        return self.prepare(self._typical(sizes)).arena.size

    def _typical(self, sizes: Mapping[str, int] | None) -> Mapping[str, int]:
        return self.schedule.program.typical if sizes is None else sizes

    @property
    def plans(self) -> list[tuple[Sizes, Plan]]:
        """The plans that are ready, each with its sizes."""
        with self._lock:
            return self._plans.ready()

    @property
    def classes(self) -> tuple[ClassReport, ...]:
        """The classes of sizes so far, the one that new sizes were of last comes first."""
        return self._plans.reports

    @property
    def constant_size(self) -> int:
        """Bytes of all constants that kernels planned so far read, equal ones counted once."""
        return self._plans.store.size

    @property
    def constant_count(self) -> int:
        """How many constants that is."""
        return self._plans.store.count

    def _planned_for(self, arguments: Mapping[str, Array]) -> Planned:
        """The plan for what arguments look like. Raises CallError where they do not fit."""
        try:
            key = self._signatures.sizes(arguments)
        except CallError as error:
            if self._declared is None:
                raise
            key = self._declared.sizes(arguments)  # as they fit what was declared
            try:
                return self._planned(key)
            except ProgramError:
                raise error from None
        return self._planned(key)

    def _planned(self, key: Sizes, progress: Progress | None = None) -> Planned:
        with self._lock:
            found = self._plans.get(key)
        if found is not None:
            return found
        with self._making:
            with self._lock:
                found = self._plans.get(key)  # another thread may have made it meanwhile
            if found is None:
                found = self._plans.make(key, progress)
                with self._lock:
                    self._plans.keep(key, found)
            return found


def compile_schedule(
    schedule: Schedule,
    threads: int | None = None,
    progress: Progress | None = None,
    elsewhere: Elsewhere | None = None,
    merging: str = "cost",
) -> CompiledSchedule:
    """Compile `schedule` for `threads` threads (default: every CPU this process may use).

    A program without symbols is compiled at once, another one with the first call of each new
    sizes (its kernels are mostly shared by all sizes). `progress` gets a text and a fraction, and
    `elsewhere` the sizes at which the schedule does not run. `merging` says which dispatches share
    a kernel, see `executables.py`.
    """
    constants = (node.constant for node in schedule.program.nodes if node.op.name == "constant")
    give_back_freed(sum(constant.nbytes for constant in constants))  # what the search has left
    compiled = CompiledSchedule(
        fold_constants(schedule), threads or usable_threads(), elsewhere, merging
    )
    if not schedule.program.symbols:
        compiled.prepare({}, progress)
    return compiled
