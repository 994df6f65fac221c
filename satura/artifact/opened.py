"""Opening a saved program.

The file has two halves. One is ready to run: machine code, argument tables, packed constants, which
are mapped and never copied. It is used only where it can be trusted, since its tables are addresses
and its code is code: from a file that nobody but the user can have written, or with `trust`, and on
the CPU and by the satura that it was made for. The other is data: the schedule and the constants
as they were before they were packed. It is checked like what is remembered of models, and compiled
anew where the first half is not used, and for sizes that the file is not ready for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from satura.artifact.container import Container, natural, of
from satura.artifact.types import type_of
from satura.backend.cores import usable_threads
from satura.backend.jit.kernel import CompiledKernel, KernelError, environment
from satura.backend.jit.machine_code import load_all
from satura.backend.run import pool
from satura.backend.run.calls import Runnable
from satura.backend.run.instances import Instances
from satura.backend.run.part import Part, Planned, Program
from satura.backend.run.routine import FIRST_TENSOR, Instance, Launch, Output, Routine
from satura.backend.run.signatures import Sizes
from satura.backend.run.workspace import Workspaces
from satura.rewrite.errors import ArtifactError, CallError, ProgramError, warn_caller
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, TensorType

if TYPE_CHECKING:
    from pathlib import Path

    from satura.artifact.elsewhere import SearchAgain
    from satura.backend.plan.compiled import CompiledSchedule

_MOST_THREADS = 1 << 10
_MOST_BYTES = 1 << 46
_OBJECT = b"\x7fELF"  # what LLVM loads begins so


class Opened(Runnable):
    """A saved program, ready to run. It may be called from several threads at once."""

    def __init__(self, file: Container, is_trusted: bool, search: SearchAgain) -> None:
        """Raises ArtifactError for a damaged file; warns where its machine code is not used."""
        try:
            header = file.header
            threads = natural(header.get("threads"))
            if not 1 <= threads <= _MOST_THREADS:
                raise ArtifactError(f"{threads} threads are out of range")
            threads = min(threads, usable_threads())
            rows = [of(dict, row) for row in of(list, header["programs"])]
            programs = [_Program(file, row, threads, search) for row in rows]
            self._kernels = _part(file, programs, threads)
            reason = self._why_not(file, is_trusted)
            if reason is None:
                _load(file, programs)
            else:
                warn_caller(f"{file.path} {reason}: its kernels are compiled again")
        except (ArtifactError, KernelError, ProgramError, ValueError, KeyError, TypeError) as error:
            if str(file.path) in str(error):
                raise
            raise ArtifactError(f"{file.path} is damaged: {error}; save it again") from error

    @staticmethod
    def _why_not(file: Container, is_trusted: bool) -> str | None:
        """Why the machine code in a file is not to be used; None where it is."""
        if not (is_trusted or file.is_private):
            return "may have been written by somebody else (trust=True says that it is safe)"
        if of(str, file.header.get("environment")) != environment():
            return "was made on another CPU or by another version of satura"
        return None


def _part(file: Container, programs: Sequence[_Program], threads: int) -> Part:
    """What runs the programs of a file: the only one, or that for the values of each call."""
    deciding = frozenset(of(str, name) for name in of(list, file.header["deciding"]))

    def search(arguments: Mapping[str, Array], names: frozenset[str]) -> _Program:
        shown = ", ".join(f"{name}={arguments[name].tolist()}" for name in sorted(names))
        raise CallError(
            f"{file.path} has no program for {shown}, but for {len(programs)} other values: keep"
            " the model, and save it compiled for these too, see for_values"
        )

    if not programs or any({name for name, *_ in each.values} != deciding for each in programs):
        raise ArtifactError("its programs are not for values of the same inputs")
    return Part(threads, programs, deciding, search, _types(file.header["inputs"]))


def _load(file: Container, programs: Sequence[_Program]) -> None:
    """Take the routines of a file, all of it checked before the first code is loaded."""
    rows = of(list, file.header["kernels"])
    kernels = [_kernel(file, *of(list, row)) for row in rows]
    called = {name for kernel in kernels for name in kernel.externals}
    called |= {source.symbol for source in pool.SOURCES}  # they wait for other threads
    launched = {at for at, kernel in enumerate(kernels) if kernel.symbol not in called}
    checked = [(program, program.routines(launched)) for program in programs]
    addresses = load_all(kernels)
    for program, routines in checked:
        program.take(routines, addresses)


class _Program(Program):
    """Runs the routines of one program, and for other sizes what is compiled of its schedule."""

    def __init__(
        self, file: Container, row: dict[str, object], threads: int, search: SearchAgain
    ) -> None:
        self._declared = None if row["declared"] is None else _types(row["declared"])
        values = tuple(_value(*of(list, each)) for each in of(list, row["values"]))
        super().__init__(values, _types(row["inputs"]), _types(row["outputs"]), self._declared)
        self._file, self._row, self._threads, self._search = file, row, threads, search
        self._ready: dict[Sizes, Instances] = {}

    def _made(self, sizes: Sizes, progress: object = None) -> Planned:
        ready = self._ready.get(sizes)
        if ready is None:
            return self._compiled.plans.planned(sizes)
        return Planned(ready.run, ready.bind)

    def routines(self, kernels: Set[int]) -> list[tuple[Sizes, Routine]]:
        """Its routines, checked, with numbers of `kernels` for addresses."""
        constants = [
            _array(self._file, *of(list, each)) for each in of(list, self._row["constants"])
        ]
        rows = of(list, self._row["routines"])
        return [self._routine(of(dict, row), constants, kernels) for row in rows]

    def take(self, routines: list[tuple[Sizes, Routine]], addresses: Sequence[int]) -> None:
        """Run these routines, by kernels at these addresses."""
        for sizes, routine in routines:
            launches = tuple(
                Launch(addresses[launch.kernel], launch.arguments, launch.width)
                for launch in routine.launches
            )
            self._ready[sizes] = _instances(routine, launches, self.workspaces)

    @cached_property
    def _compiled(self) -> CompiledSchedule:
        """What the other half of the file makes, for sizes that are not ready.

        Raises ArtifactError where that half is not a schedule of these inputs and outputs.
        """
        from satura.artifact.again import schedule_in
        from satura.backend.plan.compiled import compile_schedule

        schedule = schedule_in(
            self._file, natural(self._row["schedule"]), self.inputs, self.outputs
        )
        found = None
        if self._declared is not None and self._row["elsewhere"] is not None:
            from satura.artifact.elsewhere import elsewhere_in

            found = elsewhere_in(
                self._file, self._row["elsewhere"], self._declared, tuple(self.outputs),
                self._threads, self._search,
            )  # fmt: skip
        return compile_schedule(schedule, self._threads, elsewhere=found)

    def _routine(
        self, row: Mapping[str, object], constants: list[Array], kernels: Set[int]
    ) -> tuple[Sizes, Routine]:
        """A routine whose launches have numbers of kernels for addresses."""
        sizes = {name: natural(size) for name, size in of(dict, row["sizes"]).items()}
        symbols = frozenset().union(*(type_.symbols for type_ in self.inputs.values()))
        types = self.inputs if sizes.keys() == symbols else self._declared or {}
        inputs = {name: type_.concrete(sizes) for name, type_ in types.items()}
        given = {name: of(list, each) for name, each in of(dict, row["outputs"]).items()}
        regions = {name: natural(region) for name, (region, _) in given.items()}
        outputs = {name: type_of(each) for name, (_, each) in given.items()}
        kinds = [
            {name: type_.dtype for name, type_ in each.items()} for each in (outputs, self.outputs)
        ]
        if kinds[0] != kinds[1] or any(type_.symbols for type_ in outputs.values()):
            raise ArtifactError("a routine has other outputs")
        numbers = self._file.section(natural(row["numbers"])).view(np.int64)
        places = self._file.section(natural(row["regions"])).view(np.int64)
        launches = tuple(Launch(*map(natural, launch)) for launch in of(list, row["launches"]))
        count = natural(row["constants"])
        routine = Routine(
            inputs,
            tuple(Output(name, outputs[name], regions[name]) for name in self.outputs),
            natural(row["computed"]),
            tuple(constants[:count]),
            launches,
            numbers,
            places,
            natural(row["arena"]),
            natural(row["scratch"]),
            self._threads,
        )
        last = routine.first_constant + len(routine.constants)
        computed = range(FIRST_TENSOR + len(inputs), routine.first_constant)
        inside = (
            len(numbers) == len(places)
            and all(FIRST_TENSOR <= output.region < last for output in routine.outputs)
            and (not len(places) or (places.min() >= 0 and places.max() < last))
            and sum(each in computed for each in {*regions.values()}) == routine.computed
            and all(each.kernel in kernels and each.width >= 1 for each in launches)
            and all(each.arguments < len(numbers) for each in launches)
            and all(one.arguments < two.arguments for one, two in pairwise(launches))
            and count <= len(constants)
        )
        if routine.arena + routine.scratch * self._threads > _MOST_BYTES:
            raise ArtifactError("a routine needs more memory than there is")
        if not inside:
            raise ArtifactError("a routine leaves its tables")
        return tuple(sorted(sizes.items())), routine


def open_artifact(path: str | Path, is_trusted: bool, search: SearchAgain) -> Opened:
    """The program in the file at `path`; `search` is for sizes that it excludes.

    Raises ArtifactError, or OSError where there is none.
    """
    return Opened(Container(path), is_trusted, search)


def _instances(routine: Routine, launches: tuple[Launch, ...], workspaces: Workspaces) -> Instances:
    """Instances of a routine with these launches."""
    return Instances(partial(Instance, routine._replace(launches=launches)), workspaces)


def _types(value: object) -> dict[str, TensorType]:
    return {of(str, name): type_of(row) for name, row in of(dict, value).items()}


def _value(
    name: object, dtype: object, shape: object, data: object
) -> tuple[str, str, tuple[int, ...], bytes]:
    """An array by name, as keys have it."""
    extents = tuple(map(natural, of(list, shape)))
    return of(str, name), of(str, dtype), extents, bytes.fromhex(of(str, data))


def _array(file: Container, row: object, section: object) -> Array:
    """A mapped array of the type that `row` is."""
    type_ = type_of(row)
    content = file.section(natural(section))
    shape = tuple(map(static, type_.shape))
    return content.view(type_.dtype.numpy).reshape(shape)


def _kernel(
    file: Container, symbol: object, externals: object, entry: object, section: object
) -> CompiledKernel:
    names = tuple(of(str, name) for name in of(list, externals))
    place = None if entry is None else natural(entry)
    code = bytes(file.section(natural(section)).data)
    if not code.startswith(_OBJECT) if place is None else place >= len(code):
        raise ArtifactError("a kernel has no code where it starts")
    return CompiledKernel(of(str, symbol), names, place, code)
