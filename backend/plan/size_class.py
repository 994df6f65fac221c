"""Size classes: all sizes for which lowering decides the same.

A schedule with symbols is lowered on Sizes (see `backend.sizes`). What that decides are the facts
of a class; for sizes for which they hold, every number of a plan is the value of an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from satura.backend.constants import ConstantStore
from satura.backend.plan.buffers import Packing
from satura.backend.plan.lowered import (
    Lowered,
    Progress,
    lower_schedule,
    refuse_beyond_memory_of,
    refuse_large_results,
)
from satura.backend.plan.plan import Plan, plan_at
from satura.backend.sizes.evaluation import facts_function, values_function
from satura.backend.sizes.size import Call, Fact, Trace, UntraceableError, expression_of, is_equal
from satura.rewrite.errors import CallError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.types.dims import Dim, symbol

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
        number = self._first_failing(sizes)
        return None if number < 0 else self.facts[number]

    def plan(self, sizes: Sizes) -> Plan:
        """The plan for sizes of this class. Raises CallError where memory cannot hold it."""
        steps, buffers = self.lowered.steps, self.lowered.buffers
        results, *values = self._values(sizes)
        works, values = values[: len(steps)], values[len(steps) :]
        lengths, values = values[: len(buffers)], values[len(buffers) :]
        scratch, values = values[: self._scratches], values[self._scratches :]
        arena = self._packing.arena(lengths)
        refuse_large_results(self.schedule, sizes, results + arena.size, CallError)
        table = self._table
        numbers = table.numbers.copy()
        numbers[table.places] = np.array(values, np.int64)[table.which]
        offsets = np.fromiter(arena.offsets.values(), np.int64)
        numbers[table.in_arena] += offsets[table.buffers]
        return plan_at(
            self.lowered, self.schedule, sizes, arena, works, numbers, table.regions,
            max(scratch, default=0), self.threads, self.store,
        )  # fmt: skip

    @cached_property
    def _first_failing(self) -> Callable[[Sizes], int]:
        return facts_function(self.facts, self.calls)

    @cached_property
    def _packing(self) -> Packing:
        return Packing(self.lowered.buffers)

    @cached_property
    def _scratches(self) -> int:
        return len(set(map(expression_of, self.lowered.scratch)))

    @cached_property
    def _values(self) -> Callable[[Sizes], tuple[int, ...]]:
        """Bytes of the results, work per step, bytes per buffer, kinds of scratch, numbers."""
        found = self.lowered
        plain = [found.results, *(step.work for step in found.steps)]
        plain += [buffer.size for buffer in found.buffers]
        dims = [*map(expression_of, plain), *dict.fromkeys(map(expression_of, found.scratch))]
        return values_function([*dims, *self._table.dims], self.calls)

    @cached_property
    def _table(self) -> _Table:
        return _table(self.lowered)


@dataclass(frozen=True)
class _Table:
    """Words of the argument table: `numbers`, of which those at `places` are the values of `dims`
    number `which`; those at `in_arena` start where the buffers of these numbers are."""

    numbers: NDArray[np.int64]
    regions: NDArray[np.int64]
    places: NDArray[np.intp]
    which: NDArray[np.intp]
    dims: tuple[Dim, ...]
    in_arena: NDArray[np.intp]
    buffers: NDArray[np.intp]


def _table(found: Lowered) -> _Table:
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
    places, which = np.array(moving, np.intp).reshape(-1, 2).T
    in_arena, buffers = np.array(inside, np.intp).reshape(-1, 2).T
    regions = np.array([word.region for word in found.words], np.int64)
    return _Table(
        np.array(numbers, np.int64), regions, places, which, tuple(kinds), in_arena, buffers
    )


def size_class(
    schedule: Schedule, sizes: Sizes, store: ConstantStore, threads: int,
    progress: Progress | None = None, merging: str = "cost",
) -> SizeClass:  # fmt: skip
    """The class of `sizes`: the schedule is lowered, and its kernels are compiled.

    Raises ProgramError for sizes that the program is not made for, CallError where memory cannot
    hold what they need.
    """
    concrete = schedule.concrete(sizes)
    refuse_beyond_memory_of(concrete, CallError)
    trace = Trace(sizes)
    try:
        found = lower_schedule(
            schedule.concrete(trace.symbols), store, threads, True, progress, merging
        )
        return SizeClass(schedule, threads, store, tuple(trace.facts.values()), trace.calls, found)
    except UntraceableError:
        found = lower_schedule(concrete, store, threads, True, progress, merging)
        facts = tuple(is_equal(symbol(name), size) for name, size in sizes.items())
        return SizeClass(schedule, threads, store, facts, {}, found, False)
