"""From a dispatch with concrete sizes to the text and the arguments of its kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from satura.backend.constants import ConstantStore, fold_constants
from satura.backend.contraction.attention_call import attention_code
from satura.backend.contraction.call import ContractionForm, contraction_code
from satura.backend.contraction.recurrence_call import recurrence_code
from satura.backend.contraction.winograd_call import winograd_code
from satura.backend.emit.code import Code, KernelForm
from satura.backend.emit.convolved_planes import convolved_plane_code
from satura.backend.emit.first_places import first_places_code
from satura.backend.emit.images import image_code, serves_images
from satura.backend.emit.loops import LoopForm, loop_code
from satura.backend.emit.planes import plane_code
from satura.backend.emit.relaid import with_constants_relaid
from satura.backend.emit.rows import row_code
from satura.backend.emit.scatter import scatter_code
from satura.backend.emit.transposes import turning_piece
from satura.backend.emit.windows import is_small_window, window_code
from satura.backend.lower.canonical import canonical
from satura.backend.lower.loop_nests import lower
from satura.backend.lower.planes import planes
from satura.backend.lower.walk import LoweringError, shape_of
from satura.backend.plan.executables import merge_kernels
from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.types.attributes import BinaryFn, ReduceFn, UnaryFn

LONGEST_NAME = 4  # ops
ALONE: Mapping[str, Callable[[Schedule, Dispatch, str], Code]] = {
    "scatter": scatter_code,
    "first_places": first_places_code,
}
"""The kernels of ops that nothing fuses with, but for a recurrence, whose weights are packed."""


def kernel_codes(
    schedule: Schedule, threads: int, store: ConstantStore, any_sizes: bool, merging: str
) -> dict[int, Code]:
    """The kernels of dispatches by number, merged as `executables.py` says; host calls and
    dispatches that have nothing to compute have none."""

    def code_in_form(number: int, wanted: KernelForm | None) -> Code | None:
        dispatch = schedule.dispatches[number]
        return kernel_code(schedule, dispatch, threads, store, any_sizes, wanted)

    codes: dict[int, Code] = {}
    for number, dispatch in enumerate(schedule.dispatches):
        code = None if dispatch.form is Form.HOST else code_in_form(number, None)
        if code is not None:
            codes[number] = code
    return merge_kernels(codes, merging, code_in_form, schedule.seconds * threads)


def refused_dispatches(
    schedule: Schedule, threads: int, sizes: Mapping[str, int] | None = None
) -> dict[int, str]:
    """The dispatches that cannot be lowered at some sizes, by default typical ones, and why."""
    program = schedule.program
    concrete = fold_constants(schedule).concrete(program.typical if sizes is None else sizes)
    refused: dict[int, str] = {}
    for number, dispatch in enumerate(concrete.dispatches):
        if dispatch.form is not Form.HOST:
            try:
                kernel_code(concrete, dispatch, threads, ConstantStore(), bool(program.symbols))
            except LoweringError as error:
                refused[number] = str(error)
    return refused


def kernel_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore, any_sizes: bool,
    wanted: KernelForm | None = None,
) -> Code | None:  # fmt: skip
    """The kernel of a dispatch that is not a host call; None where there is nothing to compute.

    With `any_sizes` the text should serve other sizes of the same program as well. `wanted` is the
    form of another dispatch's kernel, which this one is to have where it can.
    """
    if 0 in shape_of(schedule, dispatch.root):
        return None
    name = kernel_name(schedule, dispatch)
    if dispatch.form is Form.ALONE:
        op = schedule.program.nodes[dispatch.root].op.name
        if op == "recurrence":
            return recurrence_code(schedule, dispatch, threads, store, name)
        if op not in ALONE:
            raise LoweringError(f"op {op} has no kernel: give it one in ALONE of {__name__}")
        return ALONE[op](schedule, dispatch, name)
    if dispatch.form is Form.CONTRACTION:
        if (code := attention_code(schedule, dispatch, threads, name, any_sizes)) is not None:
            return code
        code = winograd_code(schedule, dispatch, threads, store, name, any_sizes)
        if code is None:
            spec = wanted if isinstance(wanted, ContractionForm) else None
            code = contraction_code(schedule, dispatch, threads, store, name, any_sizes, spec)
        if code is not None or wanted is not None:
            return code
    if dispatch.form in (Form.WINDOW, Form.CONTRACTION):
        found = planes(schedule, dispatch)
        if found is not None and not found.is_of_images:
            write = plane_code if found.factors is None else convolved_plane_code
            return write(name, found, found.work)
        if found is not None and serves_images(found):
            return image_code(name, found, threads, found.work)
    nests = lower(schedule, dispatch)
    work = sum(prod(nest.extents) for nest in nests)
    if nests[0].reductions:
        form = canonical(nests[0])
        # Taps are written out: of a reduction over a size that would be a kernel for each.
        if is_small_window(form) and not (any_sizes and dispatch.form is Form.ROW):
            return window_code(name, form, threads, work)
        if not any_sizes:
            form = with_constants_relaid(form, schedule.program, store)
        return row_code(name, form, threads, work)
    loops = wanted if isinstance(wanted, LoopForm) else None
    return loop_code(name, nests, work, turning_piece, loops, threads)


def kernel_name(schedule: Schedule, dispatch: Dispatch) -> str:
    """A name for people: the form and the first ops, such as `loop_add_relu`."""
    words = [dispatch.form.value]
    for index in dispatch.nodes:
        node = schedule.program.nodes[index]
        named = [a.name for a in node.attributes if isinstance(a, UnaryFn | BinaryFn | ReduceFn)]
        words.append(named[0] if named and node.op.name != "pool" else node.op.name)
    if len(words) > LONGEST_NAME + 1:
        words = [*words[:LONGEST_NAME], f"{len(words) - LONGEST_NAME}_more"]
    return "_".join(words) if dispatch.nodes else "loop_copy"
