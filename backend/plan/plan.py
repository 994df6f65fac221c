"""Plans and instances: what has to be decided once per sizes, and what one call at a time uses.

A plan knows every kernel's arguments up to the addresses of the arena, the inputs and the outputs.
An instance owns an arena and filled-in arguments; a call only has to set the addresses of its
inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from satura.backend.constants import ConstantStore
from satura.backend.plan.buffers import Arena, plan_arena
from satura.backend.plan.executables import Executable
from satura.backend.plan.lowered import (
    ARENA,
    FIRST_TENSOR,
    SCRATCH,
    STATUS,
    LoweredStep,
    Progress,
    lowered,
    refuse_beyond_memory_of,
)  # fmt: skip
from satura.backend.plan.out import refuse_unfit
from satura.backend.plan.workspace import Workspace
from satura.backend.run.runtime import ALL_THREADS, Executor, Status, Step
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.program.interpreter import host_results
from satura.rewrite.types.attributes import Count
from satura.rewrite.types.dims import evaluate, static
from satura.rewrite.types.tensor_type import Array

SMALL_WORK = 16384  # innermost iterations that one thread does as fast as two


@dataclass(frozen=True)
class Launch:
    """A kernel and where its arguments start, in words; it is `dispatch` of the schedule."""

    kernel: int
    arguments: int
    width: int
    dispatch: int


@dataclass(frozen=True)
class Plan:
    """Everything about one run that depends on sizes only.

    `steps` are launches and host calls in order. Word i of the argument table is `numbers[i]`
    plus the address of region `regions[i]`. Symbols of the schedule have their sizes in `sizes`.
    """

    schedule: Schedule
    threads: int
    arena: Arena
    steps: tuple[Launch | Dispatch, ...]
    numbers: NDArray[np.int64]
    regions: NDArray[np.int64]
    scratch: int
    executables: tuple[Executable, ...]
    store: ConstantStore
    sizes: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def concrete(self) -> Schedule:
        """The schedule at `sizes`."""
        return self.schedule.concrete(self.sizes)

    def shape(self, node: int) -> tuple[int, ...]:
        """The shape of a node's result."""
        return tuple(
            evaluate(dim, self.sizes) for dim in self.schedule.program.nodes[node].type.shape
        )

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.schedule.program.inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        """Nodes that the program gives back, each once."""
        return tuple(dict.fromkeys(self.schedule.program.output_nodes))


def make_plan(
    schedule: Schedule, store: ConstantStore, threads: int, any_sizes: bool,
    progress: Progress | None = None,
) -> Plan:  # fmt: skip
    """The plan of a schedule with concrete sizes; compiles what is not compiled yet.

    `any_sizes` says that kernels should serve other sizes too. Raises CallError, or without
    `any_sizes` ModelError, where memory cannot hold the results and the arena.
    """
    refuse_beyond_memory_of(schedule, CallError if any_sizes else ModelError)
    found = lowered(schedule, store, threads, any_sizes, progress)
    arena = plan_arena(found.buffers)
    starts = (0 if word.buffer is None else arena.offsets[word.buffer] for word in found.words)
    numbers = [word.number + start for word, start in zip(found.words, starts, strict=True)]
    return Plan(
        schedule, threads, arena,
        tuple(step_of(schedule, step, is_small(step.work)) for step in found.steps),
        np.array(numbers, np.int64), np.array([word.region for word in found.words], np.int64),
        max(found.scratch, default=0), found.executables, store,
    )  # fmt: skip


def is_small(work: int) -> bool:
    """Whether so much work is not worth a second thread."""
    return work <= SMALL_WORK


def step_of(schedule: Schedule, step: LoweredStep, small: bool) -> Launch | Dispatch:
    """A step, with little work or with much; a host call is its dispatch."""
    if not step.kernel:
        return schedule.dispatches[step.dispatch]
    return Launch(step.kernel, step.first, 1 if small else ALL_THREADS, step.dispatch)


