"""The text and the arguments of a kernel for recurrences: see `rewrite/ops/recurrence.py`.

    for each unit (side, block of sequences) of this thread's share
        states = the first states
        for each step, of a side that goes backward from the last one
            for each phase of the cell
                for each panel: some units, and the columns of their gates
                    for each tile of sequences
                        sums = vectors · panel          (the microkernel of all contractions)
                        the phase's formulas, for the units of the panel
        the last states

States lie in scratch twice, so that a step reads the old ones and writes the new ones. The columns
of a panel stand gate by gate, and its sums are used while they are in the first cache. Sequences
do not meet: results do not depend on how they are cut into blocks. What formulas compute is written
as a result and read as an operand, which LLVM takes to be apart; between the two stands the call of
a microkernel, or an atomic operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.contraction.spec import tile_name
from satura.backend.emit.body import Code, applied
from satura.backend.emit.loops import kernel_text
from satura.backend.emit.text import indented
from satura.backend.lower.body import Argument, Pointer, Value
from satura.backend.lower.walk import shape_of, strides_of
from satura.backend.sizes.size import deferred
from satura.backend.target import Target, host_target
from satura.rewrite.extract.schedule import Dispatch, Home, Schedule
from satura.rewrite.ops.cells import Cell, Phase, phases
from satura.rewrite.ops.formula import formula_steps
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType

_WORD, _LINE = 8, 64
_IN_FLIGHT = 8  # vectors of sums that hide the latency of multiply-adds
_TALLEST = 12
_SPARE = 2  # registers besides those of sums and columns


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
    panels = tuple(_panel(phase, batch, hidden, dtype, host_target()) for phase in found)
    constant = schedule.program.nodes[weights]
    is_known = constant.op.name == "constant"
    has_lengths = shape_of(schedule, lengths)[0] != 0
    writer = _Writer(cell, found, panels, held, dtype, hidden, is_known, has_lengths)
    blocks = _blocks(batch, sides, threads)
    most = -(-batch // blocks)
    given: dict[str, Argument] = {
        "steps": steps, "batch": batch, "sides": sides, "hidden": hidden, "blocks": blocks,
    }  # fmt: skip
    for title, node in (("x", x), ("first", first), ("held", parameters), ("ends", lengths)):
        given |= _place(title, schedule, schedule.homes.get(node) or _own(schedule, node))
    given |= _place("result", schedule, dispatch.target)
    offset = 0

    def take(size: int) -> int:
        nonlocal offset
        offset += -(-size // _LINE) * _LINE
        return offset - -(-size // _LINE) * _LINE

    size = dtype.itemsize
    line = -(-hidden * size // _LINE) * _LINE
    given |= {
        "scratch": Pointer(("scratch", 0)), "line": line, "pitch": most * line,
        "buffer": len(cell.states) * most * line, "hops_at": take(_WORD),
        "sums_at": take(max(panel.sums for panel in panels)),
        "states_at": take(2 * len(cell.states) * most * line),
        "table_at": take((most + _TALLEST) * _WORD),
    }  # fmt: skip
    for title in writer.kept:
        given[f"{title}_values_at"] = take(most * line)
        given[f"{title}_table_at"] = take((most + _TALLEST) * _WORD)
    total = 0
    for number, panel in enumerate(panels):
        given[f"packed{number}_at"] = total
        given[f"panels{number}"] = panel.count
        total += panel.count * panel.size
    if is_known:
        key = f"recurrence {constant.constant.digest.hex()} {panels} {dtype}".encode()
        place, _ = store.derived(key, lambda: _packed(constant.constant.array, panels))
        given |= {"packed": Pointer(("constant", place)), "packed_side": total}
    else:
        home = schedule.homes.get(weights) or _own(schedule, weights)
        given |= _place("weights", schedule, home)
        given |= {"packed_at": take(total)}
    given["scratch_pitch"] = offset
    work = steps * batch * sides * cell.gates * hidden * hidden
    return Code(name, writer.text(given), (*given.values(), *writer.numbers), work // 8, offset)


def _own(schedule: Schedule, node: int) -> Home:
    return Home(node, (0,) * schedule.program.nodes[node].type.rank)


def _place(title: str, schedule: Schedule, home: Home) -> dict[str, Argument]:
    """The address of a tensor and, in bytes, how far its elements stand apart along each axis."""
    size = schedule.program.nodes[home.buffer].type.dtype.itemsize
    strides = [stride * size for stride in map(static, strides_of(schedule, home))]
    start = sum(static(at) * stride for at, stride in zip(home.start, strides, strict=True))
    found: dict[str, Argument] = {title: Pointer(("buffer", home.buffer), start)}
    return found | {f"{title}_{axis}": stride for axis, stride in enumerate(strides[:-1])}


@deferred
def _blocks(batch: int, sides: int, threads: int) -> int:
    """Into how many blocks the sequences of a side are cut, so that all threads have one."""
    return max(1, min(batch, -(-threads // sides)))


@dataclass(frozen=True)
class _Panel:
    """The weights of some units: `columns` for each of the `gates`, in `vectors` vectors."""

    gates: tuple[int, ...]
    hidden: int
    columns: int
    vectors: int
    heights: tuple[int, ...]
    itemsize: int

    @property
    def width(self) -> int:
        return len(self.gates) * self.columns

    @property
    def count(self) -> int:
        return -(-self.hidden // self.columns)

    @property
    def size(self) -> int:
        """Bytes of one panel."""
        return self.hidden * self.width * self.itemsize

    @property
    def sums(self) -> int:
        """Bytes of the largest tile."""
        return self.heights[0] * self.width * self.itemsize


def _panel(phase: Phase, batch: int, hidden: int, dtype: DType, target: Target) -> _Panel:
    """As wide as hides latency where few sequences run side by side, and as high as registers
    allow. A batch that is not known counts as one sequence."""
    lanes = target.vector_bytes // dtype.itemsize
    rows = int(batch) if type(batch) is int else 1
    across = 1
    while (
        2 * across * len(phase.gates) <= _IN_FLIGHT
        and across * len(phase.gates) * rows < _IN_FLIGHT
        and across * lanes < hidden
    ):
        across *= 2
    vectors = across * len(phase.gates)
    height = max(1, min(_TALLEST, (target.registers - _SPARE - vectors) // vectors))
    heights = tuple(dict.fromkeys((height, -(-height // 2), 1)))
    return _Panel(phase.gates, hidden, across * lanes, vectors, heights, dtype.itemsize)


def _packed(weights: Array, panels: Sequence[_Panel]) -> Array:
    """Weights [side, unit, gate · unit] as the panels of all phases, side by side."""
    sides, hidden, _ = weights.shape
    parts = []
    for panel in panels:
        columns = panel.count * panel.columns
        wide = np.zeros((sides, hidden, len(panel.gates), columns), weights.dtype)
        gates = weights.reshape(sides, hidden, -1, hidden)
        wide[..., :hidden] = gates[:, :, panel.gates]
        cut = wide.reshape(sides, hidden, len(panel.gates), panel.count, panel.columns)
        parts.append(cut.transpose(0, 3, 1, 2, 4).reshape(sides, -1))
    return np.ascontiguousarray(np.concatenate(parts, 1))


@dataclass
class _Writer:
    """Writes the kernel. `numbers` are those of the formulas, behind the other arguments."""

    cell: Cell
    phases: tuple[Phase, ...]
    panels: tuple[_Panel, ...]
    held: int
    dtype: DType
    hidden: int
    is_known: bool
    has_lengths: bool
    numbers: list[int] = field(default_factory=list)

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """What one phase computes and a later one reads."""
        found: dict[str, None] = {}
        own: set[str] = set()
        for phase in self.phases:
            found |= dict.fromkeys(name for name in (phase.vector, *phase.needed) if name in own)
            own |= {line.name for line in phase.lines}
        return tuple(found)

    def text(self, given: dict[str, Argument]) -> str:
        """The kernel; the words of its table are `given`, and then `numbers`."""
        body = list(self._unit())
        lines = [f"{name} = load_int64(args, {word})" for word, name in enumerate(given)]
        lines += [
            f"n{number} = scalar_{self.dtype.value}(load_int64(args, {len(given) + number}))"
            for number in range(len(self.numbers))
        ]
        lines += [
            "scratch += thread * scratch_pitch",
            *(f"{name} = scratch + {name}_at" for name in self._regions),
            "store_int64(hops, 0, 0)",
            "units = sides * blocks",
            "for unit in range(units * thread // threads, units * (thread + 1) // threads):",
            *indented(1, body),
        ]
        return kernel_text(["hold_constants()", *lines])

    @property
    def _regions(self) -> Iterator[str]:
        yield from ("hops", "sums", "states", "table")
        for name in self.kept:
            yield from (f"{name}_values", f"{name}_table")
        if not self.is_known:
            yield "packed"

    def _unit(self) -> Iterator[str]:
        yield "side = unit % sides"
        yield "block = unit // sides"
        yield "first_row = batch * block // blocks"
        yield "rows = batch * (block + 1) // blocks - first_row"
        if self.is_known:
            yield "side_weights = packed + side * packed_side"
        else:
            yield "side_weights = packed"
            yield from self._packing()
        yield f"for row in range(rows + {_TALLEST}):"
        yield "    place = min(row, rows - 1) * line"
        yield "    store_int64(table, row, states + place)"
        for name in self.kept:
            yield f"    store_int64({name}_table, row, {name}_values + place)"
        yield from self._moved("first + side * first_1 + (first_row + row) * first_2", "first_0", True)
        yield "for step in range(steps):"
        yield from indented(1, self._step())
        yield "atomic_add(hops, 0)"
        yield "old = states + steps % 2 * buffer"
        yield from self._moved(
            "result + steps * result_0 + side * result_1 + (first_row + row) * result_2", "result_0",
            False,
        )  # fmt: skip

    def _moved(self, place: str, stride: str, is_first: bool) -> Iterator[str]:
        """The states from or to a tensor."""
        inside = "states" if is_first else "old"
        yield "for row in range(rows):"
        yield f"    there = {place}"
        for number in range(len(self.cell.states)):
            here = f"{inside} + {number} * pitch + row * line"
            ends = (here, f"there + {number} * {stride}")
            yield from indented(1, self._copy(*(ends if is_first else reversed(ends)), "hidden"))

    def _copy(self, target: str, source: str, count: str) -> Iterator[str]:
        name = self.dtype.value
        yield f"to = {target}"
        yield f"origin = {source}"
        yield f"for index in range({count}):"
        yield f"    write_{name}(to, index, read_{name}(origin, index))"

    def _packing(self) -> Iterator[str]:
        """Weights that are not constants are packed by the kernel."""
        name = self.dtype.value
        for number, panel in enumerate(self.panels):
            yield f"for panel in range(panels{number}):"
            yield f"    first_unit = panel * {panel.columns}"
            yield f"    count = min({panel.columns}, hidden - first_unit)"
            yield f"    panel_weights = packed + packed{number}_at + panel * {panel.size}"
            yield "    for k in range(hidden):"
            for at, gate in enumerate(panel.gates):
                place = f"k * weights_1 + ({gate} * hidden + first_unit) * {panel.itemsize}"
                yield f"        origin = weights + side * weights_0 + {place}"
                row = f"(k * {panel.width} + {at * panel.columns}) * {panel.itemsize}"
                yield f"        to = panel_weights + {row}"
                yield "        for index in range(count):"
                yield f"            write_{name}(to, index, read_{name}(origin, index))"

    def _step(self) -> Iterator[str]:
        yield "at = step"
        for side, is_backward in enumerate(self.cell.backward):
            if is_backward:
                yield f"if side == {side}:"
                yield "    at = steps - 1 - step"
        yield "offset = step % 2 * buffer"
        yield "old = states + offset"
        yield "new = states + (buffer - offset)"
        inputs = f"side * hidden * {self.cell.gates * self.dtype.itemsize}"
        yield f"inputs = x + at * x_0 + first_row * x_1 + {inputs}"
        yield "target = result + at * result_0 + side * result_1 + first_row * result_2"
        for number in range(len(self.phases)):
            yield from self._phase(number)

    def _phase(self, number: int) -> Iterator[str]:
        phase, panel = self.phases[number], self.panels[number]
        if self.dtype is not DType.F32:
            yield "atomic_add(hops, 0)"
        tallest = panel.heights[0]
        yield f"tiles = (rows + {tallest - 1}) // {tallest}"
        yield "least = rows // tiles"
        yield "larger = rows - least * tiles"
        yield f"panel_weights = side_weights + packed{number}_at"
        yield f"for panel in range(panels{number}):"
        body = [f"first_unit = panel * {panel.columns}"]
        if self.hidden % panel.columns:
            body += [f"count = min({panel.columns}, hidden - first_unit)"]
        body += ["tile_row = 0", "for tile in range(tiles):"]
        tile = ["size = least + (1 if tile < larger else 0)", *self._product(phase, panel)]
        tile += ["for slot in range(size):", *indented(1, self._formulas(phase, panel))]
        body += [*indented(1, [*tile, "tile_row += size"]), f"panel_weights += {panel.size}"]
        yield from indented(1, body)

    def _product(self, phase: Phase, panel: _Panel) -> Iterator[str]:
        """The sums of a tile: its vectors times the panel."""
        is_state = phase.vector == "h"
        table = "table" if is_state else f"{phase.vector}_table"
        offset = "offset" if is_state else "0"
        yield f"lines = {table} + tile_row * {_WORD}"
        if self.dtype is DType.F32:
            ahead = f"panel_weights + {panel.size}"
            arguments = f"lines, 0, hops, 1, hidden, {offset}, panel_weights, {ahead}, sums, 0"
            *taller, last = panel.heights
            for place, height in enumerate(taller):
                yield f"{'elif' if place else 'if'} size > {panel.heights[place + 1]}:"
                yield f"    {tile_name(height, panel.vectors)}({arguments})"
            final = f"{tile_name(last, panel.vectors)}({arguments})"
            yield from ["else:", f"    {final}"] if taller else [final]
            return
        name, width = self.dtype.value, panel.width
        yield "for slot in range(size):"
        yield f"    sum = sums + slot * {width * panel.itemsize}"
        yield f"    for index in range({width}):"
        yield f"        put_{name}(sum, index, {name}(0))"
        yield f"    origin = load_int64(lines, slot) + {offset}"
        yield "    for k in range(hidden):"
        yield f"        factor = read_{name}(origin, k)"
        yield f"        row_weights = panel_weights + k * {width * panel.itemsize}"
        yield f"        for index in range({width}):"
        product = f"mul_add(factor, read_{name}(row_weights, index), get_{name}(sum, index))"
        yield f"            put_{name}(sum, index, {product})"

    def _formulas(self, phase: Phase, panel: _Panel) -> Iterator[str]:
        """What a phase computes of one sequence, for the units of a panel."""
        size = panel.itemsize
        here = f"row * line + first_unit * {size}"
        yield "row = tile_row + slot"
        names = {"new_h": "new_h_line"}
        for number, state in enumerate(self.cell.states):
            yield f"{state}_line = old + {number} * pitch + {here}"
            yield f"new_{state}_line = new + {number} * pitch + {here}"
            names[f"new_{state}"] = f"new_{state}_line"
        yield f"result_line = target + row * result_2 + first_unit * {size}"
        for name in self.kept:
            yield f"{name}_line = {name}_values + {here}"
            names[name] = f"{name}_line"
        for at, gate in enumerate(phase.gates):
            place = f"({gate} * hidden + first_unit) * {size}"
            yield f"x{gate}_line = inputs + row * x_1 + {place}"
            yield f"r{gate}_line = sums + (slot * {panel.width} + {at * panel.columns}) * {size}"
        for number in range(self.held):
            place = f"side * held_0 + {number} * held_1 + first_unit * {size}"
            yield f"p{number}_line = held + {place}"
        count = "count" if self.hidden % panel.columns else str(panel.columns)
        loop = [f"for index in range({count}):", *indented(1, self._lines(phase, names))]
        ends = [line.name for line in phase.lines if line.name.startswith("new_")]
        if not self.has_lengths or not ends:
            yield from loop
            return
        yield "if at < load_int64(ends + (first_row + row) * 8, 0):"
        yield from indented(1, loop)
        yield "else:"
        for name in ends:
            yield from indented(1, self._copy(names[name], f"{name[4:]}_line", count))
        yield f"    for index in range({count}):"
        yield f"        write_{self.dtype.value}(result_line, index, {self.dtype.value}(0))"

    def _lines(self, phase: Phase, places: dict[str, str]) -> Iterator[str]:
        """The formulas of one unit."""
        dtype = self.dtype.value
        for name in phase.needed:
            reader = "get" if name[0] == "r" and name[1:].isdigit() else "read"
            yield f"{name} = {reader}_{dtype}({name}_line, index)"
        for line in phase.lines:
            kinds = (self.dtype,) * len(line.operands)
            values: list[str] = []
            for step in formula_steps(line.formula, kinds, ()):
                value = f"{line.name}_{len(values)}"
                if step.op == "operand":
                    values.append(line.operands[step.position])
                    continue
                if step.literal is not None:
                    values.append(self._number(step.literal.bits))
                    continue
                operands = [values[index] for index in step.operands]
                yield f"{value} = {applied(Value(step.op, step.dtype, step.operands), operands)}"
                values.append(value)
            yield f"{line.name} = {values[-1]}"
            if line.name in places:
                yield f"write_{dtype}({places[line.name]}, index, {line.name})"
            if line.name == "new_h":
                yield f"write_{dtype}(result_line, index, {line.name})"

    def _number(self, bits: bytes) -> str:
        """The name of a number of the formulas."""
        number = int.from_bytes(bits, "little")
        if number not in self.numbers:
            self.numbers.append(number)
        return f"n{self.numbers.index(number)}"
