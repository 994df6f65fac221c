"""The kernel that finds the first elements of each row: a heap of those found so far.

The worst of them is at the heap's root. An element is a key, of which the largest comes first, and
its place, of which the smallest does where keys are equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from satura.backend.emit.alone import named_code, tensor_words
from satura.backend.emit.code import Code
from satura.backend.emit.text import indent
from satura.backend.lower.body import Pointer
from satura.backend.lower.walk import shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.types.attributes import Count
from satura.rewrite.types.tensor_type import DType

_WORD = 8


def first_places_code(schedule: Schedule, dispatch: Dispatch, name: str) -> Code:
    """The kernel; its text depends on the element type and the order only."""
    node = schedule.program.nodes[dispatch.root]
    (x,) = node.operands
    count, largest = node.attributes
    assert isinstance(count, Count) and isinstance(largest, Count)
    rows, extent = shape_of(schedule, x)
    dtype = schedule.program.nodes[x].type.dtype
    key = [f"key = {_key(dtype)}"]
    if not largest.value:
        key += ["key = -1 - key"]
    lines = [
        "scratch += thread * pitch",
        "held = scratch + count * 8",
        "for row in range(rows * thread // threads, rows * (thread + 1) // threads):",
        "    source = x + row * x_0",
        "    target = result + row * result_0",
        "    for place in range(count):",
        *indent(2, [*key, *_risen()]),
        "    worst = load_int64(scratch, 0)",
        "    for place in range(count, extent):",
        *indent(2, [*key, "if key > worst:", *indent(1, _sunk("count"))]),
        "            worst = load_int64(scratch, 0)",
        "    for number in range(count):",
        "        rest = count - 1 - number",
        "        store_int64(target, rest, load_int64(held, 0))",
        "        key = load_int64(scratch, rest)",
        "        place = load_int64(held, rest)",
        *indent(2, _sunk("rest")),
    ]
    pitch = 2 * _WORD * count.value
    given = {
        **tensor_words("x", schedule, x), **tensor_words("result", schedule, dispatch.root),
        "rows": rows, "extent": extent, "count": count.value, "pitch": pitch,
        "scratch": Pointer(("scratch", 0)),
    }  # fmt: skip
    return named_code(name, given, lines, rows * extent, pitch)


def _key(dtype: DType) -> str:
    """An i64 that orders elements as their values: NaN above all, -0.0 as 0.0."""
    if dtype is DType.U64:
        return "read_i64(source, place) - 9223372036854775807 - 1"
    value = f"read_{dtype.value}(source, place)"
    if dtype.is_float:
        value = f"max_key({value} + {dtype.compute.value}(0))"
    return f"cast_i64({value})"


def _risen() -> Iterator[str]:
    """The element joins the heap at its end, where it is the worst of equal ones."""
    yield "hole = place"
    yield "while hole > 0:"
    yield "    above = (hole - 1) // 2"
    yield "    if key > load_int64(scratch, above):"
    yield "        break"
    yield "    store_int64(scratch, hole, load_int64(scratch, above))"
    yield "    store_int64(held, hole, load_int64(held, above))"
    yield "    hole = above"
    yield "store_int64(scratch, hole, key)"
    yield "store_int64(held, hole, place)"


def _sunk(size: str) -> Iterator[str]:
    """The element takes the place of the root of a heap of `size`."""
    yield "hole = 0"
    yield "child = 1"
    yield f"while child < {size}:"
    yield f"    if child + 1 < {size}:"
    yield "        left = load_int64(scratch, child)"
    yield "        right = load_int64(scratch, child + 1)"
    yield "        after = load_int64(held, child + 1) > load_int64(held, child)"
    yield "        if right < left or (right == left and after):"
    yield "            child += 1"
    yield "    other = load_int64(scratch, child)"
    yield "    if key < other or (key == other and place > load_int64(held, child)):"
    yield "        break"
    yield "    store_int64(scratch, hole, other)"
    yield "    store_int64(held, hole, load_int64(held, child))"
    yield "    hole = child"
    yield "    child = 2 * hole + 1"
    yield "store_int64(scratch, hole, key)"
    yield "store_int64(held, hole, place)"
