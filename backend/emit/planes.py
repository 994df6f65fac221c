"""Pools along the contiguous axis, one axis after the other.

    for each unit (of the outer axes, and of blocks of result rows)
        rows of the operand, with the fill around them, go to scratch: for stride s as s arrays,
        so that what one tap sees of a row is contiguous
        the taps of each row are combined                       (where results share them)
        these rows are combined, finished and stored

No loop asks what lies outside: rows of scratch start and end with the fill. Running maxima of
floats are the integers that order them.
"""

from __future__ import annotations

from dataclasses import replace

from satura.backend.cache_lines import whole_lines
from satura.backend.emit.body import Arguments, BodyText
from satura.backend.emit.code import Code
from satura.backend.emit.loops import share, start_odometer, step_odometer
from satura.backend.emit.reductions import as_key, has_key, identity_text, step_text
from satura.backend.emit.text import indent, kernel_text
from satura.backend.lower.body import Access, Nest, Pointer, Reduction
from satura.backend.lower.canonical import renumber
from satura.backend.lower.planes import Planes, WindowAxis
from satura.backend.sizes.size import defer, largest, smallest
from satura.backend.target import host_target
from satura.rewrite.types.tensor_type import DType

SCRATCH = 12 * 1024  # bytes of rows in flight: they stay in the first-level cache
SHORT_STRIDE = 4  # up to which a stride stands in the text, so that LLVM can shuffle
KEYS = {DType.F32: DType.I32, DType.F64: DType.I64}


def plane_code(name: str, planes: Planes, work: int) -> Code:
    """The kernel of a pool along the contiguous axis."""
    return PlaneWriter(planes).code(name, work)


