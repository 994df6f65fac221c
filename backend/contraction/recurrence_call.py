"""A recurrence as the text and the arguments of its kernel."""

from __future__ import annotations

from satura.backend.cache_lines import whole_lines
from satura.backend.constants import ConstantStore
from satura.backend.contraction.recurrence import Writer
from satura.backend.contraction.recurrence_panels import TALLEST, pack_phases, panel_of
from satura.backend.contraction.scratch import Layout
from satura.backend.emit.alone import tensor_words
from satura.backend.emit.code import Code
from satura.backend.lower.body import Argument, Pointer
from satura.backend.lower.walk import shape_of
from satura.backend.sizes.size import defer
from satura.backend.target import host_target
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.ops.cells import Cell, phases
from satura.rewrite.types.dims import static

_WORD = 8


def recurrence_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore, name: str
) -> Code:
    """The kernel of a recurrence; its text depends on no extent but whether units fill panels."""
    x, weights, first, parameters, lengths = schedule.program.nodes[dispatch.root].operands
    (cell,) = schedule.program.nodes[dispatch.root].attributes
    assert isinstance(cell, Cell)
    steps, batch, _ = shape_of(schedule, x)
    sides, hidden, _ = map(static, shape_of(schedule, weights))
    held = static(shape_of(schedule, parameters)[1])
    dtype = schedule.program.nodes[x].type.dtype
    found = phases(cell, held)
    panels = tuple(panel_of(phase, batch, hidden, dtype, host_target()) for phase in found)
    constant = schedule.program.nodes[weights]
    is_known = constant.op.name == "constant"
    has_lengths = shape_of(schedule, lengths)[0] != 0
    writer = Writer(cell, found, panels, held, dtype, hidden, is_known, has_lengths)
    blocks = _blocks(batch, sides, threads)
    most = -(-batch // blocks)
    given: dict[str, Argument] = {
        "steps": steps, "batch": batch, "sides": sides, "hidden": hidden, "blocks": blocks,
    }  # fmt: skip
    for title, node in (("x", x), ("first", first), ("held", parameters), ("ends", lengths)):
        given |= tensor_words(title, schedule, node)
    given |= tensor_words("result", schedule, dispatch.root)
    layout = Layout()
    size = dtype.itemsize
    line = whole_lines(hidden * size)
    given |= {
        "scratch": Pointer(("scratch", 0)), "line": line, "pitch": most * line,
        "buffer": len(cell.states) * most * line, "hops_at": layout.take(_WORD),
        "sums_at": layout.take(max(panel.sums for panel in panels)),
        "states_at": layout.take(2 * len(cell.states) * most * line),
        "table_at": layout.take((most + TALLEST) * _WORD),
    }  # fmt: skip
    for title in writer.kept:
        given[f"{title}_values_at"] = layout.take(most * line)
        given[f"{title}_table_at"] = layout.take((most + TALLEST) * _WORD)
    total = 0
    for number, panel in enumerate(panels):
        given[f"packed{number}_at"] = total
        given[f"panels{number}"] = panel.count
        total += panel.count * panel.size
    if is_known:
        key = f"recurrence {constant.constant.digest.hex()} {panels} {dtype}".encode()
        place = store.derived(key, lambda: pack_phases(constant.constant.array, panels))
        given |= {"packed": Pointer(("constant", place)), "packed_side": total}
    else:
        given |= tensor_words("weights", schedule, weights)
        given |= {"packed_at": layout.take(total)}
    given["scratch_pitch"] = layout.size
    work = steps * batch * sides * cell.gates * hidden * hidden
    return Code(
        name, writer.text(given), (*given.values(), *writer.numbers), work // 8, layout.size
    )


@defer
def _blocks(batch: int, sides: int, threads: int) -> int:
    """Into how many blocks the sequences of a side are cut, so that all threads have one."""
    return max(1, min(batch, -(-threads // sides)))
