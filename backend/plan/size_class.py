"""Size classes: all sizes for which lowering decides the same.

A schedule with symbols is lowered on Sizes (see `backend.sizes`). What that decides are the facts
of a class; for sizes for which they hold, every number of a plan is the value of an expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.plan.lowered import (
    Lowered,
    Progress,
    lower_schedule,
    refuse_beyond_memory_of,
    refuse_large_results,
)
from satura.backend.plan.plan import Plan, plan_at
from satura.backend.plan.sized import Sized, Table
from satura.backend.sizes.size import Call, Fact, Trace, UntraceableError, expression_of, is_equal
from satura.rewrite.errors import CallError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, SymbolicDim, symbol
from satura.rewrite.types.tensor_type import TensorType

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class SizeClass:
    """A schedule as it is lowered for all sizes for which `facts` hold."""

    schedule: Schedule
    threads: int
    store: ConstantStore
    facts: tuple[Fact, ...]
    calls: Mapping[str, Call]
    lowered: Lowered
    is_traced: bool = True  # False for a class of one size each, see `size_class`

    def failing(self, sizes: Sizes) -> Fact | None:
        """The first fact that does not hold; None for sizes of this class."""
        return self.sized.failing(sizes)

    def plan(self, sizes: Sizes) -> Plan:
        """The plan for sizes of this class. Raises CallError where memory cannot hold it."""
        results, works, arena, words, scratch = self.sized.at(sizes)
        refuse_large_results(self.schedule, sizes, results + arena.size, CallError)
        return plan_at(
            self.lowered, self.schedule, sizes, arena, works, words, self.sized.table.regions,
            scratch, self.threads, self.store,
        )  # fmt: skip

    @cached_property
    def sized(self) -> Sized:
        """The numbers of its plans."""
        found = self.lowered
        table, dims = _table(found)
        plain = [found.results, *(step.work for step in found.steps)]
        plain += [buffer.size for buffer in found.buffers]
        scratch = dict.fromkeys(map(expression_of, found.scratch))
        return Sized(
            self.facts, self.calls, (*map(expression_of, plain), *scratch, *dims),
            len(found.steps), len(scratch), found.buffers, table,
        )  # fmt: skip


def _table(found: Lowered) -> tuple[Table, tuple[Dim, ...]]:
    """The words of the argument table, and the dims that are their values."""
    kinds: dict[Dim, int] = {}
    numbers: list[int] = []
    moving: list[tuple[int, int]] = []
    for place, word in enumerate(found.words):
        dim = expression_of(word.number)
        numbers.append(dim if isinstance(dim, int) else 0)
        if not isinstance(dim, int):
            moving.append((place, kinds.setdefault(dim, len(kinds))))
    order = {buffer.buffer: number for number, buffer in enumerate(found.buffers)}
    inside = [
        (place, order[word.buffer])
        for place, word in enumerate(found.words)
        if word.buffer is not None
    ]
    places, which = np.array(moving, np.int64).reshape(-1, 2).T
    in_arena, buffers = np.array(inside, np.int64).reshape(-1, 2).T
    regions = np.array([word.region for word in found.words], np.int64)
    table = Table(np.array(numbers, np.int64), regions, places, which, in_arena, buffers)
    return table, tuple(kinds)


def size_class(
    schedule: Schedule, sizes: Sizes, store: ConstantStore, threads: int,
    progress: Progress | None = None, merging: str = "cost",
    types: Mapping[str, TensorType] | None = None,
) -> SizeClass:  # fmt: skip
    """The class of `sizes`: the schedule is lowered, and its kernels are compiled.

    `types` are those of calls with these sizes, where the schedule has other ones for its inputs:
    these are as long as those in all of the class.

    Raises ProgramError for sizes that the program is not made for, CallError where memory cannot
    hold what they need.
    """
    concrete = schedule.concrete(sizes)
    refuse_beyond_memory_of(concrete, CallError)
    moving = {name: sizes[name] for name in sorted(schedule.program.symbols)}
    fixed = _as_long(schedule.program, types or {})
    trace = Trace(moving)
    try:
        found = lower_schedule(
            schedule.concrete(trace.symbols), store, threads, True, progress, merging
        )
        facts = (*dict.fromkeys((*fixed, *trace.facts.values())),)
        return SizeClass(schedule, threads, store, facts, trace.calls, found)
    except UntraceableError:
        found = lower_schedule(concrete, store, threads, True, progress, merging)
        facts = (*fixed, *(is_equal(symbol(name), size) for name, size in moving.items()))
        return SizeClass(schedule, threads, store, facts, {}, found, False)


def _as_long(program: Program, types: Mapping[str, TensorType]) -> list[Fact]:
    """That inputs have the extents that the program has for them; `types` are those of calls."""
    pairs = (
        pair
        for node in (program.nodes[index] for index in program.inputs)
        for pair in zip(types.get(node.input_name, node.type).shape, node.type.shape, strict=True)
    )
    return [is_equal(dim, own) for dim, own in pairs if isinstance(dim - own, SymbolicDim)]
