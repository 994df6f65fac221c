"""Plans: what has to be decided once per sizes, with what it was decided from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.emit.body import Code
from satura.backend.jit.machine_code import KernelSource, compile_all
from satura.backend.lower.body import Pointer
from satura.backend.plan.buffers import Arena, Lifetime, lifetimes, plan_arena
from satura.backend.plan.executables import Executable, executables
from satura.backend.plan.kernels import kernel_code
from satura.backend.run.routine import (
    ARENA,
    FIRST_TENSOR,
    NOTHING,
    SCRATCH,
    STATUS,
    Instance,
    Launch,
    Output,
    Routine,
)  # fmt: skip
from satura.backend.run.runtime import ALL_THREADS
from satura.rewrite.errors import CallError, ModelError, SaturaError
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.program.interpreter import host_results
from satura.rewrite.program.memory import named_types, refuse_beyond_memory, tensor_bytes
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Count
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array

Progress = Callable[[str, float], None]
SMALL_WORK = 16384  # innermost iterations that one thread does as fast as two


@dataclass(frozen=True)
class Plan:
    """A routine and the schedule with concrete sizes that it runs.

    `order` are the numbers of the dispatches that do something: launches of the routine and host
    calls. `places` are the regions of inputs and outputs by node.
    """

    schedule: Schedule
    arena: Arena
    places: Mapping[int, int]
    order: tuple[int, ...]
    executables: tuple[Executable, ...]
    routine: Routine

    @property
    def launched(self) -> tuple[int, ...]:
        """The number of the dispatch of each launch."""
        return tuple(number for number in self.order if not self.is_host(number))

    def is_host(self, number: int) -> bool:
        """Whether a dispatch is a host call."""
        return self.schedule.dispatches[number].form is Form.HOST

    def instance(self) -> Instance:
        """Memory for one call at a time."""
        return (
            HostedInstance(self) if any(map(self.is_host, self.order)) else Instance(self.routine)
        )


def make_plan(
    schedule: Schedule, store: ConstantStore, threads: int, any_sizes: bool,
    progress: Progress | None = None,
) -> Plan:  # fmt: skip
    """The plan of a schedule with concrete sizes; compiles what is not compiled yet.

    `any_sizes` says that kernels should serve other sizes too. Raises CallError, or without
    `any_sizes` ModelError, where memory cannot hold the results and the arena.
    """
    buffers = lifetimes(schedule)
    arena = plan_arena(buffers)
    _refuse_beyond_memory(schedule, buffers, arena, CallError if any_sizes else ModelError)
    codes: list[Code] = []
    order: list[int] = []
    for number, dispatch in enumerate(schedule.dispatches):
        if dispatch.form is Form.HOST:
            order.append(number)
            continue
        code = kernel_code(schedule, dispatch, threads, store, any_sizes)
        if code is not None:
            codes.append(code)
            order.append(number)
    kernels = executables(codes)
    addresses = _addresses(kernels, progress)
    program = schedule.program
    inputs = {program.nodes[i].input_name: program.nodes[i].type for i in program.inputs}
    places = {node: FIRST_TENSOR + i for i, node in enumerate(_places(program))}
    lay = _Table(schedule, arena, places, store)
    launches = []
    for code in codes:
        width = 1 if code.work <= SMALL_WORK else ALL_THREADS
        launches.append(Launch(addresses[code.text], len(lay.numbers), width))
        for argument in code.arguments:
            lay.append(argument)
    outputs = tuple(
        Output(name, program.nodes[node].type, lay.region(node)) for name, node in program.outputs
    )
    routine = Routine(
        inputs, outputs, len(places) - len(inputs), store.arrays, tuple(launches),
        np.array(lay.numbers, np.int64), np.array(lay.regions, np.int64), arena.size,
        max((code.scratch for code in codes), default=0), threads,
    )  # fmt: skip
    return Plan(schedule, arena, places, tuple(order), kernels, routine)


def _places(program: Program) -> tuple[int, ...]:
    """The inputs, and the outputs that are computed, each once."""
    outputs = [i for i in program.output_nodes if program.nodes[i].op.name != "constant"]
    return tuple(dict.fromkeys((*program.inputs, *outputs)))


def _refuse_beyond_memory(
    schedule: Schedule, buffers: Sequence[Lifetime], arena: Arena, error: type[SaturaError]
) -> None:
    program = schedule.program
    results = {*program.output_nodes} - {*program.inputs}
    total = arena.size + sum(tensor_bytes(program.nodes[index].type) for index in results)
    tensors = results | {buffer.buffer for buffer in buffers}
    refuse_beyond_memory(total, named_types(program, tensors), error)


def _addresses(kernels: Sequence[Executable], progress: Progress | None) -> dict[str, int]:
    """Addresses of compiled kernels by text."""
    report = None
    if progress is not None:
        tell = progress

        def report(done: int, total: int) -> None:
            tell("kernels", done / max(total, 1))  # a program may need no kernel

    sources = [KernelSource(kernel.name, kernel.source) for kernel in kernels]
    found = compile_all(sources, report)
    return {kernel.source: address for kernel, address in zip(kernels, found, strict=True)}


class _Table:
    """The arguments of all launches: numbers, and the regions whose addresses are added."""

    def __init__(
        self, schedule: Schedule, arena: Arena, places: Mapping[int, int], store: ConstantStore
    ) -> None:
        self.numbers: list[int] = []
        self.regions: list[int] = []
        self._schedule = schedule
        self._arena = arena
        self._places = places
        self._store = store

    def append(self, argument: int | Pointer) -> None:
        """Add one argument."""
        number, region = self._placed(argument)
        self.numbers.append(number)
        self.regions.append(region)

    def region(self, node: int) -> int:
        """The region of an input, of an output, or of a constant."""
        return self._places[node] if node in self._places else self._constant(node)

    def _placed(self, argument: int | Pointer) -> tuple[int, int]:
        if not isinstance(argument, Pointer):
            return argument, NOTHING
        kind, which = argument.region
        if kind == "scratch":
            return argument.offset, SCRATCH
        if kind == "status":
            return argument.offset, STATUS
        if kind == "constant":
            return argument.offset, FIRST_TENSOR + len(self._places) + which
        if which in self._places or self._schedule.program.nodes[which].op.name == "constant":
            return argument.offset, self.region(which)
        return self._arena.offsets[which] + argument.offset, ARENA

    def _constant(self, node: int) -> int:
        constant = self._schedule.program.nodes[node].constant
        number = self._store.number(constant.digest, constant.array)
        return FIRST_TENSOR + len(self._places) + number


class HostedInstance(Instance):
    """An instance of a plan that calls the host between its launches."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.routine)
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
        schedule = self._plan.schedule
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
        schedule = self._plan.schedule
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
