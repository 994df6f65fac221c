"""Convolutions along the contiguous axis, of one channel per group: planes with weights.

Rows come to scratch as those of a pool do. A microkernel sums the taps of several rows at a time,
in whole vectors; excess elements at the end are overwritten by the next row. So the sums of a block
lie side by side, and where the results do too they are finished as one long row.
"""

from __future__ import annotations

from satura.backend.cache_lines import whole_lines
from satura.backend.emit.body import BodyText
from satura.backend.emit.code import Code
from satura.backend.emit.planes import PlaneWriter, positions
from satura.backend.emit.text import indent
from satura.backend.lower.body import Nest
from satura.backend.lower.canonical import renumber
from satura.backend.lower.planes import Planes
from satura.backend.sizes.size import largest, where_large
from satura.backend.target import host_target

SCRATCH = 20 * 1024  # bytes of rows and sums in flight
_SLOWER_OF_WIDEST = {7: 8, 4: 9}  # rows of results at a time, by what one of them costs:
_SLOWER = {4: 1}  # seven need 32 registers, and products that read memory


def convolved_plane_code(name: str, planes: Planes, work: int) -> Code:
    """The kernel of a convolution along the contiguous axis."""
    return ConvolvedWriter(planes).code(name, work)


class ConvolvedWriter(PlaneWriter):
    """Writes one kernel; the last array has the sums, an element of the fill, and the weights."""

    scratch = SCRATCH

    def _shares(self) -> bool:
        return True

    @property
    def rows(self) -> int:
        """How many rows of results the microkernel sums at a time: a number that wastes little."""
        slower = _SLOWER_OF_WIDEST if host_target().vector_bytes == 64 else _SLOWER
        results = where_large(self.high.results)  # what is best for each number makes no class
        return min(slower, key=lambda rows: -(-results // rows) * rows * slower[rows])

    def _block(self) -> int:
        """Result rows of one unit, as many as some groups have."""
        return -(-super()._block() // self.rows) * self.rows

    @property
    def sums_bytes(self) -> int:
        """How many bytes the sums need, with what is too much."""
        return whole_lines((self.block * self.wide.results + self.lanes) * self.size)

    def _plane_bytes(self) -> int:
        rows = positions(self.high, self.block)
        seen = (rows * self.pitch + self.wide.span + self.lanes) * self.size
        weights = self.high.taps * self.wide.taps * self.size + 8
        return largest(seen, self.sums_bytes + weights)

    def _blank_at(self) -> int:
        return self.sums_bytes

    def _rows_combined(self) -> list[str]:
        """Lines that copy the weights of a channel, and sum the taps of all rows."""
        new, kind = self.arguments.new, self.kind.value
        high, wide = self.high.taps, self.wide.taps
        sums = f"plane{self.arrays - 1}"
        self.setup.append(f"weights = {sums} + {new(self.sums_bytes + 8)}")
        assert self.planes.factors is not None
        nest = renumber(self.planes.factors)
        body = BodyText(nest, ["i0", "tap"], ("j",), "i", self.arguments, prefix="w_")
        copy: list[str] = []
        for tap in range(wide):
            block = body.block([nest.result], taps=(str(tap),), suffix=f"t{tap}")
            copy += [*block.row, *block.middle]
            place = f"weights + tap * {wide * self.size}, {tap}"
            copy.append(f"put_{kind}({place}, {block.names[nest.result]})")
        self.setup += body.setup
        found = (self._place(tap) for tap in range(wide))
        places = "".join(f"_{hop}p{self.phases.index(phase)}" for hop, phase in found)
        moves = f"{high}_{self.high.stride}_{self.high.dilation}"
        tile = f"window{self.rows}_f{8 * self.size}_{moves}_at{places}"
        pitch = new(self.wide.results * self.size)
        vectors = new(-(-self.wide.results // self.lanes))
        call = (
            f"{tile}(plane0, {self.line}, {new(self.plane)}, weights, {sums}, {pitch}, {vectors}, "
            f"(bottom - top + {self.rows - 1}) // {self.rows})"
        )
        return [
            f"for tap in range({new(high)}):", *indent(1, copy),
            call,
        ]  # fmt: skip

    def _finished(self, outer: list[str]) -> list[str]:
        """Lines that finish and store the sums of all rows."""
        nest = renumber(self.planes.after)
        body = BodyText(nest, [*outer, "y"], (), "i", self.arguments, prefix="e_")
        given = {i: "total" for i, value in enumerate(nest.values) if value.op == "accumulator"}
        block = body.store(body.block([nest.result], given))
        self.setup += body.setup
        width = self.arguments.new(self.wide.results)
        sums = f"plane{self.arrays - 1}"
        if _is_flat(nest):
            inner = [f"total = get_{self.kind.value}({sums}, i)", *block.inner]
            loop = f"for i in range((bottom - top) * {width}):"
            return ["y = top", *block.row, loop, *indent(1, inner)]
        row = f"row = {sums} + (y - top) * {width} * {self.size}"
        inner = [f"total = get_{self.kind.value}(row, i)", *block.inner]
        lines = [row, *block.row, f"for i in range({width}):", *indent(1, inner)]
        return ["for y in range(top, bottom):", *indent(1, lines)]


def _is_flat(nest: Nest) -> bool:
    """Whether the last two loops of a nest step evenly through all that it reads and stores."""
    width = nest.extents[-1]
    return all(each.strides[-2] == each.strides[-1] * width for each in nest.accesses())
