"""The kernel of a scatter: each thread has some places, and writes the updates that go there."""

from __future__ import annotations

from satura.backend.emit.alone import named_code, tensor_words
from satura.backend.emit.code import Code
from satura.backend.emit.text import indent, op_text, report_text
from satura.backend.lower.body import Pointer, Value
from satura.backend.lower.walk import shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.ops.reductions import STEPS
from satura.rewrite.types.attributes import ReduceFn

_BITS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def scatter_code(schedule: Schedule, dispatch: Dispatch, name: str) -> Code:
    """The kernel of a scatter; its text depends on the element type and the function only.

    The result is read and written as scratch memory, so that LLVM keeps the order of updates.
    """
    node = schedule.program.nodes[dispatch.root]
    x, indices, updates = node.operands
    (f,) = node.attributes
    assert isinstance(f, ReduceFn)
    (places, width), (count,) = shape_of(schedule, x), shape_of(schedule, indices)
    dtype, size = node.type.dtype, node.type.dtype.itemsize
    kind = dtype.value if f.name in STEPS else _BITS[size]
    new = f"read_{kind}(source, at)"
    if f.name in STEPS:
        new = op_text(Value(STEPS[f.name], dtype), [f"get_{kind}(target, at)", new])
    lines = [
        "first = places * thread // threads",
        "end = places * (thread + 1) // threads",
        "for place in range(first, end):",
        "    target = result + place * result_0",
        "    source = x + place * x_0",
        "    for at in range(width):",
        f"        put_{kind}(target, at, read_{kind}(source, at))",
        "for number in range(count):",
        "    place = load_int64(indices, number)",
        "    if place >= first and place < end:",
        "        target = result + place * result_0",
        "        source = updates + number * updates_0",
        "        for at in range(width):",
        *indent(3, [f"put_{kind}(target, at, {new})"]),
        "    elif place < 0 or place >= places:",
        *indent(2, report_text("status", 2, "places", "place")),  # a scatter, see `run/routine.py`
    ]
    given = {
        **tensor_words("x", schedule, x), **tensor_words("updates", schedule, updates),
        **tensor_words("indices", schedule, indices),
        **tensor_words("result", schedule, dispatch.root),
        "places": places, "width": width, "count": count, "status": Pointer(("status", 0)),
    }  # fmt: skip
    return named_code(name, given, lines, (places + count) * width)
