"""Parts: they find the program and the plan for a call, and make what is not there.

Compiled and saved models run a part. What a call comes with is its key: values, and then sizes.

    values of the inputs that decide shapes   a program, searched for these values
    sizes                                     a plan: numbers, evaluated in a class of sizes
    sizes of no class that there is           a class, lowered once, and the facts (equalities and
                                              bounds of extents) that lowering has decided
    sizes that the program excludes           a class, or a plan, of a program made for these sizes,
                                              in which those that others do not exclude stay open

Programs are compiled, or those of a file, or chains: parts around a node on the host. One thread at
a time makes what is missing, and calls of known keys do not wait for it. Plans and programs go by
bytes, those that were longest not used first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Self

from satura.backend.run.bound import Bound
from satura.backend.run.recent import Recent
from satura.backend.run.signatures import Signatures, Sizes, Values, values_of
from satura.backend.run.workspace import Workspaces
from satura.rewrite.errors import CallError, ProgramError, RefusedSizesError, advice
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.system.forks import renew_after_fork
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes

if TYPE_CHECKING:
    from satura.backend.run.class_report import ClassReport

Progress = Callable[[str, float], None]
Out = Mapping[str, Array] | None
MOST_PLANS = 32 << 20  # bytes
MOST_PROGRAMS = 1 << 30  # bytes of programs for values, with their constants


ShownTypes = tuple[Mapping[str, TensorType], Mapping[str, TensorType]]


class Planned(NamedTuple):
    """What runs calls of some sizes, and its bytes; `report` is of their class."""

    run: Callable[[Mapping[str, Array], Out], dict[str, Array]]
    bind: Callable[[Mapping[str, Array], Out], Bound]
    size: int = 0
    report: ClassReport | None = None
    plan: object = None  # what it is made of


class Program(ABC):
    """A program, for the `values` of the inputs that decide shapes: these are none of `inputs`.

    It finds and makes plans by `sizes`; `declared` are types of inputs with more than it has.
    `shown` are the types of inputs and outputs where other programs run at sizes that it has fixed.
    """

    def __init__(
        self, values: Values, inputs: Mapping[str, TensorType], outputs: Mapping[str, TensorType],
        declared: Mapping[str, TensorType] | None = None, shown: ShownTypes | None = None,
    ) -> None:  # fmt: skip
        self.shown = shown
        self.values, self.inputs, self.outputs, self.declared = values, inputs, outputs, declared
        self.workspaces = Workspaces()
        self.sizes = {open_sizes(types.values()) for types in (inputs, declared or inputs)}
        self._signatures = Signatures(inputs, declared)
        self._plans: Recent[Sizes, Planned] = Recent(MOST_PLANS)
        self._last: tuple[list[object], Planned] | None = None  # what arguments looked like
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Unlock it, as it is made or as a child of fork has it."""
        self._lock, self._making = Lock(), Lock()  # of what there is, and of what is new

    def planned_for(self, arguments: Mapping[str, Array]) -> Planned:
        """The plan for what arguments look like. Raises CallError where they do not fit."""
        signature: list[object] = []
        for name, each in arguments.items():
            signature += name, each.dtype, each.shape
        last = self._last
        if last is not None and last[0] == signature:
            if last[1].report is not None:
                with self._lock:
                    last[1].report.uses += 1
            return last[1]
        sizes = self._signatures.sizes(arguments)
        try:
            found = self._used(sizes) or self.planned(sizes)
        except ProgramError as error:
            if not isinstance(error.__cause__, RefusedSizesError):
                sizes_of(self.inputs, arguments)  # raises where it takes some sizes for equal
            raise
        self._last = signature, found
        return found

    def planned(self, sizes: Sizes, progress: Progress | None = None) -> Planned:
        """The plan for these sizes. Raises ProgramError where there is none."""
        found = self._used(sizes)
        if found is None:
            with self._making:
                found = self._used(sizes)  # another thread may have made it meanwhile
                if found is None:
                    found = self._made(sizes, progress)
                    with self._lock:
                        self._plans.keep(sizes, found, found.size)
        return found

    def prepare(self, sizes: Sizes) -> None:
        """Make ready for calls of these sizes. Raises ProgramError where there is no plan."""
        self.planned(sizes)

    def _used(self, sizes: Sizes) -> Planned | None:
        with self._lock:
            found = self._plans.get(sizes)
            if found is not None and found.report is not None:
                found.report.uses += 1
            return found

    def types_at(self, sizes: Mapping[str, int]) -> Mapping[str, TensorType]:
        """The types of the inputs that have these sizes: its own, or those that are declared."""
        if self.declared is None or sizes.keys() == self.symbols:
            return self.inputs
        return self.declared

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The sizes of its own inputs."""
        return open_sizes(self.inputs.values())

    @abstractmethod
    def _made(self, sizes: Sizes, progress: Progress | None) -> Planned:
        """A plan for new sizes, one at a time. Raises ProgramError where there is none."""

    @property
    def ready(self) -> list[tuple[Sizes, Planned]]:
        """The plans that are kept, each with its sizes."""
        with self._lock:
            return self._plans.items()

    @property
    def size(self) -> int:
        """About its bytes."""
        return self._plans.size

    @property
    def classes(self) -> list[ClassReport]:
        """The classes of the plans that are kept."""
        kept = {id(each.report): each.report for _, each in self.ready if each.report is not None}
        return list(kept.values())

    def release(self) -> None:
        """Give back the memory that no call uses at the moment, and plans of sizes."""
        self.workspaces.forget()
        self._last = None
        with self._lock:
            whole = self._plans.get(())
            self._plans.clear()
            if whole is not None:
                self._plans.keep((), whole, whole.size)


Search = Callable[[Mapping[str, Array], frozenset[str]], Program]
"""Makes the program for values of the inputs that decide shapes: of those named at least. Raises
CallError where the value of another is missing."""


class Part:
    """Runs one program, or for values of the inputs that decide shapes that of each call.

    `programs` are those that there are. Several threads may call it at once; results do not depend
    on that.
    """

    def __init__(
        self, threads: int, programs: Sequence[Program], deciding: frozenset[str] = frozenset(),
        search: Search | None = None, types: Mapping[str, TensorType] | None = None,
    ) -> None:  # fmt: skip
        self.threads = threads
        self.inputs = programs[0].inputs if types is None else types
        self._only = None if deciding else programs[0]
        self._deciding = deciding
        self._search = search
        self._programs: Recent[Values, Program] = Recent(MOST_PROGRAMS)
        self._known_by = [deciding]  # the values of which inputs lead to the program of a call
        for program in programs:
            self._keep(program)
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Unlock it, as it is made or as a child of fork has it."""
        self._lock, self._making = Lock(), Lock()

    @property
    def program(self) -> Program:
        """The one program. Raises CallError where there is one for each value of an input."""
        if self._only is None:
            names = ", ".join(self.deciding)
            what = advice(
                "ask for_values({...}), or load(model, values={...})",
                f"give --value {self.deciding[0]}=...",
            )
            raise CallError(
                f"the values of {names} decide shapes, so there is a program only for values of"
                f" them: {what}"
            )
        return self._only

    @property
    def programs(self) -> list[Program]:
        """The programs that there are, the last used comes first."""
        with self._lock:
            return [program for _, program in reversed(self._programs.items())]

    @property
    def outputs(self) -> Mapping[str, TensorType]:
        """Types of the outputs by name. Raises CallError as `program` does."""
        return self.program.outputs

    @property
    def shown(self) -> ShownTypes:
        """The types of inputs and outputs at all sizes, also those of other programs. Raises
        CallError as `program` does."""
        return self.program.shown or (self.inputs, self.outputs)

    @property
    def deciding(self) -> tuple[str, ...]:
        """The inputs that are known to decide shapes, in call order."""
        return tuple(name for name in self.inputs if name in self._deciding)

    def for_values(self, arguments: Mapping[str, Array]) -> Self:
        """The part that runs the program for these values; other inputs are left aside."""
        return type(self)(self.threads, [self._only or self._program_for(arguments)])

    def _program_for(self, arguments: Mapping[str, Array]) -> Program:
        found = self._known(arguments)
        if found is None:
            with self._making:
                found = self._known(arguments)  # another thread may have made it meanwhile
                if found is None:
                    assert self._search is not None
                    found = self._search(arguments, self._deciding)
                    with self._lock:
                        self._deciding |= frozenset(name for name, *_ in found.values)
                        for values, each in self._programs.items():  # they have grown
                            self._programs.keep(values, each, each.size)
                        self._keep(found)
        return found

    def _keep(self, program: Program) -> None:
        names = frozenset(name for name, *_ in program.values)
        if names not in self._known_by:
            self._known_by.append(names)
        self._programs.keep(program.values, program, program.size)

    def _known(self, arguments: Mapping[str, Array]) -> Program | None:
        wanted = [values_of(arguments, names) for names in self._known_by]
        with self._lock:
            return next(filter(None, map(self._programs.get, wanted)), None)

    def planned_for(self, arguments: Mapping[str, Array]) -> tuple[Planned, Mapping[str, Array]]:
        """The plan for what arguments look like, and those of them that its program takes.

        Raises CallError where they do not fit.
        """
        if self._only is not None:
            return self._only.planned_for(arguments), arguments
        program = self._program_for(arguments)
        bound = {name for name, *_ in program.values}
        others = {name: each for name, each in arguments.items() if name not in bound}
        return program.planned_for(others), others

    def run(self, arguments: Mapping[str, Array], out: Out = None) -> dict[str, Array]:
        """Outputs by name, in the arrays of `out` or in new ones, for arguments by name.

        Raises CallError where the arguments do not fit the inputs, or arrays of `out` the outputs,
        or an index leaves its axis.
        """
        if self._only is not None:  # as below, and sooner
            return self._only.planned_for(arguments).run(arguments, out)
        planned, others = self.planned_for(arguments)
        return planned.run(others, out)

    def bind(self, arguments: Mapping[str, Array], out: Out = None) -> Bound:
        """A call on these arrays. Raises CallError as `run` does."""
        planned, others = self.planned_for(arguments)
        deciding = {name: x for name, x in arguments.items() if name not in others}
        return planned.bind(others, out).with_deciding(deciding)

    @property
    def classes(self) -> tuple[ClassReport, ...]:
        """The classes of sizes so far, the one that new sizes were of last comes first.

        Those of one size each come behind them, as long as their plans are kept.
        """
        return tuple(copy(report) for program in self.programs for report in program.classes)

    def release(self) -> None:
        """Give back the memory that no call uses at the moment, and plans of sizes."""
        for program in self.programs:
            program.release()
