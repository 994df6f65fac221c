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
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from satura.backend.run.bound import Bound
from satura.backend.run.instances import Instances
from satura.backend.run.recent import Recent
from satura.backend.run.signatures import Signatures, Sizes, Values, values_of
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.system.forks import renew_after_fork
from satura.rewrite.types.tensor_type import Array, TensorType

Progress = Callable[[str, float], None]
MOST_PLANS = 32 << 20  # bytes
MOST_PROGRAMS = 1 << 30  # bytes of programs for values, with their constants


@dataclass
class ClassReport:
    """A class of sizes: sizes for which one lowering and the same kernels serve.

    `sizes` were the first, `facts` say which others are of the class. `missed` is the fact of the
    class used before that did not hold for `sizes`; None for the first class. `plans` counts how
    often sizes of the class were new, `uses` how often they were asked for. `values` are those of
    the inputs that decide shapes.
    """

    sizes: Mapping[str, int]
    facts: tuple[str, ...]
    missed: str | None
    plans: int
    uses: int
    values: Mapping[str, object]

    def __str__(self) -> str:
        given = {**self.values, **self.sizes}
        shown = ", ".join(f"{name}={each}" for name, each in given.items())
        why = f"not {self.missed}" if self.missed else "first sizes"
        facts = "\n".join(f"  {fact}" for fact in self.facts)
        return f"class of {shown} ({why}): {self.plans} sizes, {self.uses} uses\n{facts}"


@dataclass(frozen=True)
class Planned:
    """What runs calls of some sizes, and its bytes; `report` is of their class."""

    instances: Instances
    size: int = 0
    report: ClassReport | None = None


class Program(ABC):
    """A program, for the `values` of the inputs that decide shapes: these are none of `inputs`."""

    def __init__(
        self, values: Values, inputs: Mapping[str, TensorType], outputs: Mapping[str, TensorType],
        declared: Mapping[str, TensorType] | None,
    ) -> None:  # fmt: skip
        self.values, self.inputs, self.outputs = values, inputs, outputs
        self.signatures = Signatures(inputs, declared)
        self._bound = {name for name, *_ in values}

    def others(self, arguments: Mapping[str, Array]) -> Mapping[str, Array]:
        """The arguments that did not decide the program."""
        return {name: each for name, each in arguments.items() if name not in self._bound}

    @property
    def size(self) -> int:
        """About its bytes, without plans."""
        return 0

    @abstractmethod
    def make(self, key: Sizes, progress: Progress | None) -> Planned:
        """The plan for new sizes, one thread at a time. Raises ProgramError where it has none."""


P = TypeVar("P", bound=Program)
Search = Callable[[Mapping[str, Array], frozenset[str]], P]
"""Makes the program for values of the inputs that decide shapes: of those named at least. Raises
CallError where the value of another is missing."""


class Table(Generic[P]):
    """Programs by values, and plans by program and sizes."""

    def __init__(
        self, deciding: frozenset[str] = frozenset(), search: Search[P] | None = None,
        programs: Sequence[P] = (),
    ) -> None:  # fmt: skip
        self.deciding = deciding
        self._search = search
        self._programs: Recent[Values, P] = Recent(MOST_PROGRAMS)
        self._plans: Recent[tuple[P, Sizes], Planned] = Recent(MOST_PLANS)
        for program in programs:
            self._programs.keep(program.values, program, program.size)
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Unlock it, as it is made or as a child of fork has it."""
        self._lock = threading.Lock()  # of what there is
        self._making = threading.RLock()  # of what is new: what makes a program may run it

    def program(self, arguments: Mapping[str, Array]) -> P:
        """The program for the values of the inputs that decide shapes, among others."""
        found = self._known(arguments)
        if found is None:
            with self._making:
                found = self._known(arguments)  # another thread may have made it meanwhile
                if found is None:
                    assert self._search is not None
                    found = self._search(arguments, self.deciding)
                    names = frozenset(name for name, *_ in found.values)
                    with self._lock:
                        if names != self.deciding:  # these led where more of them are needed
                            self.deciding = names
                            self._programs.clear()
                        self._programs.keep(found.values, found, found.size)
        return found

    def _known(self, arguments: Mapping[str, Array]) -> P | None:
        key = values_of(arguments, self.deciding)
        with self._lock:
            return self._programs.get(key)

    def planned(self, program: P, sizes: Sizes, progress: Progress | None = None) -> Planned:
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

    def _used(self, key: tuple[P, Sizes]) -> Planned | None:
        with self._lock:
            found = self._plans.get(key)
            if found is not None and found.report is not None:
                found.report.uses += 1
            return found

    @property
    def programs(self) -> list[P]:
        """The programs for values, the last used comes first."""
        with self._lock:
            return [program for _, program in reversed(self._programs.items())]

    def ready(self, program: P) -> list[tuple[Sizes, Planned]]:
        """The plans of a program that are kept, each with its sizes."""
        with self._lock:
            entries = self._plans.items()
        return [(sizes, found) for (owner, sizes), found in entries if owner is program]

    def release(self) -> None:
        """Drop all plans but those without sizes."""
        with self._lock:
            entries = self._plans.items()
            self._plans.clear()
            for key, found in entries:
                if not key[1]:
                    self._plans.keep(key, found, found.size)


class Part(Generic[P]):
    """Runs one program, or without `program` that of its table for the values of each call.

    `types` are those of the inputs, where there is no one program. Several threads may call it at
    once; results do not depend on that.
    """

    def __init__(
        self, table: Table[P], threads: int, program: P | None = None,
        types: Mapping[str, TensorType] | None = None,
    ) -> None:  # fmt: skip
        self._table = table
        self._program = program
        self.threads = threads
        self.inputs = types or {} if program is None else program.inputs

    @property
    def program(self) -> P:
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
    def programs(self) -> list[P]:
        """The programs that there are, the last used comes first."""
        return self._table.programs if self._program is None else [self._program]

    @property
    def outputs(self) -> Mapping[str, TensorType]:
        """Types of the outputs by name. Raises CallError as `program` does."""
        return self.program.outputs

    @property
    def deciding(self) -> tuple[str, ...]:
        """The inputs that are known to decide shapes, in call order."""
        names = self._table.deciding if self._program is None else ()
        return tuple(name for name in self.inputs if name in names)

    def for_values(self, arguments: Mapping[str, Array]) -> Self:
        """The part that runs the program for these values; other inputs are left aside."""
        if self._program is not None:
            return self
        return type(self)(self._table, self.threads, self._table.program(arguments))

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Outputs by name, in the arrays of `out` or in new ones, for arguments by name.

        Raises CallError where the arguments do not fit the inputs, or arrays of `out` the outputs,
        or an index leaves its axis.
        """
        planned, others = self.planned_for(arguments)
        return planned.instances.run(others, out)

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """A call on these arrays. Raises CallError as `run` does."""
        planned, others = self.planned_for(arguments)
        return planned.instances.bind(others, out)

    def planned(self, sizes: Mapping[str, int], progress: Progress | None = None) -> Planned:
        """The plan for these sizes of all symbols of the one program."""
        return self._table.planned(self.program, tuple(sorted(sizes.items())), progress)

    def planned_for(self, arguments: Mapping[str, Array]) -> tuple[Planned, Mapping[str, Array]]:
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
