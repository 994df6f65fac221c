"""Writing a compiled program to a file: see `opened.py` for what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from satura.artifact.container import Writer
from satura.artifact.types import type_row
from satura.backend.jit.kernel import KernelSource, environment
from satura.backend.jit.machine_code import kernel_address, objects_of
from satura.backend.plan.compiled import CompiledSchedule
from satura.backend.plan.plan import Plan
from satura.backend.run import pool
from satura.rewrite.errors import ProgramError, UnsupportedError
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.extract.schedule_text import parse_schedule, schedule_text
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.tensor_type import DType, TensorType


def save(
    path: Path, schedule: Schedule, kernels: CompiledSchedule,
    inputs: Mapping[str, TensorType], outputs: Mapping[str, TensorType],
) -> None:  # fmt: skip
    """Write `schedule` and the `kernels` made of it, with the sizes that they are ready for.

    Raises UnsupportedError for what calls Python: it would have to be in the file, and run.
    """
    _refuse_python(schedule)
    constants = (node.constant for node in schedule.program.nodes if node.op.name == "constant")
    large = {str(constant.label): constant for constant in constants if constant.label is not None}
    text = schedule_text(schedule)
    try:
        is_complete = parse_schedule(text, large) == schedule
    except ProgramError:
        is_complete = False
    if not is_complete:
        raise UnsupportedError("the program cannot be saved: its text does not tell all of it")
    writer = Writer()
    plans = kernels.plans
    used = [kernel for _, plan in plans for kernel in plan.executables]
    sources = [KernelSource(kernel.name, kernel.source) for kernel in used]
    objects = objects_of([*pool.SOURCES, *dict.fromkeys(sources)])
    places = {kernel.symbol: place for place, kernel in enumerate(objects)}
    routines = [_routine(writer, plan, dict(sizes), places) for sizes, plan in plans]
    arrays = max((plan.routine.constants for _, plan in plans), key=len, default=())
    header: dict[str, object] = {
        "threads": kernels.threads,
        "inputs": {name: type_row(type_) for name, type_ in inputs.items()},
        "outputs": {name: type_row(type_) for name, type_ in outputs.items()},
        "environment": environment(),
        "kernels": [
            [each.symbol, each.externals, each.entry, writer.add(each.code)] for each in objects
        ],
        "constants": [
            [type_row(TensorType(DType.of(array.dtype), array.shape)), writer.add(array)]
            for array in arrays
        ],
        "routines": routines,
        "schedule": writer.add(text.encode(errors="surrogatepass")),
        "sources": [
            [label, type_row(constant.type), writer.add_constant(constant)]
            for label, constant in large.items()
        ],
    }
    writer.write(path, header)


def _refuse_python(schedule: Schedule) -> None:
    for dispatch in schedule.dispatches:
        if dispatch.form is Form.HOST:
            index = dispatch.root
            node = schedule.program.nodes[index]
            calls = [each for each in node.attributes if isinstance(each, HostCall)]
            what = str(calls[0]) if calls else node.op.name
            raise UnsupportedError(
                f"node %{index} ('{what}') runs in Python, which a saved program does not hold:"
                " keep the model, and compile it where it runs"
            )
    for index, node in enumerate(schedule.program.nodes):
        if node.op.user is not None:
            raise UnsupportedError(
                f"node %{index} is an op of yours, '{node.op.name}', whose code a saved program"
                " does not hold: keep the model, and compile it where it runs"
            )


def _routine(
    writer: Writer, plan: Plan, sizes: Mapping[str, int], places: Mapping[str, int]
) -> dict[str, object]:
    """What the header says of one routine; its numbers are sections."""
    routine = plan.routine
    sources = [KernelSource(each.name, each.source) for each in plan.executables]
    kernels = {kernel_address(source): places[source.symbol] for source in sources}
    return {
        "sizes": dict(sizes),
        "outputs": {each.name: [each.region, type_row(each.type)] for each in routine.outputs},
        "computed": routine.computed,
        "launches": [
            [kernels[launch.kernel], launch.arguments, launch.width] for launch in routine.launches
        ],
        "constants": len(routine.constants),
        "numbers": writer.add(routine.numbers),
        "regions": writer.add(routine.regions),
        "arena": routine.arena,
        "scratch": routine.scratch,
    }
