"""Parts: they find the program and the plan for a call, and make what is not there.

A `Compiled` runs one part, or several where a model is cut. What a call comes with is its key, and
one table has what follows from it:

    values of the inputs that decide shapes   a program, searched for these values
    sizes                                     a plan: numbers, evaluated in a class of sizes
    sizes of no class that there is           a class, lowered once, and the facts (equalities and
                                              bounds of extents) that lowering has decided
    sizes that the program excludes           a plan of a program for these sizes alone

One thread at a time makes what is missing, and calls of known keys do not wait for it. Plans and
programs go by bytes, those that were longest not used first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from satura.backend.plan.executables import Executable
from satura.backend.plan.lowered import Progress
from satura.backend.plan.measure import Measured, measure
from satura.backend.plan.plan import Plan
from satura.backend.plan.plans import ClassReport, Planned, Plans, Record
from satura.backend.plan.recent import Recent
from satura.backend.run.bound import Bound
from satura.backend.run.signatures import Sizes, Values, values_of
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.system.forks import renew_after_fork
from satura.rewrite.types.tensor_type import Array, TensorType

MOST_PLANS = 32 << 20  # bytes
MOST_PROGRAMS = 1 << 30  # bytes of programs for values, with their constants

Search = Callable[["Table", Mapping[str, Array], frozenset[str]], tuple[Plans, frozenset[str]]]
"""Makes the program for values of the inputs that decide shapes: of those named at least. It gives
their names, too, and raises CallError where the value of one is missing."""


class Table:
    """Programs by values, and plans by program and sizes."""

    def __init__(self, deciding: frozenset[str] = frozenset(), search: Search | None = None):
        self.deciding = deciding
        self._search = search
        self._programs: Recent[Values, Plans] = Recent(MOST_PROGRAMS)
        self._plans: Recent[tuple[Plans, Sizes], Planned] = Recent(MOST_PLANS)
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Unlock it, as it is made or as a child of fork has it."""
        self._lock = threading.Lock()  # of what there is
        self._making = threading.RLock()  # of what is new: what makes a program may run it

    def program(self, arguments: Mapping[str, Array]) -> Plans:
        """The program for the values of the inputs that decide shapes, among others."""
        found = self._known(arguments)
        if found is not None:
            return found
        with self._making:
            found = self._known(arguments)  # another thread may have made it meanwhile
            if found is None:
                assert self._search is not None
                found, names = self._search(self, arguments, self.deciding)
                with self._lock:
                    if names != self.deciding:  # these led where more of them are needed
                        self.deciding = names
                        self._programs.clear()
                    self._programs.keep(found.values, found, found.size)
            return found

    def _known(self, arguments: Mapping[str, Array]) -> Plans | None:
        key = values_of(arguments, self.deciding)
        with self._lock:
            return None if key is None else self._programs.get(key)

    def planned(self, program: Plans, sizes: Sizes, progress: Progress | None = None) -> Planned:
        """The plan of a program for these sizes. Raises ProgramError where it has none."""
        key = program, sizes
        found = self._used(key)
        if found is None:
            with self._making:
                found = self._used(key)
                if found is None:
                    found = program.make(sizes, progress)
                    with self._lock:
                        self._plans.keep(key, found, found.size)
                        if self._search is not None:  # it has more constants than before
                            self._programs.keep(program.values, program, program.size)
        return found

    def _used(self, key: tuple[Plans, Sizes]) -> Planned | None:
        with self._lock:
            found = self._plans.get(key)
            if found is not None and found.record is not None:
                found.record.uses += 1
            return found

    def programs(self) -> list[Plans]:
        """The programs for values, the last used comes first."""
        with self._lock:
            return [program for _, program in reversed(self._programs.items())]

    def ready(self, program: Plans) -> list[tuple[Sizes, Planned]]:
        """The plans of a program that are kept, each with its sizes."""
        with self._lock:
            entries = self._plans.items()
        return [(sizes, found) for (owner, sizes), found in entries if owner is program]

    def release(self) -> None:
        """Give back memory that no call uses, and all plans but those without sizes."""
        with self._lock:
            entries = self._plans.items()
            self._plans.clear()
            for (program, sizes), found in entries:
                program.workspaces.forget()
                if not sizes:
                    self._plans.keep((program, sizes), found, found.size)


