"""The options of commands that compile a model, and the compilation that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import satura
from satura.commands.rule_files import with_files
from satura.pipeline.compiled import Compiled
from satura.pipeline.inputs import refuse_twice
from satura.pipeline.models import Model
from satura.pipeline.phases import Progress
from satura.pipeline.rule_sets import Rules
from satura.pipeline.sizes import Dims, parse_dims
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.errors import CallError


@dataclass(frozen=True)
class Compiling:
    """How a model is to be compiled: what `satura.compile` takes beside it."""

    rules: Rules = "default"
    threads: int | None = None
    precision: str = "fp32"
    cost: str = "default"
    dims: Dims = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    executables: str = "cost"
    inputs: tuple[str, ...] = ()

    def compile(self, model: Model, progress: Progress, verify: bool = False) -> Compiled:
        """`model` compiled in this way."""
        return satura.compile(
            model, self.threads, self.precision, self.rules, verify, progress,
            dims=self.dims, cost=self.cost, limits=self.limits, executables=self.executables,
            inputs=self.inputs,
        )  # fmt: skip


def compiling(
    rules: str,
    files: Sequence[Path] | None,
    threads: int | None,
    precision: str = "fp32",
    cost: str = "default",
    dims: Sequence[str] | None = None,
    limits: str = "",
    executables: str = "cost",
    inputs: Sequence[str] | None = None,
) -> Compiling:
    """What options say, as they are written. Raises CallError for one that says nothing."""
    return Compiling(
        with_files(rules, files or []), threads, precision, cost, parse_dims(dims or []),
        parse_limits(limits), executables, tuple(inputs or []),
    )  # fmt: skip


def parse_limits(text: str) -> Limits:
    """Limits that are written as `nodes=2000,rounds=4`; those not named are the usual ones.

    Raises CallError for an unknown name, and for what is not a number.
    """
    names = [each.name for each in fields(Limits)]
    changes: dict[str, int] = {}
    for part in text.split(",") if text else []:
        name, _, value = part.partition("=")
        if name not in names:
            raise CallError(f"there is no limit {name!r}; choose from {names}")
        if not value.removeprefix("-").isdecimal():
            raise CallError(f"the limit {part!r} is not a name, '=' and a number")
        if value.startswith("-"):
            raise CallError(f"the limit {name} is {value}, but must not be negative")
        refuse_twice("limit", name, changes)
        changes[name] = int(value)
    return Limits(**changes)
