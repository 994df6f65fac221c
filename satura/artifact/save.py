"""Writing a compiled program to a file: see `opened.py` for what is made of it.

A user's file has both halves. What is kept of a model for later processes, which have the model, is
the half that is ready to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from satura.artifact.classes import class_row
from satura.artifact.container import Writer, is_artifact
from satura.artifact.own_ops import formulas_in
from satura.artifact.sums import SUMS
from satura.artifact.types import type_row
from satura.backend.jit.kernel import KernelSource, running
from satura.backend.jit.machine_code import kernel_address, objects_of
from satura.backend.plan.plan import Plan
from satura.backend.plan.plans import Plans, plan_of
from satura.backend.run import pool
from satura.backend.run.part import Part, Program
from satura.rewrite.errors import CallError, ProgramError, UnsupportedError, advice
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.extract.schedule_text import parse_schedule, schedule_text
from satura.rewrite.system.files import output_file
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import DType, TensorType

_OWNERS_TO_WRITE = 0o644


def save(path: Path, part: Part, with_model: bool) -> None:
    """Write the programs of a part and their kernels, with the sizes that they are ready for, and
    with the model for sizes that the programs exclude.

    Raises UnsupportedError for what calls Python: it would have to be in the file, and run, and
    CallError where another file than a saved program would be replaced.
    """
    _refuse_other(path)
    programs = [_compiled(program) for program in part.programs]
    if not programs:
        what = advice(
            "ask for_values({...}) for those that the file is to hold",
            f"give --value {part.deciding[0]}=...",
        )
        raise CallError(
            f"there is a program for each value of {', '.join(part.deciding)}, and so far for none:"
            f" {what}"
        )
    writer = Writer()
    large: dict[str, Constant] = {}
    header, rows = ready_half(writer, part, programs)
    for program, row in zip(programs, rows, strict=True):
        row["elsewhere"] = _elsewhere(writer, program, large) if with_model else None
        text = _text(program.source, large)
        row["schedule"] = writer.add(text.encode(errors="surrogatepass"))
    header["ops"] = formulas_in(program.source for program in programs)
    header["sources"] = [
        [label, type_row(constant.type), writer.add_constant(constant)]
        for label, constant in large.items()
    ]
    with output_file(path, _OWNERS_TO_WRITE) as file:
        writer.write(file, header)


def ready_half(
    writer: Writer, part: Part, programs: Sequence[Plans], has_sizes: bool = True
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """The header of a file with the machine code, tables and packed constants of programs, and the
    row of each program in it: for the sizes that it is ready for, if it `has_sizes`, and for
    classes of them.

    Raises UnsupportedError as `save` does.
    """
    for program in programs:
        _refuse_python(program.source)
    plans = {
        program: [
            (sizes, plan_of(each))
            for sizes, each in program.ready
            if (has_sizes or not sizes) and each.plan is not None  # Python takes steps elsewhere
        ]
        for program in programs
    }
    used = [kernel for each in plans.values() for _, plan in each for kernel in plan.executables]
    used += [k for each in programs for _, found in each.known for k in found.lowered.executables]
    sources = [KernelSource(kernel.name, kernel.source) for kernel in used]
    objects = objects_of([SUMS, *pool.SOURCES, *dict.fromkeys(sources)])
    places = {kernel.symbol: place for place, kernel in enumerate(objects)}
    numbers = {kernel_address(source): places[source.symbol] for source in dict.fromkeys(sources)}
    rows: list[dict[str, object]] = []
    for program, ready in plans.items():
        classes = (
            class_row(writer, found, report, numbers, program.schedule)
            for report, found in program.known
        )
        values = program.values if part.deciding else ()
        rows.append({
            "values": [[name, dtype, shape, data.hex()] for name, dtype, shape, data in values],
            "inputs": _types(program.inputs),
            "outputs": _types(program.outputs),
            "declared": _types(program.elsewhere.types) if program.elsewhere else None,
            "shown": None if program.shown is None else [*map(_types, program.shown)],
            "constants": [
                [type_row(TensorType(DType.of(array.dtype), array.shape)), writer.add(array)]
                for array in program.store.arrays
            ],
            "classes": [row for row in classes if row is not None],
            "routines": [_routine(writer, plan, dict(sizes), numbers) for sizes, plan in ready],
        })  # fmt: skip
    header: dict[str, object] = {
        "threads": part.threads,
        "inputs": _types(part.inputs),
        "deciding": list(part.deciding),
        "environment": running(),
        "kernels": [
            [each.symbol, each.externals, each.entry, writer.add(each.code)] for each in objects
        ],
        "programs": rows,
    }
    return header, rows


def _refuse_other(path: Path) -> None:
    """Raise CallError for a file that is not a saved program: it may be the model or its weights,
    and be all that there is of them."""
    if path.is_file() and path.stat().st_size and not is_artifact(path):
        raise CallError(
            f"'{path}' is there, and is not a saved program, so it is not replaced by one: name"
            " another file, or remove it first"
        )


def _compiled(program: Program) -> Plans:
    """The program as it was compiled. Raises UnsupportedError for one in parts."""
    if not isinstance(program, Plans):
        raise UnsupportedError(
            f"{program} runs in Python, which a saved program does not hold: keep the model, and"
            " compile it where it runs, or save each of its `parts` and run the node yourself"
        )
    return program


def _elsewhere(writer: Writer, program: Plans, large: dict[str, Constant]) -> list[object] | None:
    found = program.elsewhere
    if found is None or found.model is None:
        return None
    from satura.artifact.elsewhere import elsewhere_row

    return elsewhere_row(writer, found.model, program.values, found.rules(), large)


def _text(schedule: Schedule, large: dict[str, Constant]) -> str:
    """The text of a schedule; the constants that it leaves out are added to those by label."""
    constants = (node.constant for node in schedule.program.nodes if node.op.name == "constant")
    large |= {str(constant.label): constant for constant in constants if constant.label is not None}
    text = schedule_text(schedule)
    try:
        is_complete = parse_schedule(text, large) == schedule
    except ProgramError:
        is_complete = False
    if not is_complete:
        raise UnsupportedError("the program cannot be saved: its text does not tell all of it")
    return text


def _types(types: Mapping[str, TensorType]) -> dict[str, object]:
    return {name: type_row(type_) for name, type_ in types.items()}


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
    writer: Writer, plan: Plan, sizes: Mapping[str, int], places: Mapping[int, int]
) -> dict[str, object]:
    """What the header says of one routine; its numbers are sections. `places` are the kernels'
    numbers by address."""
    routine = plan.routine
    return {
        "sizes": dict(sizes),
        "outputs": {each.name: [each.region, type_row(each.type)] for each in routine.outputs},
        "computed": routine.computed,
        "launches": [
            [places[launch.kernel], launch.arguments, launch.width] for launch in routine.launches
        ],
        "constants": len(routine.constants),
        "numbers": writer.add(routine.numbers()),
        "regions": writer.add(routine.regions),
        "arena": routine.arena,
        "scratch": routine.scratch,
    }
