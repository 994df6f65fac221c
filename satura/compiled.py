"""Compiled: a program ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from satura.backend import compile as compile_schedule
from satura.pipeline import Phases, Rewritten
from satura.rewrite.errors import CallError
from satura.rewrite.ir import Program
from satura.rewrite.types import Array, TensorType

if TYPE_CHECKING:
    from satura.api import Progress


class Compiled:
    """A compiled program. It may be called from several threads at once."""

    def __init__(
        self, rewritten: Rewritten, threads: int | None, progress: Progress | None = None
    ) -> None:
        self.rewritten = rewritten
        phases = Phases(progress, dict(rewritten.phases))
        with phases.phase("kernels"):
            self._executable = compile_schedule(rewritten.schedule, threads)
        self.phases = phases.seconds

    @property
    def source(self) -> Program:
        """The program as it was loaded."""
        return self.rewritten.source

    @property
    def program(self) -> Program:
        """The program that was extracted and compiled."""
        return self.rewritten.schedule.program

    @cached_property
    def inputs(self) -> dict[str, TensorType]:
        """Types of the inputs by name, in call order."""
        nodes = self.source.nodes
        return {nodes[i].input_name: nodes[i].type for i in self.source.inputs}

    @cached_property
    def outputs(self) -> dict[str, TensorType]:
        """Types of the outputs by name."""
        return {name: self.source.nodes[i].type for name, i in self.source.outputs}

    def run(self, arguments: Mapping[str, object]) -> dict[str, Array]:
        """Outputs by name for arguments by name; arguments are left as they are.

        Raises CallError for a missing or unknown name, a wrong dtype, rank or extent.
        """
        arrays = {name: np.asarray(value) for name, value in arguments.items()}
        return self._executable.run(arrays)

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
