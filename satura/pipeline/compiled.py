"""Compiled: a program ready to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NoReturn

import numpy as np

from satura.backend.plan.bound import Bound
from satura.backend.plan.compiled import compile_schedule
from satura.backend.plan.measure import Measured
from satura.backend.plan.plans import ClassReport
from satura.pipeline.phases import Phases, Progress
from satura.pipeline.rewritten import Rewritten
from satura.rewrite.egraph.report import Report
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.program.interpreter import as_arrays
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import representative, symbol
from satura.rewrite.types.tensor_type import Array, TensorType

STATISTICS = (
    "dispatch-count", "executable-count", "fill-count", "copy-count", "host-count", "moved-bytes",
    "transient-memory-size", "constant-count", "constant-size", "flops", "redundant-flops",
)  # fmt: skip


class Compiled:
    """A compiled program. It may be called from several threads at once."""

    def __init__(
        self, rewritten: Rewritten, threads: int | None, progress: Progress | None = None
    ) -> None:
        self.rewritten = rewritten
        phases = Phases(progress, dict(rewritten.phases))
        with phases.phase("kernels"):
            self._kernels = compile_schedule(rewritten.schedule, threads, progress)
        self.phases = phases.seconds

    @property
    def source(self) -> Program:
        """The program as it was loaded."""
        return self.rewritten.source

    @property
    def program(self) -> Program:
        """The program that was extracted and compiled."""
        return self.rewritten.schedule.program

    @property
    def report(self) -> Report:
        """What the rules did: matches, new e-nodes and seconds of each, and which were dropped."""
        return self.rewritten.report

    @property
    def is_remembered(self) -> bool:
        """Whether the rules did this in an earlier call, and not once more."""
        return self.rewritten.is_remembered

    @cached_property
    def inputs(self) -> dict[str, TensorType]:
        """Types of the inputs by name, in call order."""
        nodes = self.source.nodes
        return {nodes[i].input_name: nodes[i].type for i in self.source.inputs}

    @cached_property
    def outputs(self) -> dict[str, TensorType]:
        """Types of the outputs by name."""
        return {name: self.source.nodes[i].type for name, i in self.source.outputs}

    @property
    def threads(self) -> int:
        """How many threads a call runs on."""
        return self._kernels.threads

    @cached_property
    def statistics(self) -> dict[str, int]:
        """Counts and sizes, see `satura stats`; symbolic sizes count as 64 each."""
        counted = statistics(self.rewritten.schedule)
        measured = {
            "executable-count": len(self.executables),
            "transient-memory-size": self._kernels.transient_memory_size(self._typical),
            "constant-count": self._kernels.constant_count,
            "constant-size": self._kernels.constant_size,
        }
        return {key: measured.get(key, counted.get(key, 0)) for key in STATISTICS}

    @cached_property
    def executables(self) -> dict[str, int]:
        """The distinct kernels by name, and how many dispatches each of them runs."""
        kernels = self._kernels.executables(self._typical)
        return {kernel.name: kernel.dispatches for kernel in kernels}

    @property
    def _typical(self) -> dict[str, int]:
        return {name: representative(symbol(name)) for name in sorted(self.source.symbols)}

    def prepare(self, sizes: Iterable[Mapping[str, int]] = ()) -> None:
        """Make ready for calls of these sizes, each a size for every symbol: their first calls
        then wait for no kernel. Raises CallError for sizes that the program is not made for.
        """
        symbols = self.program.symbols
        for each in sizes:
            if each.keys() != symbols:
                raise CallError(f"prepare needs a size for each of {sorted(symbols)}, got {each}")
            if not all(type(size) is int and size >= 0 for size in each.values()):
                raise CallError(f"prepare: sizes are whole numbers and not negative, got {each}")
            try:
                self._kernels.prepare(each)
            except ProgramError as error:
                raise CallError(f"the program does not run at {each}: {error}") from None

    @property
    def cache(self) -> tuple[ClassReport, ...]:
        """The classes of sizes that calls came with so far, the one last met by new sizes first.

        For all sizes of a class the same kernels serve, and nothing is compiled. Each says which
        facts make a class, how often it was met, and what kept its first sizes from another one.
        """
        return self._kernels.classes

    def release(self) -> None:
        """Give back memory that no call uses at the moment; later calls take what they need."""
        self._kernels.release()

    def measure(
        self, arguments: Mapping[str, object], rounds: int = 15, is_warm: bool = False
    ) -> Measured:
        """What one call launches, and how long each launch takes: the least of `rounds`.

        Where `is_warm`, the arguments are in the caches when a launch reads them.
        """
        return self._kernels.measure(as_arrays(arguments), rounds, is_warm)

    def __repr__(self) -> str:
        inputs, outputs = (
            ", ".join(f"{name}: {type_}" for name, type_ in types.items())
            for types in (self.inputs, self.outputs)
        )
        return f"<satura.Compiled ({inputs}) -> ({outputs}), threads={self.threads}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: kernels are machine code of this process."""
        raise CallError(
            "a Compiled cannot be pickled or copied: satura.save(compiled.program, path), and"
            " satura.compile(path, rules='none') in the other process, where kernels come from the"
            " cache; threads can share one Compiled"
        )

    def run(
        self, arguments: Mapping[str, object] | Sequence[object] | Array = (), *more: object,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """Outputs by name, for a dict of arguments by name, or for arguments in the order of
        `inputs`, one by one or in a list; arguments are left as they are.

        Outputs that `out` names are written to its arrays, the others to new ones. Raises CallError
        for a missing or unknown name, a wrong dtype, rank or extent, for sizes that the program is
        not made for, such as a sequence longer than its table, and for arrays of `out` that do not
        fit, are not contiguous, or share memory with an input or another output.
        """
        arrays = as_arrays(self._named(arguments, more))
        try:
            return self._kernels.run(arrays, out)
        except ProgramError as error:
            raise CallError(f"the program does not run at these sizes: {error}") from None

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """A call on these arrays, checked once: `bound()` reads what they hold at that moment and
        gives the outputs by name, always in the same arrays, those of `out` where it names them.

        Calls of it cost microseconds. Raises CallError as `run` does, and for what is not a
        contiguous NumPy array.
        """
        for name, array in arguments.items():
            if not isinstance(array, np.ndarray):
                raise CallError(f"input {name!r} must be a NumPy array to be bound")
        try:
            return self._kernels.bind(arguments, out)
        except ProgramError as error:
            raise CallError(f"the program does not run at these sizes: {error}") from None

    def __call__(self, *arguments: object, **named: object) -> Array | tuple[Array, ...]:
        """Call by position, by keyword, or mixed: the output's array, or a tuple of several."""
        results = self.run(self._mixed(arguments, named))
        arrays = tuple(results[name] for name in self.outputs)
        return arrays[0] if len(arrays) == 1 else arrays

    def _mixed(
        self, arguments: tuple[object, ...], named: Mapping[str, object]
    ) -> dict[str, object]:
        """What a call was given by position and by name, all by name."""
        given = self._in_order(arguments)
        twice = [name for name in named if name in given]
        if twice:
            raise CallError(f"input {twice[0]!r} is given by position and by name")
        return {**given, **named}

    def _named(self, arguments: object, more: tuple[object, ...]) -> Mapping[str, object]:
        """What `run` was given, by name."""
        if isinstance(arguments, Mapping):
            if more:
                raise CallError("run takes one dict of arguments, or arguments by position")
            return arguments
        if isinstance(arguments, list | tuple) and not more:
            return self._in_order(arguments)
        return self._in_order((arguments, *more))

    def _in_order(self, arguments: Sequence[object]) -> dict[str, object]:
        names = list(self.inputs)
        if len(arguments) > len(names):
            raise CallError(f"{len(arguments)} arguments for the {len(names)} inputs {names}")
        return dict(zip(names, arguments, strict=False))
