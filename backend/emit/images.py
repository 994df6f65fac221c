"""Convolutions of images, one channel per group: channels lie side by side.

    for each unit (of the outer axes, of channels that a few vectors hold, and of rows of results)
        for each row of results
            rows of the operand that are new are computed, to scratch
            a microkernel sums the taps
            the sums are finished and stored

So every element is computed once, not once per tap or once for some neighbours, and the sums of
many taps stay in registers. Scratch has as many rows as one result sees, between borders of the
fill; a row below takes the place of the one that nobody sees any more.
"""

from __future__ import annotations

from math import prod

from satura.backend.cache_lines import whole_lines
from satura.backend.emit.body import Arguments, BodyText
from satura.backend.emit.code import Code
from satura.backend.emit.loops import share, start_odometer, step_odometer
from satura.backend.emit.text import indent, kernel_text
from satura.backend.emit.windows import RESULTS, UNROLLED, neighbours, parts
from satura.backend.lower.body import Nest, Pointer
from satura.backend.lower.planes import Planes
from satura.backend.sizes.size import is_fixed, largest, smallest, where_large
from satura.backend.target import host_target

OTHERS = 2  # registers besides those of weights and sums
SCRATCH = 32 * 1024  # bytes of rows and sums in flight, unless one vector of channels needs more
MOST_VECTORS = 4
LEAST_ROWS = 4  # of results in a unit: what two units see is computed twice


def serves_images(planes: Planes) -> bool:
    """Whether this takes less time than the windows of `emit/windows.py`, which copy nothing."""
    taps = planes.high.taps * planes.wide.taps
    is_held = taps + RESULTS + OTHERS <= host_target().registers
    return planes.is_computed or (taps > UNROLLED and is_held)


def image_code(name: str, planes: Planes, threads: int, work: int) -> Code:
    """The kernel of a convolution of images, for about `threads` threads."""
    return ImageWriter(planes, threads).code(name, work)


