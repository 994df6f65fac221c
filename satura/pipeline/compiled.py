"""Compiled: a program ready to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from satura.backend.run.calls import REFUSALS, Runnable, refused
from satura.pipeline.ready import ReadyPart
from satura.pipeline.rewritten import Rewritten
from satura.rewrite.errors import CallError, advice, brief, file_errors
from satura.rewrite.program.arguments import (
    as_arrays,
    as_number,
    as_path,
    check_flags,
    with_members,
)
from satura.rewrite.types.size_condition import sizes_text

if TYPE_CHECKING:
    from satura.backend.plan.compiled import CompiledSchedule
    from satura.backend.plan.measure import Measured
    from satura.rewrite.egraph.report import Report
    from satura.rewrite.program.program import Program

STATISTICS = (
    "dispatch-count", "executable-count", "fill-count", "copy-count", "host-count", "moved-bytes",
    "transient-memory-size", "constant-count", "constant-size", "flops", "redundant-flops",
)  # fmt: skip


class Compiled(Runnable):
    """A compiled model. It may be called from several threads at once.

    Where inputs decide shapes, and where it has several `parts`, there is no single program: what
    one has (`program`, `statistics`, `report`) is asked of `for_values(...)`, or of a part.
    """

    _part: CompiledSchedule | ReadyPart

    def __init__(self, part: CompiledSchedule | ReadyPart) -> None:
        self._part = part

    @property
    def _whole(self) -> CompiledSchedule:
        """What was compiled in this process: now, where calls alone were ready."""
        part = self._part
        return part.whole if isinstance(part, ReadyPart) else part

    @property
    def parts(self) -> tuple[Compiled, ...]:
        """What is compiled, in the order in which it runs: before a node whose results have extents
        that only data decide, and after it where anything reads them, up to the next such node;
        mostly there is none, and this is all."""
        return tuple(part for part, _ in self._steps)

    @property
    def hosts(self) -> tuple[tuple[str, ...], ...]:
        """For each of the `parts` the nodes that run in Python behind it, before the next one."""
        return tuple(nodes for _, nodes in self._steps)

    @cached_property
    def _steps(self) -> list[tuple[Compiled, tuple[str, ...]]]:
        """The parts, each with the nodes behind it."""
        from satura.pipeline.chain import Chain

        for program in () if self.deciding else self._part.programs:
            if isinstance(program, Chain):
                before, *after = (Compiled(part)._steps for part in program.parts)
                last, nodes = before[-1]
                rest = [step for steps in after for step in steps]
                return [*before[:-1], (last, (*nodes, program.node)), *rest]
        return [(self, ())]

    def for_values(self, values: Mapping[str, object]) -> Compiled:
        """The program for these values of the inputs that decide shapes, without these inputs.

        Other inputs are left aside. Raises CallError where the value of one is missing.
        """
        whole = self._whole
        return Compiled(whole.for_values(as_arrays(with_members(values, whole.inputs))))

    @property
    def rewritten(self) -> Rewritten:
        """What the stages before the kernels made."""
        made = self._whole.plans.made
        assert isinstance(made, Rewritten)
        return made

    @property
    def phases(self) -> dict[str, float]:
        """The seconds that each stage took, in the order in which they ran: of a model whose file
        was compiled before those of `recall` alone."""
        return (
            dict(self._part.phases) if isinstance(self._part, ReadyPart) else self.rewritten.phases
        )

    @property
    def source(self) -> Program:
        """The program as it was loaded."""
        return self.rewritten.source

    @property
    def program(self) -> Program:
        """The program that was extracted and compiled."""
        program, source = self.rewritten.schedule.program, self.source
        if not source.taken and not source.labels:
            return program
        return replace(program, taken=source.taken, labels=source.labels)

    @property
    def report(self) -> Report:
        """What the rules did: matches, new e-nodes and seconds of each, and which were dropped."""
        return self.rewritten.report

    @property
    def is_remembered(self) -> bool:
        """Whether the rules did this in an earlier call, and not once more."""
        return isinstance(self._part, ReadyPart) or self.rewritten.is_remembered

    @cached_property
    def statistics(self) -> dict[str, int]:
        """Counts and sizes, see `satura stats`; symbolic sizes count as `dims` of `compile` say, or
        as 64 each, or where the model does not run then as others at which it does.

        Raises CallError where none are found.
        """
        from satura.rewrite.extract.statistics import statistics

        measured = self._typical[1]
        schedule = self.rewritten.schedule.concrete(self.rewritten.typical)
        known = statistics(schedule) | measured
        return {key: known.get(key, 0) for key in STATISTICS}

    @property
    def executables(self) -> dict[str, int]:
        """The distinct kernels by name, and how many dispatches each of them runs."""
        return dict(self._typical[0])

    @cached_property
    def _typical(self) -> tuple[dict[str, int], dict[str, int]]:
        """The executables, and what is measured, of the plan for typical sizes."""
        sizes = self.rewritten.typical
        try:
            plan, store = self._whole.plans.looked_at(sizes)
        except REFUSALS as error:
            typical = advice("satura.compile(model, dims={'batch': 1})", "--dim batch=1")
            raise CallError(
                f"the model does not run where {sizes_text(sizes)}, and no sizes were found at"
                f" which it does: give typical ones, as in {typical}: {error}"
            ) from error
        kernels = {kernel.name: kernel.dispatches for kernel in plan.executables}
        return kernels, {
            "executable-count": len(kernels),
            "transient-memory-size": plan.arena.size,
            "constant-count": store.count,
            "constant-size": store.size,
        }

    def measure(
        self, arguments: Mapping[str, object], rounds: int = 15, is_warm: bool = False
    ) -> Measured:
        """What one call launches, and how long each launch takes: the least of `rounds`.

        Where `is_warm`, the tensors of a launch are in the caches before it. Raises CallError
        as `run` does, and where Python runs between several `parts`.
        """
        count = as_number(rounds)
        if count is None or count < 1:
            raise CallError(f"rounds is {brief(rounds)}, but must be a number from 1 on")
        named = with_members(arguments, self.inputs) if self._has_sequences else arguments
        try:
            return self._whole.measure(as_arrays(named), count, is_warm)
        except REFUSALS as error:
            raise refused(error) from error

    def save(
        self, path: str | Path, sizes: Mapping[str, int] | Iterable[Mapping[str, int]] = (),
        with_model: bool = True,
    ) -> None:  # fmt: skip
        """Write this to a file for `satura.open`, which appears complete or not at all.

        Sizes of symbols that were called or prepared before are ready in it, and those of `sizes`,
        with all others of their classes, see `cache`; the first call of further ones waits until
        they are compiled, with `dims` too. Some take a search of their own: for it the file has the
        model, and the names of satura's own rules that were chosen; not so `with_model` False,
        where such sizes are refused. Sizes at which Python takes the steps or a branch of a node
        here are not ready in it: a saved program compiles all steps, and both branches. Raises
        UnsupportedError where a node runs in Python, FileError where the file cannot be written,
        and CallError where it is there and is not a saved program: the model, say.
        """
        from satura.artifact.save import save

        check_flags(with_model=with_model)
        self.prepare(sizes)
        with file_errors("write", path):
            save(as_path(path), self._whole, with_model)
