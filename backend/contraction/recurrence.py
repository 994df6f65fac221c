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

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from satura.backend.contraction.recurrence_panels import TALLEST, Panel
from satura.backend.contraction.tile import Products, tile_name
from satura.backend.emit.text import indent, kernel_text, op_text
from satura.backend.lower.body import Argument, Value
from satura.rewrite.ops.cells import Cell, Phase
from satura.rewrite.ops.formula import formula_steps
from satura.rewrite.types.tensor_type import DType

_WORD = 8


@dataclass
class Writer:
    """Writes the kernel. `numbers` are those of the formulas, behind the other arguments."""

    cell: Cell
    phases: tuple[Phase, ...]
    panels: tuple[Panel, ...]
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
            *indent(1, body),
        ]
        return kernel_text(lines)

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
        yield f"for row in range(rows + {TALLEST}):"
        yield "    place = min(row, rows - 1) * line"
        yield "    store_int64(table, row, states + place)"
        for name in self.kept:
            yield f"    store_int64({name}_table, row, {name}_values + place)"
        yield from self._moved(True)
        yield "last = steps"
        if self.has_lengths:
            yield from self._ended()
        yield "for step in range(last):"
        yield from indent(1, self._step())
        yield "atomic_add(hops, 0)"
        yield "old = states + last % 2 * buffer"
        yield from self._moved(False)

    def _ended(self) -> Iterator[str]:
        """`last`, from which on no sequence of the block runs; there results are 0."""
        yield "last = 0"
        yield "for row in range(rows):"
        yield "    last = max(last, load_int64(ends, first_row + row))"
        yield "last = min(last, steps)"
        yield "for at in range(last, steps):"
        yield "    for row in range(rows):"
        place = "at * result_0 + side * result_1 + (first_row + row) * result_2"
        yield f"        to = result + {place}"
        yield "        for index in range(hidden):"
        yield f"            write_{self.dtype.value}(to, index, {self.dtype.value}(0))"

    def _moved(self, is_first: bool) -> Iterator[str]:
        """The first states to scratch, or the last ones behind the results."""
        title, inside = ("first", "states") if is_first else ("result", "old")
        ahead = "" if is_first else " + steps * result_0"
        yield "for row in range(rows):"
        yield f"    there = {title}{ahead} + side * {title}_1 + (first_row + row) * {title}_2"
        for number in range(len(self.cell.states)):
            here = f"{inside} + {number} * pitch + row * line"
            place = f"there + {number} * {title}_0"
            target, source = (here, place) if is_first else (place, here)
            yield from indent(1, self._copy(target, source, "hidden"))

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
                part, column = divmod(at * panel.columns, panel.part)
                row = f"(k * {panel.part} + {column}) * {panel.itemsize}"
                yield f"        to = panel_weights + {part * panel.part_size} + {row}"
                yield "        for index in range(count):"
                yield f"            write_{name}(to, index, read_{name}(origin, index))"

    def _step(self) -> Iterator[str]:
        yield "at = step"
        for side, is_backward in enumerate(self.cell.backward):
            if is_backward:
                yield f"if side == {side}:"
                yield "    at = last - 1 - step"
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
        tile += ["for slot in range(size):", *indent(1, self._formulas(phase, panel))]
        body += [*indent(1, [*tile, "tile_row += size"]), f"panel_weights += {panel.size}"]
        yield from indent(1, body)

    def _product(self, phase: Phase, panel: Panel) -> Iterator[str]:
        """The sums of a tile: its vectors times the panel."""
        is_state = phase.vector == "h"
        table = "table" if is_state else f"{phase.vector}_table"
        offset = "offset" if is_state else "0"
        yield f"lines = {table} + tile_row * {_WORD}"
        yield f"for part in range({panel.parts}):"
        yield f"    weights_part = panel_weights + part * {panel.part_size}"
        yield f"    sums_part = sums + part * {panel.sums // panel.parts}"
        yield from indent(1, self._microkernels(panel, offset))

    def _microkernels(self, panel: Panel, offset: str) -> Iterator[str]:
        """The call of the microkernel with as many rows as the tile has, or a few more."""
        ahead = f"weights_part + {panel.part_size}"
        arguments = f"lines, 0, hops, 1, hidden, {offset}, weights_part, {ahead}, sums_part, 0"
        products = Products.F64 if self.dtype is DType.F64 else Products.F32
        *taller, last = (tile_name(height, panel.vectors, products) for height in panel.heights)
        for place, name in enumerate(taller):
            yield f"{'elif' if place else 'if'} size > {panel.heights[place + 1]}:"
            yield f"    {name}({arguments})"
        final = f"{last}({arguments})"
        yield from ["else:", f"    {final}"] if taller else [final]

    def _formulas(self, phase: Phase, panel: Panel) -> Iterator[str]:
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
            part, column = divmod(at * panel.columns, panel.part)
            start = part * panel.sums // panel.parts + column * size
            yield f"r{gate}_line = sums + slot * {panel.part * size} + {start}"
        for number in range(self.held):
            place = f"side * held_0 + {number} * held_1 + first_unit * {size}"
            yield f"p{number}_line = held + {place}"
        count = "count" if self.hidden % panel.columns else str(panel.columns)
        loop = [f"for index in range({count}):", *indent(1, self._lines(phase, names))]
        ends = [line.name for line in phase.lines if line.name.startswith("new_")]
        if not self.has_lengths or not ends:
            yield from loop
            return
        yield "if at < load_int64(ends, first_row + row):"
        yield from indent(1, loop)
        yield "else:"
        for name in ends:
            yield from indent(1, self._copy(names[name], f"{name[4:]}_line", count))
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
                yield f"{value} = {op_text(Value(step.op, step.dtype, step.operands), operands)}"
                values.append(value)
            yield f"{line.name} = {values[-1]}"
            if line.name in places:
                yield f"write_{dtype}({places[line.name]}, index, {line.name})"
            if line.name == "new_h":
                yield f"write_{dtype}(result_line, index, {line.name})"

    def _number(self, bits: bytes) -> str:
        """The name of a number of the formulas."""
        number = int.from_bytes(bits.ljust(8, b"\0"), "little", signed=True)
        if number not in self.numbers:
            self.numbers.append(number)
        return f"n{self.numbers.index(number)}"
