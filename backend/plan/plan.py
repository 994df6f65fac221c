"""Plans: what has to be decided once per sizes, with what it was decided from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from satura.backend.constants import ConstantStore
from satura.backend.plan.buffers import Arena, plan_arena
from satura.backend.plan.executables import Executable
from satura.backend.plan.lowered import Lowered, Progress, lower_schedule, refuse_beyond_memory_of
from satura.backend.plan.sized import as_words
from satura.backend.run.routine import SMALL_WORK, Instance, Output, Routine
from satura.backend.run.workspace import Workspace
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.program.interpreter import host_results
from satura.rewrite.types.attributes import Count
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array


@dataclass(frozen=True)
class Plan:
    """A routine, and the schedule that it runs when symbols have their sizes in `sizes`.

    `order` are the numbers of the dispatches that do something: launches of the routine and host
    calls. `places` are the regions of inputs and outputs by node.
    """

    schedule: Schedule
    sizes: Mapping[str, int]
    arena: Arena
    places: Mapping[int, int]
    order: tuple[int, ...]
    executables: tuple[Executable, ...]
    routine: Routine

    @cached_property
    def concrete(self) -> Schedule:
        """The schedule at `sizes`."""
        return self.schedule.concrete(self.sizes)

    @property
    def launched(self) -> tuple[int, ...]:
        """The number of the dispatch of each launch."""
        return tuple(number for number in self.order if not self.is_host(number))

    def is_host(self, number: int) -> bool:
        """Whether a dispatch is a host call."""
        return self.schedule.dispatches[number].form is Form.HOST

    def instance(self, workspace: Workspace | None = None) -> Instance:
        """What runs one call at a time, in `workspace` or in memory of its own."""
        workspace = workspace or Workspace()
        if any(map(self.is_host, self.order)):
            return HostedInstance(self, workspace)
        return Instance(self.routine, workspace)


def make_plan(
    schedule: Schedule, store: ConstantStore, threads: int, any_sizes: bool,
    progress: Progress | None = None, merging: str = "cost",
) -> Plan:  # fmt: skip
    """The plan of a schedule with concrete sizes; compiles what is not compiled yet.

    `any_sizes` says that kernels should serve other sizes too. Raises CallError, or without
    `any_sizes` ModelError, where memory cannot hold the results and the arena.
    """
    refuse_beyond_memory_of(schedule, CallError if any_sizes else ModelError)
    found = lower_schedule(schedule, store, threads, any_sizes, progress, merging)
    arena = plan_arena(found.buffers)
    starts = (0 if word.buffer is None else arena.offsets[word.buffer] for word in found.words)
    words = zip(found.words, starts, strict=True)
    numbers = as_words(word.number + start for word, start in words)
    regions = [word.region for word in found.words]
    return plan_at(
        found, schedule, {}, arena, [step.work for step in found.steps],
        lambda: numbers, np.array(regions, np.int64),
        max(found.scratch, default=0), threads, store,
    )  # fmt: skip


def plan_at(
    found: Lowered, schedule: Schedule, sizes: Mapping[str, int], arena: Arena,
    works: Sequence[int], numbers: Callable[[], NDArray[np.int64]], regions: NDArray[np.int64],
    scratch: int, threads: int, store: ConstantStore,
) -> Plan:  # fmt: skip
    """The plan of what is lowered, at `sizes`: works are those of its steps, and the words of the
    argument table are what `numbers` gives plus the addresses of `regions`."""
    nodes, names = schedule.program.nodes, dict(schedule.program.outputs)
    pairs = zip(found.launches, works, strict=True)
    launches = tuple([pair[work > SMALL_WORK] for pair, work in pairs if pair])
    inputs = {nodes[i].input_name: nodes[i].type.concrete(sizes) for i in schedule.program.inputs}
    outputs = tuple(
        Output(name, nodes[names[name]].type.concrete(sizes), region)
        for name, region in found.outputs
    )
    routine = Routine(
        inputs, outputs, len(found.places) - len(inputs), store.arrays, launches, numbers, regions,
        arena.size, scratch, threads,
    )  # fmt: skip
    order = tuple(step.dispatch for step in found.steps)
    return Plan(schedule, sizes, arena, found.places, order, found.executables, routine)


class HostedInstance(Instance):
    """An instance of a plan that calls the host between its launches."""

    def __init__(self, plan: Plan, workspace: Workspace) -> None:
        super().__init__(plan.routine, workspace)
        self._plan = plan

    def launch(self, tensors: Mapping[int, Array]) -> None:
        """Run kernels and host calls in order."""
        results: dict[int, tuple[Array, ...]] = {}
        done = first = 0
        for number in self._plan.order:
            if not self._plan.is_host(number):
                done += 1
                continue
            if done > first:
                self.executor.run(first, done)
            first = done
            for index in self._plan.schedule.dispatches[number].nodes:
                self._host(index, tensors, results)
        if done > first:
            self.executor.run(first, done)

    def _host(
        self, index: int, tensors: Mapping[int, Array], results: dict[int, tuple[Array, ...]]
    ) -> None:
        """Run a host call or a user's op on its operands, or pick a result of a host call."""
        schedule = self._plan.concrete
        node = schedule.program.nodes[index]
        if node.op.name == "item":
            position = node.attributes[0]
            assert isinstance(position, Count)
            value = results[node.operands[0]][position.value]
        else:
            operands = [np.array(self._view(operand, tensors)) for operand in node.operands]
            results[index] = host_results(node, operands)
            value = results[index][0]
        if index in schedule.homes:
            self._view(index, tensors)[...] = value

    def _view(self, index: int, tensors: Mapping[int, Array]) -> Array:
        """The tensor of a materialised node, in place."""
        schedule = self._plan.concrete
        node = schedule.program.nodes[index]
        if node.op.name == "constant":
            return node.constant.array
        home = schedule.homes[index]
        buffer_type = schedule.program.nodes[home.buffer].type
        shape = tuple(map(static, buffer_type.shape))
        region = self._plan.places.get(home.buffer)
        if region is not None:
            whole = tensors[region]
        else:
            start = self._plan.arena.offsets[home.buffer]
            size = prod(shape) * buffer_type.dtype.itemsize
            whole = self.memory[start : start + size].view(buffer_type.dtype.numpy).reshape(shape)
        extents = zip(home.start, node.type.shape, strict=True)
        places = [slice(static(a), static(a) + static(n)) for a, n in extents]
        return whole[tuple(places)] if places else whole