class Instance:
    """Argument tables for one call at a time, and the memory that it works in."""

    def __init__(self, plan: Plan, workspace: Workspace | None = None) -> None:
        self.plan = plan
        self._workspace = workspace or Workspace()
        self._workspace.fit(plan.arena.size, plan.scratch * plan.threads)
        self._status = Status(_describe)
        count = FIRST_TENSOR + len(plan.inputs) + len(plan.outputs)
        self._bases = np.zeros(count, np.int64)
        self._bases[ARENA], self._bases[SCRATCH] = self._workspace.addresses
        self._bases[STATUS] = self._status.address
        self._table = plan.numbers + self._bases[plan.regions]
        moving = np.flatnonzero(plan.regions >= FIRST_TENSOR)
        self._moving = moving
        self._moving_numbers = plan.numbers[moving]
        self._moving_regions = plan.regions[moving]
        first = int(self._table.ctypes.data)
        launches = [step for step in plan.steps if isinstance(step, Launch)]
        steps = [Step(step.kernel, first + 8 * step.arguments, step.width) for step in launches]
        self._executor = Executor(steps, plan.threads, self._status)
        self._only_launches = len(launches) == len(plan.steps)
        self._results: dict[str, Array] = {}
        self._copies: list[tuple[Array, Array]] = []
        self._tensors: dict[int, Array] = {}

    def work_in(self, workspace: Workspace) -> None:
        """Use other memory from now on; it is made to fit."""
        workspace.fit(self.plan.arena.size, self.plan.scratch * self.plan.threads)
        self._workspace = workspace
        arena, scratch = workspace.addresses
        if arena != self._bases[ARENA] or scratch != self._bases[SCRATCH]:
            self._bases[ARENA], self._bases[SCRATCH] = arena, scratch
            np.add(self.plan.numbers, self._bases[self.plan.regions], out=self._table)

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Outputs by name, in the arrays of `out` where there are such.

        The arguments fit the inputs. Raises CallError for arrays that cannot be written to.
        """
        self.bind({name: _readable(array) for name, array in arguments.items()}, out or {})
        return self.execute()

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        """Set the arrays that `execute` reads and writes; those that `out` lacks are made."""
        plan, nodes = self.plan, self.plan.schedule.program.nodes
        tensors = {index: arguments[nodes[index].input_name] for index in plan.inputs}
        if out:
            refuse_unfit(plan.schedule.program, plan.sizes, out, tuple(tensors.values()))
        self.release()
        for name, index in plan.schedule.program.outputs:
            array = out.get(name)
            if array is None:
                array = np.empty(plan.shape(index), nodes[index].type.dtype.numpy)
            self._results[name] = array
            if nodes[index].op.name == "constant":
                self._copies.append((array, nodes[index].constant.array))
            elif index in tensors:  # an input, or the result of another name
                self._copies.append((array, tensors[index]))
            else:
                tensors[index] = array
        for place, index in enumerate((*plan.inputs, *plan.outputs), start=FIRST_TENSOR):
            if index in tensors:
                self._bases[place] = _address(tensors[index])
        self._table[self._moving] = self._moving_numbers + self._bases[self._moving_regions]
        self._tensors = tensors

    def execute(self) -> dict[str, Array]:
        """Run on the arrays of `bind`: what they hold then counts."""
        self._execute(self._tensors)
        for target, source in self._copies:
            np.copyto(target, source)
        return self._results

    def release(self) -> None:
        """Forget the arrays of `bind`."""
        self._results, self._copies, self._tensors = {}, [], {}

    @property
    def executor(self) -> Executor:
        """Runs the launches of the last call again, as long as its arrays are alive."""
        return self._executor

    def _execute(self, tensors: dict[int, Array]) -> None:
        if self._only_launches:
            self._executor.run()
            return
        results: dict[int, tuple[Array, ...]] = {}
        done = first = 0
        for step in self.plan.steps:
            if isinstance(step, Launch):
                done += 1
                continue
            if done > first:
                self._executor.run(first, done)
            first = done
            for index in step.nodes:
                self._host(index, tensors, results)
        if done > first:
            self._executor.run(first, done)

    def _host(
        self, index: int, tensors: Mapping[int, Array], results: dict[int, tuple[Array, ...]]
    ) -> None:
        """Run a host call or a user's op on its operands, or pick a result of a host call."""
        schedule = self.plan.concrete
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
        schedule = self.plan.concrete
        node = schedule.program.nodes[index]
        if node.op.name == "constant":
            return node.constant.array
        home = schedule.homes[index]
        buffer_type = schedule.program.nodes[home.buffer].type
        shape = tuple(map(static, buffer_type.shape))
        if home.buffer in tensors:
            whole = tensors[home.buffer]
        else:
            start = self.plan.arena.offsets[home.buffer]
            size = prod(shape) * buffer_type.dtype.itemsize
            whole = (
                self._workspace.arena[start : start + size]
                .view(buffer_type.dtype.numpy)
                .reshape(shape)
            )
        extents = zip(home.start, node.type.shape, strict=True)
        places = [slice(static(a), static(a) + static(n)) for a, n in extents]
        return whole[tuple(places)] if places else whole


def _readable(array: Array) -> Array:
    """The array as kernels need it: C-contiguous, native and aligned."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, requirements=("C", "A"))


def _address(array: Array) -> int:
    """Where the array starts; `array.ctypes` takes four times as long to say so."""
    return int(array.__array_interface__["data"][0])


def _describe(code: int, detail: int) -> str:
    return f"gather: an index lies outside [-{detail}, {detail})"
