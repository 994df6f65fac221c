"""Plans and instances: what has to be decided once per sizes, and what one call at a time uses.

A plan knows every kernel's arguments up to the addresses of the arena, the inputs and the outputs.
An instance owns an arena and filled-in arguments; a call only has to set the addresses of its
inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from satura.backend.constants import ConstantStore
from satura.backend.emit.body import Code
from satura.backend.jit.machine_code import KernelSource, compile_all
from satura.backend.lower.body import Pointer
from satura.backend.plan.buffers import ALIGNMENT, Arena, Lifetime, lifetimes, plan_arena
from satura.backend.plan.executables import Executable, executables
from satura.backend.plan.kernels import kernel_code
from satura.backend.plan.out import refuse_unfit
from satura.backend.run.runtime import ALL_THREADS, Executor, Status, Step
from satura.rewrite.errors import CallError, ModelError, SaturaError
from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.program.interpreter import host_results
from satura.rewrite.program.memory import named_types, refuse_beyond_memory, tensor_bytes
from satura.rewrite.types.attributes import Count
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array

Progress = Callable[[str, float], None]
SMALL_WORK = 16384  # innermost iterations that one thread does as fast as two

# Arguments are numbers plus the address of one of these.
_NOTHING, _ARENA, _SCRATCH, _STATUS = range(4)
_FIRST_TENSOR = 4  # inputs, then outputs


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
    plus the address of region `regions[i]`.
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
    buffers = lifetimes(schedule)
    arena = plan_arena(buffers)
    _refuse_beyond_memory(schedule, buffers, arena, CallError if any_sizes else ModelError)
    codes: list[Code] = []
    order: list[tuple[int, Code | Dispatch]] = []
    for number, dispatch in enumerate(schedule.dispatches):
        if dispatch.form is Form.HOST:
            order.append((number, dispatch))
            continue
        code = kernel_code(schedule, dispatch, threads, store, any_sizes)
        if code is not None:
            codes.append(code)
            order.append((number, code))
    kernels = executables(codes)
    addresses = _addresses(kernels, progress)
    program = schedule.program
    outputs = dict.fromkeys(program.output_nodes)
    places = {node: _FIRST_TENSOR + i for i, node in enumerate((*program.inputs, *outputs))}
    numbers: list[int] = []
    regions: list[int] = []
    steps: list[Launch | Dispatch] = []
    for number, item in order:
        if isinstance(item, Dispatch):
            steps.append(item)
            continue
        width = 1 if item.work <= SMALL_WORK else ALL_THREADS
        steps.append(Launch(addresses[item.text], len(numbers), width, number))
        for argument in item.arguments:
            value, region = _place_argument(argument, schedule, arena, places, store)
            numbers.append(value)
            regions.append(region)
    return Plan(
        schedule, threads, arena, tuple(steps), np.array(numbers, np.int64),
        np.array(regions, np.int64), max((code.scratch for code in codes), default=0),
        kernels, store,
    )  # fmt: skip


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


def _place_argument(
    argument: int | Pointer, schedule: Schedule, arena: Arena, places: Mapping[int, int],
    store: ConstantStore,
) -> tuple[int, int]:  # fmt: skip
    """An argument as a number and the region whose address is added."""
    if not isinstance(argument, Pointer):
        return argument, _NOTHING
    kind, which = argument.region
    if kind == "scratch":
        return argument.offset, _SCRATCH
    if kind == "status":
        return argument.offset, _STATUS
    if kind == "address":
        return which + argument.offset, _NOTHING
    node = schedule.program.nodes[which]
    if node.op.name == "constant":  # also where the program gives it back: calls never set that
        constant = node.constant
        return store.address(constant.digest, constant.array) + argument.offset, _NOTHING
    if which in places:
        return argument.offset, places[which]
    return arena.offsets[which] + argument.offset, _ARENA


class Instance:
    """Memory and argument tables for one call at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._memory = _aligned_bytes(plan.arena.size)
        self._scratch = _aligned_bytes(plan.scratch * plan.threads)
        self._status = Status(_describe)
        count = _FIRST_TENSOR + len(plan.inputs) + len(plan.outputs)
        self._bases = np.zeros(count, np.int64)
        self._bases[_ARENA] = self._memory.ctypes.data
        self._bases[_SCRATCH] = self._scratch.ctypes.data
        self._bases[_STATUS] = self._status.address
        self._table = plan.numbers + self._bases[plan.regions]
        moving = np.flatnonzero(plan.regions >= _FIRST_TENSOR)
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
            refuse_unfit(plan.schedule.program, out, tuple(tensors.values()))
        self.release()
        for name, index in plan.schedule.program.outputs:
            array = out.get(name)
            if array is None:
                type_ = nodes[index].type
                array = np.empty(tuple(map(static, type_.shape)), type_.dtype.numpy)
            self._results[name] = array
            if nodes[index].op.name == "constant":
                self._copies.append((array, nodes[index].constant.array))
            elif index in tensors:  # an input, or the result of another name
                self._copies.append((array, tensors[index]))
            else:
                tensors[index] = array
        for place, index in enumerate((*plan.inputs, *plan.outputs), start=_FIRST_TENSOR):
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
        node = self.plan.schedule.program.nodes[index]
        if node.op.name == "item":
            position = node.attributes[0]
            assert isinstance(position, Count)
            value = results[node.operands[0]][position.value]
        else:
            operands = [np.array(self._view(operand, tensors)) for operand in node.operands]
            results[index] = host_results(node, operands)
            value = results[index][0]
        if index in self.plan.schedule.homes:
            self._view(index, tensors)[...] = value

    def _view(self, index: int, tensors: Mapping[int, Array]) -> Array:
        """The tensor of a materialised node, in place."""
        schedule = self.plan.schedule
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
            whole = self._memory[start : start + size].view(buffer_type.dtype.numpy).reshape(shape)
        extents = zip(home.start, node.type.shape, strict=True)
        places = [slice(static(a), static(a) + static(n)) for a, n in extents]
        return whole[tuple(places)] if places else whole


def _aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Uninitialised bytes that start at a cache line."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -int(memory.ctypes.data) % ALIGNMENT
    return memory[start : start + size]


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
