"""Compiled: a program ready to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from satura.backend.plan.compiled import CompiledSchedule, compile_schedule
from satura.backend.plan.measure import Measured
from satura.pipeline.calls import Runnable
from satura.pipeline.phases import Phases, Progress
from satura.pipeline.rewritten import Rewritten
from satura.rewrite.egraph.report import Report
from satura.rewrite.errors import CallError
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.program.arguments import as_arrays
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import representative, symbol
from satura.rewrite.types.tensor_type import TensorType

STATISTICS = (
    "dispatch-count", "executable-count", "fill-count", "copy-count", "host-count", "moved-bytes",
    "transient-memory-size", "constant-count", "constant-size", "flops", "redundant-flops",
)  # fmt: skip


class Compiled(Runnable):
    """A compiled program. It may be called from several threads at once."""

    _kernels: CompiledSchedule

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

    def measure(
        self, arguments: Mapping[str, object], rounds: int = 15, is_warm: bool = False
    ) -> Measured:
        """What one call launches, and how long each launch takes: the least of `rounds`.

        Where `is_warm`, the arguments are in the caches when a launch reads them.
        """
        return self._kernels.measure(as_arrays(arguments), rounds, is_warm)

    def save(
        self, path: str | Path, sizes: Mapping[str, int] | Iterable[Mapping[str, int]] = ()
    ) -> None:
        """Write this to a file for `satura.open`, which appears complete or not at all.

        Sizes of symbols that were called before are ready in it, and those of `sizes`; others are
        compiled when they come. Raises UnsupportedError where a node runs in Python.
        """
        from satura.artifact.save import save

        for each in [sizes] if isinstance(sizes, Mapping) else sizes:
            if set(each) != self.source.symbols:
                raise CallError(f"sizes are needed of {sorted(self.source.symbols)}, not {each}")
            self._kernels.prepare(each)
        save(Path(path), self.rewritten.schedule, self._kernels, self.inputs, self.outputs)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: kernels are machine code of this process."""
        raise CallError(
            "a Compiled cannot be pickled or copied: compiled.save(path), and satura.open(path) in"
            " the other process; threads can share one Compiled"
        )
