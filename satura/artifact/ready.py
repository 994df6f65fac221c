"""The half of a saved program that is ready to run: it is mapped, and never copied.

Its tables are addresses and its code is code: who loads it has seen that it can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from satura.artifact.container import Container, natural, of
from satura.artifact.sums import SUMS, by_kernel
from satura.artifact.tables import are_inside
from satura.artifact.types import type_of
from satura.backend.cores import usable_threads
from satura.backend.jit.kernel import CompiledKernel
from satura.backend.jit.machine_code import load_all
from satura.backend.run import pool
from satura.backend.run.instances import Instances
from satura.backend.run.part import Part, Planned, Program, ShownTypes
from satura.backend.run.routine import FIRST_TENSOR, Instance, Launch, Output, Routine
from satura.backend.run.signatures import Sizes
from satura.backend.run.workspace import Workspaces
from satura.rewrite.errors import ArtifactError, CallError, ProgramError
from satura.rewrite.types.dims import static
from satura.rewrite.types.sequence_type import are_alike
from satura.rewrite.types.shown import shown as value_text
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes

if TYPE_CHECKING:
    from satura.artifact.classes import ReadyClass
    from satura.backend.plan.compiled import CompiledSchedule
    from satura.backend.run.class_report import ClassReport

_MOST_THREADS = 1 << 10
_MOST_BYTES = 1 << 46
_OBJECT = b"\x7fELF"  # what LLVM loads begins so

Row = dict[str, object]


def programs_in(
    file: Container, compiled: Callable[[ReadyProgram], CompiledSchedule]
) -> list[ReadyProgram]:
    """The programs of a file, which run nothing yet; `compiled` makes what a file is not ready for.

    Raises ArtifactError and others where the file is damaged.
    """
    threads = natural(file.header.get("threads"))
    if not 1 <= threads <= _MOST_THREADS:
        raise ArtifactError(f"{threads} threads are out of range")
    rows = [of(dict, row) for row in of(list, file.header["programs"])]
    return [ReadyProgram(file, row, min(threads, usable_threads()), compiled) for row in rows]


def part_of(file: Container, programs: Sequence[ReadyProgram]) -> Part:
    """What runs the programs of a file: the only one, or that for the values of each call."""
    deciding = frozenset(of(str, name) for name in of(list, file.header["deciding"]))

    def search(arguments: Mapping[str, Array], names: frozenset[str]) -> ReadyProgram:
        shown = ", ".join(f"{name}={value_text(arguments[name])}" for name in sorted(names))
        raise CallError(
            f"{file.path} has no program for {shown}, but for {len(programs)} other values: keep"
            " the model, and save it compiled for these too, see for_values"
        )

    bound = [{name for name, *_ in each.values} for each in programs]
    if not bound or any(not names <= deciding or (deciding and not names) for names in bound):
        raise ArtifactError("its programs are for values of other inputs than it says")
    types = types_of(file.header["inputs"])
    if not deciding <= types.keys():
        raise ArtifactError("its programs are for values of what is no input")
    return Part(programs[0].threads, programs, deciding, search, types)


def load(file: Container, programs: Sequence[ReadyProgram]) -> None:
    """Take the routines of a file, all of it checked before the first code is loaded; but for the
    code that checks the weights.
    """
    rows = of(list, file.header["kernels"])
    kernels = [_kernel(file, *of(list, row)) for row in rows]
    for kernel in kernels:
        if kernel.symbol == SUMS.symbol:
            file.sums = by_kernel(kernel)
    called = {name for kernel in kernels for name in kernel.externals}
    called |= {source.symbol for source in (*pool.SOURCES, SUMS)}  # take other arguments
    launched = {at for at, kernel in enumerate(kernels) if kernel.symbol not in called}
    checked = [(program, program.routines(launched)) for program in programs]
    addresses = load_all(kernels)
    for program, routines in checked:
        program.take(routines, addresses, launched)


class ReadyProgram(Program):
    """Runs the routines of one program, and for other sizes what is compiled of its schedule."""

    def __init__(
        self, file: Container, row: Row, threads: int,
        compiled: Callable[[ReadyProgram], CompiledSchedule],
    ) -> None:  # fmt: skip
        declared = None if row["declared"] is None else types_of(row["declared"])
        values = tuple(_value(*of(list, each)) for each in of(list, row["values"]))
        types = types_of(row["inputs"]), types_of(row["outputs"])
        rows = [] if row["shown"] is None else of(list, row["shown"])
        shown = _alike(types, *map(types_of, rows)) if rows else None
        super().__init__(values, *types, declared, shown)
        self.file, self.row, self.threads, self._compile = file, row, threads, compiled
        self._ready: dict[Sizes, Instances] = {}
        self._loaded: tuple[Sequence[int], Set[int]] | None = None

    def _made(self, sizes: Sizes, progress: object = None) -> Planned:
        ready = self._ready.get(sizes)
        if ready is not None:
            return Planned(ready.run, ready.bind)
        given = dict(sizes)
        for report, found in self._classes:
            if found.first.keys() == given.keys() and found.sized.failing(given) is None:
                types = self.types_at(given)
                routine = found.routine(given, types, self.outputs, self.threads)
                report.plans += 1
                report.uses += 1
                ready = _instances(routine, routine.launches, self.workspaces)
                return Planned(ready.run, ready.bind, routine.table_bytes, report)
        if self.row.get("elsewhere", "kept") is None and given.keys() != self.symbols:
            raise CallError(
                f"{self.file.path} has no kernels for the sizes {given}, and no model to make them"
                f" of: save it with the model, or with sizes=[{given}]"
            )
        try:
            return self._compiled.plans.planned(sizes)
        except ImportError as error:
            raise CallError(
                f"{self.file.path} has no kernels for the sizes {given}, and '{error.name}', which"
                f" making them takes, cannot be imported: install it, or save with sizes=[{given}]"
            ) from None

    @cached_property
    def _classes(self) -> list[tuple[ClassReport, ReadyClass]]:
        """The classes of sizes that the file has, if its kernels are used."""
        rows = of(list, self.row["classes"]) if self._loaded is not None else []
        if not rows:
            return []
        from satura.artifact.classes import ReadyClass
        from satura.backend.run.class_report import ClassReport

        assert self._loaded is not None
        shared = (*self._loaded, self._constants, len(self.inputs))
        try:
            found = [ReadyClass(self.file, of(dict, row), *shared) for row in rows]
            if any(self._differs(each) for each in found):
                raise ArtifactError("a class of sizes has other inputs or outputs")
        except (ArtifactError, ProgramError, ValueError, KeyError, TypeError) as error:
            if str(self.file.path) in str(error):
                raise
            raise ArtifactError(f"{self.file.path} is damaged: {error}; save it again") from error
        return [
            (
                ClassReport(each.first, tuple(map(str, each.sized.facts)), each.missed, 0, 0, {}),
                each,
            )
            for each in found
        ]

    def _differs(self, found: ReadyClass) -> bool:
        """Whether a class is of other inputs or outputs than the program."""
        types = self.outputs.values() if found.types is None else found.types
        symbols = open_sizes(self.types_at(found.first).values())
        return (
            len(found.outputs) != len(self.outputs)
            or [each.dtype for each in types] != [each.dtype for each in self.outputs.values()]
            or found.first.keys() != symbols
            or not open_sizes(types) <= symbols
        )

    def check(self) -> None:
        """Raise ArtifactError and others where a saved file lacks what is read later."""
        _ = self.saved_sizes, self.row["elsewhere"], natural(self.row["schedule"])

    @property
    def saved_sizes(self) -> list[dict[str, int]]:
        """The sizes that the file has of its symbols, first those that calls came with."""
        return [sizes for sizes in self.every_size if sizes.keys() == self.symbols]

    @property
    def every_size(self) -> list[dict[str, int]]:
        """As `saved_sizes`, and those of calls of which the program takes some sizes for equal."""
        rows = [(each, "sizes") for each in of(list, self.row["routines"])]
        rows += [(each, "first") for each in of(list, self.row["classes"])]
        every = (of(dict, of(dict, row)[key]) for row, key in rows)
        return [
            {of(str, name): natural(size) for name, size in sizes.items()}
            for sizes in every
            if frozenset(sizes) in self.sizes
        ]

    @property
    def first_sizes(self) -> list[Sizes]:
        """The sizes that each class was made for."""
        return [tuple(sorted(found.first.items())) for _, found in self._classes]

    @cached_property
    def _constants(self) -> list[Array]:
        return [_array(self.file, *of(list, each)) for each in of(list, self.row["constants"])]

    def routines(self, kernels: Set[int]) -> list[tuple[Sizes, Routine]]:
        """Its routines, checked, with numbers of `kernels` for addresses."""
        rows = of(list, self.row["routines"])
        return [self._routine(of(dict, row), self._constants, kernels) for row in rows]

    def take(
        self, routines: list[tuple[Sizes, Routine]], addresses: Sequence[int], kernels: Set[int]
    ) -> None:
        """Run these routines, and the classes, by `kernels` at these addresses."""
        self._loaded = addresses, kernels
        for sizes, routine in routines:
            launches = tuple(
                Launch(addresses[launch.kernel], launch.arguments, launch.width)
                for launch in routine.launches
            )
            self._ready[sizes] = _instances(routine, launches, self.workspaces)

    @cached_property
    def _compiled(self) -> CompiledSchedule:
        """What is compiled now, for sizes that are not ready."""
        return self._compile(self)

    def _routine(
        self, row: Mapping[str, object], constants: list[Array], kernels: Set[int]
    ) -> tuple[Sizes, Routine]:
        """A routine whose launches have numbers of kernels for addresses."""
        sizes = {name: natural(size) for name, size in of(dict, row["sizes"]).items()}
        inputs = {name: type_.concrete(sizes) for name, type_ in self.types_at(sizes).items()}
        given = {name: of(list, each) for name, each in of(dict, row["outputs"]).items()}
        regions = {name: natural(region) for name, (region, _) in given.items()}
        outputs = {name: type_of(each) for name, (_, each) in given.items()}
        if not are_alike(outputs, self.outputs) or any(each.symbols for each in outputs.values()):
            raise ArtifactError("a routine has other outputs")
        numbers = self.file.section(natural(row["numbers"])).view(np.int64)
        places = self.file.section(natural(row["regions"])).view(np.int64)
        launches = tuple(Launch(*map(natural, launch)) for launch in of(list, row["launches"]))
        count = natural(row["constants"])
        routine = Routine(
            inputs,
            tuple(Output(name, type_, regions[name]) for name, type_ in outputs.items()),
            natural(row["computed"]),
            tuple(constants[:count]),
            launches,
            lambda: numbers,
            places,
            natural(row["arena"]),
            natural(row["scratch"]),
            self.threads,
        )
        last = routine.first_constant + len(routine.constants)
        computed = range(FIRST_TENSOR + len(inputs), routine.first_constant)
        inside = (
            are_inside(
                len(numbers), places, last, regions.values(),
                [each[:2] for each in launches], kernels,
            )
            and sum(each in computed for each in {*regions.values()}) == routine.computed
            and all(each.width >= 1 for each in launches)
            and count <= len(constants)
        )  # fmt: skip
        if routine.arena + routine.scratch * self.threads > _MOST_BYTES:
            raise ArtifactError("a routine needs more memory than there is")
        if not inside:
            raise ArtifactError("a routine leaves its tables")
        return tuple(sorted(sizes.items())), routine


def _instances(routine: Routine, launches: tuple[Launch, ...], workspaces: Workspaces) -> Instances:
    """Instances of a routine with these launches."""
    return Instances(partial(Instance, routine._replace(launches=launches)), workspaces)


def types_of(value: object) -> dict[str, TensorType]:
    """Types by name, as a header has them."""
    return {of(str, name): type_of(row) for name, row in of(dict, value).items()}


def _alike(types: ShownTypes, *shown: Mapping[str, TensorType]) -> ShownTypes:
    """Types that are shown. Raises ArtifactError where they are not of what has `types`."""
    inputs, outputs = shown
    kinds = [
        [(name, type_.dtype, type_.rank) for each in pair for name, type_ in each.items()]
        for pair in (types, shown)
    ]
    if kinds[0] != kinds[1]:
        raise ArtifactError("its inputs and outputs are not those that it shows")
    return inputs, outputs


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