class ImageWriter:
    """Writes one kernel. A line is what scratch has of one position: `vectors` of channels."""

    def __init__(self, planes: Planes, threads: int) -> None:
        self.planes, self.threads = planes, threads
        self.high, self.wide = planes.high, planes.wide
        self.kind = planes.dtype.compute
        self.channels = planes.after.extents[-1]
        self.lanes = host_target().vector_bytes // self.kind.itemsize
        self.taps = self.high.taps * self.wide.taps
        self.seen = (self.wide.results - 1) * self.wide.stride + self.wide.span
        self.vectors = self._vectors()
        self.block = self.vectors * self.lanes
        self.line = self.block * self.kind.itemsize
        self.results = neighbours(self.wide.results)
        self.arguments = Arguments()
        self.setup: list[str] = []

    def _vectors(self) -> int:
        """Of how many vectors a unit has the channels: few are idle, and scratch stays near."""
        if not is_fixed(self.channels):
            return 1
        whole = -(-self.channels // self.lanes)
        line = self.lanes * self.kind.itemsize
        most = max(1, where_large(SCRATCH // (self._lines() * line)))
        counts = range(1, min(most, MOST_VECTORS, whole) + 1)
        return min(counts, key=lambda count: (-(-whole // count) * count, -count))

    def _lines(self) -> int:
        """How many lines scratch has: rows of the operand, one of the fill, sums and weights."""
        return (self.high.span + 1) * self.seen + self.wide.results + self.taps

    def code(self, name: str, work: int) -> Code:
        """The kernel's text and arguments."""
        new = self.arguments.new
        extents = self.planes.after.extents
        outer = [f"i{axis}" for axis in range(len(extents) - 3)]
        blocks = -(-self.channels // self.block)
        units = prod(extents[:-3]) * blocks
        cut = new(parts(self.high.results // LEAST_ROWS, units, self.threads))
        loops, lengths = [*outer, "block", "part"], [*map(new, extents[:-3]), new(blocks), cut]
        table = whole_lines(8 * self.high.taps)
        per_thread = table + whole_lines(self._lines() * self.line)
        region, rows = new(Pointer(("scratch", 0))), new(self.high.results)
        self.pitch = new(self.seen * self.line)
        self.setup += [
            f"table = {region} + thread * {new(per_thread)}", f"ring = table + {new(table)}",
            f"blank = ring + {new(self.high.span)} * {self.pitch}",
            f"sums = blank + {self.pitch}",
            f"weights = sums + {new(self.wide.results * self.line)}",
            *self._fill_lines(per_thread - table),
        ]  # fmt: skip
        self.width = str(self.block)
        first = [f"first = block * {self.block}"]
        if not is_fixed(self.channels) or self.channels % self.block:
            first.append(f"width = min({self.block}, {new(self.channels)} - first)")
            self.width = "width"
        stride, lo = new(self.high.stride), new(self.high.lo)
        row = [
            f"top = y * {stride} - {lo}", *self._operand(outer), *self._summed(),
            *self._finished(outer),
        ]  # fmt: skip
        unit = [
            *first, *self._weights(), "known = 0",
            f"for y in range(part * {rows} // {cut}, (part + 1) * {rows} // {cut}):",
            *indent(1, row),
        ]  # fmt: skip
        lines = [
            "at = args", *self.arguments.lines(), f"count = {' * '.join(lengths)}",
            *share("count"), *self.setup, *start_odometer(loops, lengths, "lo"),
            "for unit in range(hi - lo):",
            *indent(1, [*unit, *step_odometer(loops, lengths)]),
        ]  # fmt: skip
        numbers = tuple(self.arguments.numbers)
        return Code(name, kernel_text(lines, short=True), numbers, work, per_thread)

    def _fill_lines(self, size: int) -> list[str]:
        """Lines that write the fill to all of a thread's scratch, so that it stands in borders."""
        fill = self.arguments.scalar(self.planes.fill)
        count = self.arguments.new(size // self.kind.itemsize)
        put = f"put_{self.kind.value}(ring, i, fill)"
        return [f"fill = {fill}", f"for i in range({count}):", *indent(1, [put])]

    def _body(self, nest: Nest, loops: list[str], prefix: str) -> BodyText:
        return BodyText(nest, loops, (), "i", self.arguments, "first", prefix=prefix)

    def _weights(self) -> list[str]:
        """Lines that copy the weights of a unit's channels."""
        nest = self.planes.factors
        assert nest is not None
        body = self._body(nest, ["h", "w", "u"], "w_")
        block = body.block([nest.result])
        self.setup += body.setup
        put = f"put_{self.kind.value}(there, i, {block.names[nest.result]})"
        each = [*block.row, f"for i in range({self.width}):", *indent(1, [*block.inner, put])]
        return [
            "u = 0", "there = weights", f"for h in range({self.arguments.new(self.high.taps)}):",
            *indent(1, [f"for w in range({self.arguments.new(self.wide.taps)}):"]),
            *indent(2, [*each, f"there += {self.line}"]),
        ]  # fmt: skip

    def _operand(self, outer: list[str]) -> list[str]:
        """Lines that compute the rows which are seen from `top` on, and are not known yet."""
        new, nest = self.arguments.new, self.planes.before
        body = self._body(nest, [*outer, "row", "x"], "p_")
        block = body.block([nest.result])
        self.setup += body.setup
        put = f"put_{self.kind.value}(there, i, {block.names[nest.result]})"
        count = largest(0, smallest(self.wide.extent, self.seen - self.wide.lo))
        each = [
            *block.row, f"for i in range({self.width}):", *indent(1, [*block.inner, put]),
            f"there += {self.line}",
        ]  # fmt: skip
        start = new(self.wide.lo * self.line)
        return [
            f"below = min(top + {new(self.high.span)}, {new(self.high.extent)})",
            "for row in range(max(known, top), below):",
            *indent(1, [f"there = {self._slot('row')} + {start}"]),
            *indent(1, [f"for x in range({new(count)}):"]),
            *indent(2, each),
            "known = max(known, below)",
        ]  # fmt: skip

    def _slot(self, row: str) -> str:
        """Where a row of the operand stands."""
        return f"ring + {row} % {self.arguments.new(self.high.span)} * {self.pitch}"

    def _summed(self) -> list[str]:
        """Lines that sum the taps of a row of results."""
        new, wide = self.arguments.new, self.wide
        geometry = f"{self.high.taps}x{wide.taps}_{wide.stride}_{wide.dilation}"
        tile = f"image{self.results}_f{8 * self.kind.itemsize}_{geometry}_{self.vectors}"
        return [
            f"for h in range({new(self.high.taps)}):",
            *indent(1, [
                f"row = top + h * {new(self.high.dilation)}",
                f"is_inside = inside(row, {new(self.high.extent)})",
                f"there = choose(is_inside, {self._slot('row')}, blank)",
                "store_int64(table, h, there)",
            ]),
            f"{tile}(table, weights, sums, {new(wide.results)})",
        ]  # fmt: skip

    def _finished(self, outer: list[str]) -> list[str]:
        """Lines that finish and store a row of results."""
        nest = self.planes.after
        body = self._body(nest, [*outer, "y", "x"], "e_")
        given = {i: "total" for i, value in enumerate(nest.values) if value.op == "accumulator"}
        block = body.store(body.block([nest.result], given))
        self.setup += body.setup
        total = f"total = get_{self.kind.value}(there, i)"
        each = [
            *block.row, f"for i in range({self.width}):", *indent(1, [total, *block.inner]),
            f"there += {self.line}",
        ]  # fmt: skip
        count = self.arguments.new(self.wide.results)
        return ["there = sums", f"for x in range({count}):", *indent(1, each)]
