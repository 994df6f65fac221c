"""From a dispatch with concrete sizes to the text and the arguments of its kernel."""

from __future__ import annotations

from math import prod

from satura.backend.constants import ConstantStore
from satura.backend.contraction.call import contraction_code
from satura.backend.contraction.winograd_call import winograd_code
from satura.backend.emit.body import Code
from satura.backend.emit.loops import loop_code
from satura.backend.emit.planes import plane_code
from satura.backend.emit.relaid import with_constants_relaid
from satura.backend.emit.rows import row_code
from satura.backend.emit.transposes import turning_piece
from satura.backend.emit.windows import is_small_window, window_code
from satura.backend.lower.canonical import canonical
from satura.backend.lower.loop_nests import lower
from satura.backend.lower.planes import planes
from satura.backend.lower.walk import shape_of
from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.types.attributes import BinaryFn, ReduceFn, UnaryFn

LONGEST_NAME = 4  # ops


def kernel_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore, any_sizes: bool
) -> Code | None:
    """The kernel of a dispatch that is not a host call; None where there is nothing to compute.

    With `any_sizes` the text should serve other sizes of the same program as well.
    """
    if 0 in shape_of(schedule, dispatch.root):
        return None
    name = kernel_name(schedule, dispatch)
    if dispatch.form is Form.CONTRACTION:
        code = winograd_code(schedule, dispatch, threads, store, name, any_sizes)
        if code is None:
            code = contraction_code(schedule, dispatch, threads, store, name, any_sizes)
        if code is not None:
            return code
    if dispatch.form is Form.WINDOW:
        found = planes(schedule, dispatch)
        if found is not None:
            return plane_code(name, found, found.work)
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
    return loop_code(name, nests, work, turning_piece)


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
