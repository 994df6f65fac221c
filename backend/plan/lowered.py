"""A schedule with all dispatches lowered, before its buffers have places.

The numbers are ints for a schedule with concrete sizes, or `Size`s that stand for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from satura.backend.constants import ConstantStore
from satura.backend.emit.code import Code
from satura.backend.jit.machine_code import KernelSource, compile_all
from satura.backend.lower.body import Pointer
from satura.backend.plan.buffers import Lifetime, lifetimes, plan_arena
from satura.backend.plan.executables import Executable, executables
from satura.backend.plan.kernels import kernel_codes
from satura.backend.run.routine import ARENA, FIRST_TENSOR, NOTHING, SCRATCH, STATUS, Launch
from satura.backend.run.runtime import ALL_THREADS
from satura.backend.sizes.size import refuse_traced
from satura.rewrite.errors import SaturaError
from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.program.memory import named_types, refuse_beyond_memory, tensor_bytes
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import TensorType

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the argument table: a number, and the region whose address is added.

    In the arena the offset of `buffer` is added, too.
    """

    number: int
    region: int
    buffer: int | None = None


@dataclass(frozen=True, slots=True)
class LoweredStep:
    """A dispatch: the address of its kernel, 0 for a host call; its first word and its work."""

    dispatch: int
    kernel: int
    first: int
    work: int


@dataclass(frozen=True)
class Lowered:
    """All kernels are compiled; `results` are the bytes of what the program gives back.

    `places` are the regions of inputs and of outputs that are computed, by node; behind them are
    those of constants. `outputs` are the regions of the outputs by name.
    """

    buffers: tuple[Lifetime, ...]
    steps: tuple[LoweredStep, ...]
    words: tuple[Word, ...]
    scratch: tuple[int, ...]
    results: int
    executables: tuple[Executable, ...]
    places: Mapping[int, int]
    outputs: tuple[tuple[str, int], ...]

    @cached_property
    def launches(self) -> tuple[tuple[Launch, Launch] | None, ...]:
        """What each step launches, for little work and for much; None for a host call."""
        return tuple(
            (Launch(step.kernel, step.first, 1), Launch(step.kernel, step.first, ALL_THREADS))
            if step.kernel
            else None
            for step in self.steps
        )


def lower_schedule(
    schedule: Schedule, store: ConstantStore, threads: int, any_sizes: bool,
    progress: Progress | None = None, merging: str = "cost",
) -> Lowered:  # fmt: skip
    """Lower a schedule with concrete sizes; compiles what is not compiled yet.

    `any_sizes` says that kernels should serve other sizes too, and `merging` which dispatches
    share one.
    """
    program = schedule.program
    found = kernel_codes(schedule, threads, store, any_sizes, merging)
    kernels = executables(list(found.values()))
    codes: dict[int, Code | None] = {}
    for number, dispatch in enumerate(schedule.dispatches):
        if dispatch.form is Form.HOST:
            codes[number] = None
            _keep_operands(program, dispatch, store)
        elif number in found:
            refuse_traced(found[number].text)
            codes[number] = found[number]
    addresses = _addresses(kernels, progress)
    places = {node: FIRST_TENSOR + i for i, node in enumerate(_with_regions(program))}
    words: list[Word] = []
    steps: list[LoweredStep] = []
    for number, code in codes.items():
        if code is None:
            steps.append(LoweredStep(number, 0, 0, 0))
            continue
        steps.append(LoweredStep(number, addresses[code.text], len(words), code.work))
        words += [_word(argument, schedule, places, store) for argument in code.arguments]
    store.forget_unmade()
    scratch = tuple(code.scratch for code in codes.values() if code is not None)
    outputs = tuple(
        (name, places[node] if node in places else _constant(node, schedule, places, store))
        for name, node in program.outputs
    )
    return Lowered(
        tuple(lifetimes(schedule)), tuple(steps), tuple(words), scratch, result_bytes(schedule),
        kernels, places, outputs,
    )  # fmt: skip


def _keep_operands(program: Program, dispatch: Dispatch, store: ConstantStore) -> None:
    """Keep the constants that host calls read: they ask for the arrays at each call."""
    for index in dispatch.nodes:
        for operand in program.nodes[index].operands:
            if program.nodes[operand].op.name == "constant":
                store.number(program.nodes[operand].constant)


def _with_regions(program: Program) -> tuple[int, ...]:
    """The inputs, and the outputs that are computed, each once."""
    outputs = [i for i in program.output_nodes if program.nodes[i].op.name != "constant"]
    return tuple(dict.fromkeys((*program.inputs, *outputs)))


def result_bytes(schedule: Schedule) -> int:
    """Bytes of all that the program gives back and has computed."""
    program = schedule.program
    results = {*program.output_nodes} - {*program.inputs}
    return sum(tensor_bytes(program.nodes[index].type) for index in sorted(results))


def refuse_beyond_memory_of(schedule: Schedule, error: type[SaturaError]) -> None:
    """Raise `error` where memory cannot hold results and arena; `schedule` has concrete sizes."""
    arena = plan_arena(lifetimes(schedule))
    refuse_large_results(schedule, {}, result_bytes(schedule) + arena.size, error)


def refuse_large_results(
    schedule: Schedule, sizes: Mapping[str, int], total: int, error: type[SaturaError]
) -> None:
    """Raise `error` where memory cannot hold `total` bytes of arena and results."""
    refuse_beyond_memory(total, _tensors(schedule, sizes), error)


def _tensors(schedule: Schedule, sizes: Mapping[str, int]) -> Iterator[tuple[str, TensorType]]:
    """Names and types of results and of what lies in the arena."""
    concrete = schedule.concrete(sizes)
    program = concrete.program
    found = {*program.output_nodes} - {*program.inputs}
    yield from named_types(program, found | {each.buffer for each in lifetimes(concrete)})


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


def _word(
    argument: int | Pointer, schedule: Schedule, places: Mapping[int, int], store: ConstantStore
) -> Word:
    if not isinstance(argument, Pointer):
        return Word(argument, NOTHING)
    kind, which = argument.region
    if kind == "scratch":
        return Word(argument.offset, SCRATCH)
    if kind == "status":
        return Word(argument.offset, STATUS)
    if kind == "constant":
        return Word(argument.offset, FIRST_TENSOR + len(places) + store.made(which))
    if schedule.program.nodes[which].op.name == "constant":
        return Word(argument.offset, _constant(which, schedule, places, store))
    if which in places:
        return Word(argument.offset, places[which])
    return Word(argument.offset, ARENA, which)


def _constant(
    node: int, schedule: Schedule, places: Mapping[int, int], store: ConstantStore
) -> int:
    """The region of a constant."""
    constant = schedule.program.nodes[node].constant
    return FIRST_TENSOR + len(places) + store.number(constant)