class Part:
    """Runs one program, or without `program` that of its table for the values of each call.

    Several threads may call it at once; results do not depend on that.
    """

    def __init__(
        self, table: Table, threads: int, program: Plans | None = None,
        types: Mapping[str, TensorType] | None = None,
    ) -> None:  # fmt: skip
        self._table = table
        self._program = program
        self._types = types or {}
        self.threads = threads

    @property
    def program(self) -> Plans:
        """The one program. Raises CallError where there is one for each value of an input."""
        if self._program is None:
            names = ", ".join(self.deciding)
            raise CallError(
                f"the values of {names} decide shapes, so there is a program only for values of"
                " them: ask for_values({...}), or load(model, values={...}), or give"
                f" --value {self.deciding[0]}=... on the command line"
            )
        return self._program

    @property
    def programs(self) -> list[Plans]:
        """The programs that there are, the last used comes first."""
        return self._table.programs() if self._program is None else [self._program]

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """Types of the inputs by name, in call order."""
        return self._types if self._program is None else self._program.inputs

    @property
    def outputs(self) -> Mapping[str, TensorType]:
        """Types of the outputs by name. Raises CallError as `program` does."""
        return self.program.outputs

    @property
    def deciding(self) -> tuple[str, ...]:
        """The inputs that are known to decide shapes, in call order."""
        names = self._table.deciding if self._program is None else ()
        return tuple(name for name in self.inputs if name in names)

    def for_values(self, arguments: Mapping[str, Array]) -> Part:
        """The part that runs the program for these values; other inputs are left aside."""
        if self._program is not None:
            return self
        return Part(self._table, self.threads, self._table.program(arguments))

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Outputs by name, in the arrays of `out` or in new ones, for arguments by name.

        Raises CallError where the arguments do not fit the inputs, or arrays of `out` the outputs,
        or an index leaves its axis.
        """
        planned, others = self._planned_for(arguments)
        return planned.instances.run(others, out)

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """A call on these arrays. Raises CallError as `run` does."""
        planned, others = self._planned_for(arguments)
        return planned.instances.bind(others, out)

    def measure(
        self, arguments: Mapping[str, Array], rounds: int, is_warm: bool = False
    ) -> Measured:
        """What one call does and how long each of its launches takes; see `measure`."""
        planned, others = self._planned_for(arguments)
        return measure(planned.plan, others, rounds, is_warm)

    def prepare(self, sizes: Mapping[str, int], progress: Progress | None = None) -> Plan:
        """The plan for these sizes of all symbols, its kernels compiled."""
        return self._table.planned(self.program, tuple(sorted(sizes.items())), progress).plan

    def executables(self, sizes: Mapping[str, int] | None = None) -> tuple[Executable, ...]:
        """The distinct kernels for `sizes` (default: typical ones)."""
        return self.prepare(self._typical(sizes)).executables

    def transient_memory_size(self, sizes: Mapping[str, int] | None = None) -> int:
        """Bytes of the arena that holds intermediate tensors, for `sizes` (default: typical)."""
        return self.prepare(self._typical(sizes)).arena.size

    def _typical(self, sizes: Mapping[str, int] | None) -> Mapping[str, int]:
        return self.program.schedule.program.typical if sizes is None else sizes

    def ready(self, program: Plans) -> list[tuple[Sizes, Plan]]:
        """The plans of one of its programs that are kept, each with its sizes."""
        return [(sizes, found.plan) for sizes, found in self._table.ready(program)]

    @property
    def classes(self) -> tuple[ClassReport, ...]:
        """The classes of sizes so far, the one that new sizes were of last comes first.

        Those of one size each come behind them, as long as their plans are kept.
        """
        found: list[ClassReport] = []
        for program in self.programs:
            kept = [each.record for _, each in self._table.ready(program)]
            alone = [each for each in kept if type(each) is Record]
            found += map(program.report, (*program.classes, *alone))
        return tuple(found)

    def release(self) -> None:
        """Give back the memory that no call uses at the moment, and plans of sizes."""
        self._table.release()

    def _planned_for(self, arguments: Mapping[str, Array]) -> tuple[Planned, Mapping[str, Array]]:
        """The plan for what arguments look like, and those of them that its program takes.

        Raises CallError where they do not fit.
        """
        program = self._program
        if program is None:
            program = self._table.program(arguments)
            arguments = program.others(arguments)
        try:
            return self._table.planned(program, program.signatures.sizes(arguments)), arguments
        except ProgramError:
            sizes_of(program.inputs, arguments)  # raises where it takes some sizes for equal
            raise