class PlaneWriter:
    """Writes one kernel."""

    scratch = SCRATCH

    def __init__(self, planes: Planes) -> None:
        self.planes = planes
        self.high, self.wide = planes.high, planes.wide
        self.reduction = Reduction(planes.function, planes.dtype.compute, 0)
        self.keyed = has_key(self.reduction)
        self.kind = KEYS[planes.dtype.compute] if self.keyed else planes.dtype.compute
        self.size = self.kind.itemsize
        self.shift = -self.wide.lo % self.wide.stride  # the phases of an operand start together
        self.lo = self.wide.lo + self.shift
        self.phases = sorted({self._place(tap)[1] for tap in range(self.wide.taps)})
        self.shares = self._shares()
        self.arrays = len(self.phases) + self.shares
        seen = positions(self.wide, self.wide.results) + self.shift
        self.pitch = -(-seen // self.wide.stride)
        self.block = self._block()
        self.arguments = Arguments()
        self.setup: list[str] = []

    def _place(self, tap: int) -> tuple[int, int]:
        """How far on, and in which phase's rows, the first result finds a tap."""
        return divmod(self.shift + tap * self.wide.dilation, self.wide.stride)

    def _block(self) -> int:
        """Result rows of one unit: units are about equal."""
        row = self.pitch * self.size * self.arrays
        high = self.high
        return _rows_of_unit(high.results, self.scratch, row, high.span, high.stride)

    def _shares(self) -> bool:
        """Whether what rows give to results is computed once, in an array of its own."""
        return min(self.wide.taps, self.high.taps) > 1

    @property
    def lanes(self) -> int:
        return host_target().vector_bytes // self.size

    def _blank_at(self) -> int:
        """Where in the last array one element of the fill stands, for vectors beyond a row."""
        rows = positions(self.high, self.block)
        return whole_lines((rows * self.pitch + self.wide.span + self.lanes) * self.size)

    def _plane_bytes(self) -> int:
        """The size of one array of scratch."""
        return self._blank_at() + 8

    def code(self, name: str, work: int) -> Code:
        """The kernel's text and arguments."""
        new = self.arguments.new
        outer = [f"i{axis}" for axis in range(len(self.planes.after.extents) - 2)]
        extents = [new(extent) for extent in self.planes.after.extents[:-2]]
        blocks, block = new(-(-self.high.results // self.block)), new(self.block)
        plane = whole_lines(self._plane_bytes())
        self.plane = plane
        scratch = self.arrays * plane + whole_lines(self._seen_of_row() * self.size)
        region, total, step = new(Pointer(("scratch", 0))), new(scratch), new(plane)
        self.setup.append(f"plane0 = {region} + thread * {total}")
        for at in range(1, self.arrays):
            self.setup.append(f"plane{at} = plane{at - 1} + {step}")
        self.across = new(self.pitch)
        self.line = new(self.pitch * self.size)
        self.stride = new(self.high.stride)
        self.setup += self._fill_lines(self.arrays * plane // self.size)
        unit = [
            f"top = part * {block}",
            f"bottom = min(top + {block}, {new(self.high.results)})",
            f"first = top * {self.stride} - {new(self.high.lo)}",
            f"rows = (bottom - top - 1) * {self.stride} + {new(self.high.span)}",
            *self._operand(outer), *self._rows_combined(), *self._finished(outer),
        ]  # fmt: skip
        loops, lengths = [*outer, "part"], [*extents, blocks]
        lines = [
            "at = args", *self.arguments.lines(), f"count = {' * '.join(lengths)}",
            *share("count"), *self.setup, *start_odometer(loops, lengths, "lo"),
            "for unit in range(hi - lo):",
            *indent(1, [*unit, *step_odometer(loops, lengths)]),
        ]  # fmt: skip
        text = kernel_text(lines, short=True)
        return Code(name, text, tuple(self.arguments.numbers), work, scratch)

    def _operand(self, outer: list[str]) -> list[str]:
        """Lines that bring the rows of one unit to scratch: in whole vectors where they are read
        as they are, as a row or as two, and by way of one row where two are computed.

        Only what stands for the operand's elements is written: the rest is filled already.
        """
        access = self._copied()
        step, element = self.wide.stride, self.planes.dtype.compute
        is_even = step == 1 or (step == 2 and len(self.phases) == 2)
        if not is_even or element not in KEYS or (access is None and step == 1):
            return self._element_wise(outer)
        nest = renumber(self.planes.before)
        new, kind = self.arguments.new, self.kind.value
        body = BodyText(nest, [*outer, "seen"], (), "i", self.arguments, prefix="p_")
        block = body.block([nest.result])
        self.setup += body.setup
        starts, _ = self._starts_and_ends()
        count = new(self._seen_of_row())
        start, height, pitch = new(starts[0] * self.size), new(self.high.extent), self.across
        self.setup += [f"blank = plane{self.arrays - 1} + {new(self._blank_at())}"]
        self.setup += [f"put_{element.value}(blank, 0, plain_fill)"]
        blank = [
            f"for i in range({pitch}):",
            *indent(1, [f"put_{kind}(plane{at} + r * {self.line}, i, fill)"
                        for at in range(len(self.phases))]),
        ]  # fmt: skip
        key = f"_{self.reduction.function}" if self.keyed else ""
        copy = f"rows_f{8 * self.size}_{step}{key}"
        rest = f"{self.line}, {count}, blank, {new(self.plane)})"
        if access is not None:
            here = f"{body.row_base(access)}, {new(access.strides[-2])}, inner - outer"
            there = f"plane0 + outer * {self.line} + {start}"
            rows = ["seen = first + outer", *block.row, f"{copy}({here}, {there}, {rest}"]
        else:
            self.setup.append(f"whole = plane0 + {new(self.arrays * self.plane)}")
            put = f"put_{element.value}(whole, i, {block.names[nest.result]})"
            there = f"plane0 + r * {self.line} + {start}"
            rows = [
                "for r in range(outer, inner):",
                *indent(1, [
                    "seen = first + r", *block.row, f"for i in range({count}):",
                    *indent(1, [*block.inner, put]), f"{copy}(whole, 0, 1, {there}, {rest}",
                ]),
            ]  # fmt: skip
        return [
            "outer = min(max(0, 0 - first), rows)",
            f"inner = max(outer, min(rows, {height} - first))",
            "for r in range(outer):", *indent(1, blank),
            "for r in range(inner, rows):", *indent(1, blank), *rows,
        ]  # fmt: skip

    def _copied(self) -> Access | None:
        """Where the operand is, if rows of it are what scratch has."""
        (value, *others) = renumber(self.planes.before).values
        access = value.access
        if access is None or access.extras or value.op != "load" or others or value.operands:
            return None
        is_same_type = value.dtype is self.planes.dtype is self.planes.dtype.compute
        return access if is_same_type and access.strides[-1] == self.size else None

    def _starts_and_ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Between which elements of each phase's rows those of the operand are."""
        starts, ends = zip(*map(self._inside, self.phases), strict=True)
        return starts, ends

    def _seen_of_row(self) -> int:
        """How many elements of a row of the operand are seen, from the first on."""
        starts, ends = self._starts_and_ends()
        return largest(
            0, *(self.wide.stride * (end - starts[0] - 1) + at + 1 for at, end in enumerate(ends))
        )

    def _element_wise(self, outer: list[str]) -> list[str]:
        """The same by loops over the elements of each phase."""
        new, kind = self.arguments.new, self.kind.value
        starts, ends = self._starts_and_ends()
        start, common = new(starts[0]), smallest(*ends) - starts[0]
        lines: list[str] = []
        copy: list[str] = []
        fill: list[str] = []
        tails: list[str] = []
        for at, phase in enumerate(self.phases):
            body = BodyText(
                self._phase(phase), [*outer, "seen"], (), "i", self.arguments, start,
                prefix=f"p{at}_", literals=range(1, 8 * SHORT_STRIDE + 1),
            )  # fmt: skip
            block = body.block([body.nest.result])
            self.setup += body.setup
            value = self._held(block.names[body.nest.result])
            each = [*block.inner, f"put_{kind}(there{at}, i, {value})"]
            lines.append(f"there{at} = plane{at} + r * {self.line} + {start} * {self.size}")
            lines += block.row
            copy += each
            tail = f"for i in range({new(common)}, {new(ends[at] - starts[0])}):"
            tails += [tail, *indent(1, each)]
            fill += [f"for i in range({new(ends[at] - starts[0])}):"]
            fill += indent(1, [f"put_{kind}(there{at}, i, fill)"])
        inside = [f"for i in range({new(common)}):", *indent(1, copy), *tails]
        height = new(self.high.extent)
        lines += [f"if inside(seen, {height}):", *indent(1, inside), "else:", *indent(1, fill)]
        return ["for r in range(rows):", *indent(1, ["seen = first + r", *lines])]

    def _fill_lines(self, count: int) -> list[str]:
        """Lines that write the fill to all `count` elements of a thread's scratch."""
        fill = self.arguments.scalar(self.planes.fill)
        return [
            f"plain_fill = {fill}",
            f"fill = {self._held('plain_fill')}",
            f"for i in range({self.arguments.new(count)}):",
            *indent(1, [f"put_{self.kind.value}(plane0, i, fill)"]),
        ]

    def _inside(self, phase: int) -> tuple[int, int]:
        """Which elements of a phase's rows stand for elements of the operand."""
        stride, lo = self.wide.stride, self.lo
        start, end = lo // stride, -((phase - lo - self.wide.extent) // stride)
        return start, smallest(largest(start, end), self.pitch)

    def _phase(self, phase: int) -> Nest:
        """The operand's nest, whose last loop runs over the elements of one phase."""

        def at_phase(access: Access) -> Access:
            step, start = access.strides[-1], access.start
            hop = (phase - self.lo) * step
            if isinstance(start, Pointer):
                start = replace(start, offset=start.offset + hop)
            else:
                start += hop
            return Access(start, (*access.strides[:-1], step * self.wide.stride), access.extras)

        nest = renumber(self.planes.before)
        values = tuple(
            value if value.access is None else replace(value, access=at_phase(value.access))
            for value in nest.values
        )
        return replace(nest, values=values)

    def _held(self, value: str) -> str:
        return as_key(self.reduction, value) if self.keyed else value

    def _combined(self, first: str, second: str) -> str:
        if self.keyed:
            return f"{self.reduction.function}({first}, {second})"
        return step_text(self.reduction.function, first, second)

    def _across(self, row: str) -> str:
        """What combines the taps of one row, of which `row` and a phase's number are the name."""
        total = ""
        for tap in range(self.wide.taps):
            hop, phase = self._place(tap)
            value = f"get_{self.kind.value}({row}{self.phases.index(phase)}, i + {hop})"
            total = self._combined(total, value) if total else value
        return total

    def _rows_combined(self) -> list[str]:
        """Lines that combine the taps of each row, in the last array."""
        if not self.shares:
            return []
        total = self._across("plane")
        put = f"put_{self.kind.value}(plane{self.arrays - 1}, i, {total})"
        return [f"for i in range(rows * {self.across}):", *indent(1, [put])]

    def _finished(self, outer: list[str]) -> list[str]:
        """Lines that combine rows, and finish and store the results."""
        nest = renumber(self.planes.after)
        body = BodyText(nest, [*outer, "y"], (), "i", self.arguments, prefix="e_")
        hop = self.arguments.new(self.high.dilation * self.pitch * self.size)
        lines = [f"hop = (y - top) * {self.stride} * {self.line}"]
        total = ""
        for tap in range(self.high.taps):
            if self.shares:
                row = f"get_{self.kind.value}(row{tap}_{self.arrays - 1}, i)"
            else:
                row = self._across(f"row{tap}_")
            for at in [self.arrays - 1] if self.shares else range(self.arrays):
                lines.append(f"row{tap}_{at} = plane{at} + hop")
            lines.append(f"hop += {hop}")
            total = self._combined(total, row) if total else row
        if self.keyed:
            total = f"key_value({total})"
        elif self.reduction.function == "sum":
            total = step_text("sum", identity_text(self.reduction), total)
        given = {i: "total" for i, value in enumerate(nest.values) if value.op == "accumulator"}
        block = body.store(body.block([nest.result], given))
        self.setup += body.setup
        width = self.arguments.new(self.wide.results)
        inner = [f"total = {total}", *block.inner]
        lines += [*block.row, f"for i in range({width}):", *indent(1, inner)]
        return ["for y in range(top, bottom):", *indent(1, lines)]


@defer
def _rows_of_unit(results: int, scratch: int, row: int, span: int, stride: int) -> int:
    """How many rows of `results` one unit has, if rows of the operand take `row` bytes each."""
    rows = max(1, scratch // row)
    most = max(1, min(results, (rows - span) // stride + 1))
    units = -(-results // most)
    return -(-results // units)


def positions(axis: WindowAxis, results: int) -> int:
    """How many positions of an axis `results` neighbouring results see."""
    return (results - 1) * axis.stride + axis.span
