"""Compiled: a program ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from satura.backend.plan.compiled import compile_schedule
from satura.phases import Phases, Progress
from satura.rewrite.egraph.report import Report
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.program.interpreter import as_arrays
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import representative, symbol
from satura.rewrite.types.tensor_type import Array, TensorType
from satura.rewritten import Rewritten

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

    def run(self, arguments: Mapping[str, object]) -> dict[str, Array]:
        """Outputs by name for arguments by name; arguments are left as they are.

        Raises CallError for a missing or unknown name, a wrong dtype, rank or extent, and for
        sizes that the program is not made for, such as a sequence longer than its table.
        """
        arrays = as_arrays(arguments)
        try:
            return self._kernels.run(arrays)
        except ProgramError as error:
            raise CallError(f"the program does not run at these sizes: {error}") from None

    def __call__(self, *arguments: object, **named: object) -> Array | tuple[Array, ...]:
        """Call by position, by keyword, or mixed: the output's array, or a tuple of several."""
        names = list(self.inputs)
        if len(arguments) > len(names):
            raise CallError(f"{len(arguments)} arguments for the {len(names)} inputs {names}")
        given = dict(zip(names, arguments, strict=False))
        twice = [name for name in named if name in given]
        if twice:
            raise CallError(f"input {twice[0]!r} is given by position and by name")
        results = self.run({**given, **named})
        arrays = tuple(results[name] for name in self.outputs)
        return arrays[0] if len(arrays) == 1 else arrays
