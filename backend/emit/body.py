"""The straight-line part of a kernel as text: values at the loop level where they belong.

Numbers become arguments, so equal structures give equal text.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from satura.backend.emit.text import indent, op_text, report_text, zero
from satura.backend.lower.body import Access, Argument, Nest, Pointer, Value, needed_values
from satura.backend.lower.rounding import float_of, unbounded
from satura.backend.sizes.size import is_fixed
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType


class Level(IntEnum):
    """Where a line of a kernel stands."""

    SETUP = 0  # before all loops
    ROW = 1  # once per iteration of the outer loops
    MIDDLE = 2  # inside the middle loops
    INNER = 3  # inside the inner loop


@dataclass
class Arguments:
    """Arguments in the order in which the text asks for them."""

    prefix: str = ""
    numbers: list[Argument] = field(default_factory=list)

    def new(self, number: Argument) -> str:
        """The name that stands for `number`."""
        self.numbers.append(number)
        return f"{self.prefix}a{len(self.numbers) - 1}"

    def scalar(self, scalar: Scalar) -> str:
        """The text of a number of its dtype."""
        return self.element(scalar.dtype, int.from_bytes(scalar.bits, "little"))

    def element(self, dtype: DType, bits: int) -> str:
        """The text of the element with this bit pattern, which becomes an argument."""
        return f"scalar_{dtype.value}({self.new(bits - (1 << 64) * (bits >> 63))})"

    def lines(self, table: str = "at", first: int = 0) -> list[str]:
        """Lines that read every argument from word `first` of a table on."""
        return [
            f"{self.prefix}a{i} = load_int64({table}, {first + i})"
            for i in range(len(self.numbers))
        ]


@dataclass
class Block:
    """Lines per level, and what the values are called.

    `taps` say where the middle loops are: by their variables, or by numbers in a block for one of
    their iterations. Names that the lines inside them set end in `suffix`.
    """

    names: dict[int, str]
    taps: tuple[str, ...]
    suffix: str = ""
    setup: list[str] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    middle: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    bases: dict[Access, str] = field(default_factory=dict)

    def lines(self, level: Level) -> list[str]:
        """The lines of a level, to append to."""
        return (self.setup, self.row, self.middle, self.inner)[level]


_LEAST = "(-9223372036854775807 - 1)"  # of i64


class BodyText:
    """Writes the values of one nest.

    `outer`, `middle` and `inner` name the loops' variables; `start` is what the inner loop's
    variable 0 stands for, None for 0. `reduced_level` is ROW where reductions end in variables
    (their names must be given), INNER where they end in arrays over the inner loop. Names that the
    text sets start with `prefix`. Strides of the middle and inner loops that are in `literals`
    stand in the text, so that LLVM knows them. `page` names the address of as many elements as the
    inner loop can read, of zeros or of a scalar's value: masked reads go there instead of asking
    the mask for every element. With `is_told_last` the inner loop keeps indices that are outside,
    and the lines `last` tell of them: a loop that stores them itself has no vectors.
    """

    def __init__(
        self, nest: Nest, outer: Sequence[str], middle: Sequence[str], inner: str,
        arguments: Arguments, start: str | None = None, reduced_level: Level = Level.ROW,
        prefix: str = "", page: Callable[[int | None], str] | None = None,
        literals: Container[int] = (), is_told_last: bool = False,
    ) -> None:  # fmt: skip
        self.prefix = prefix
        self.is_told_last = is_told_last
        self.last: list[str] = []
        self.nest = nest
        self.outer, self.middle, self.inner = tuple(outer), tuple(middle), inner
        self.arguments = arguments
        self.start = start
        self.reduced_level = reduced_level
        self.page = page
        self.literals = literals
        self.setup: list[str] = []
        self.names: dict[int, str] = {}
        self._slots: dict[Access, _Slot] = {}
        self._rows: dict[Access, str] = {}
        self._status: str | None = None
        self.levels = self._levels()

    def _levels(self) -> list[Level]:
        levels: list[Level] = []
        for value in self.nest.values:
            level = max((levels[operand] for operand in value.operands), default=Level.SETUP)
            if value.access is not None:
                level = max(level, self._access_level(value.access, levels))
            if value.op == "reduced":
                level = self.reduced_level
            if value.op == "accumulator":
                level = Level.INNER
            levels.append(level)
        return levels

    def _access_level(self, access: Access, levels: Sequence[Level]) -> Level:
        level = max((levels[source] for source, _ in access.extras), default=Level.SETUP)
        if access.strides[-1]:
            return Level.INNER
        if any(access.strides[len(self.outer) : -1]):
            return max(level, Level.MIDDLE)
        moves = access.extras or any(access.strides)
        return max(level, Level.ROW if moves else Level.SETUP)

    def block(
        self, targets: Iterable[int], given: Mapping[int, str] | None = None,
        taps: tuple[str, ...] | None = None, suffix: str = "",
    ) -> Block:  # fmt: skip
        """Lines that compute `targets`; what an earlier block computed per row is used again.

        With `taps` the lines are for that iteration of the middle loops only.
        """
        names = {**self.names, **(given or {})}
        block = Block(names, self.middle if taps is None else taps, suffix)
        for index in needed_values(self.nest.values, targets, names):
            level = self.levels[index]
            name = f"{self.prefix}v{index}{suffix if level >= Level.MIDDLE else ''}"
            text = self._expression(index, block)
            lines = block.lines(level)
            lines.append(f"{name} = {text}")
            if self.nest.values[index].op == "report":
                lines += self._report(index, name, names)
            names[index] = name
            if level <= Level.ROW:
                self.names[index] = name
        self.setup += block.setup
        return block

    def _report(self, index: int, valid: str, names: Mapping[int, str]) -> list[str]:
        """Lines that tell of an index outside of its extent, or keep the largest to tell of it."""
        _, length, found = (names[at] for at in self.nest.values[index].operands)
        if not (self.is_told_last and self.levels[index] is Level.INNER):
            report = report_text(self._status_name(), 1, length, found)
            return [f"if not {valid}:", *indent(1, report)]
        kept = f"{self.prefix}outside{index}"
        start = f"{kept} = {_LEAST}"
        if start not in self.setup:
            self.setup.append(start)
            report = report_text(self._status_name(), 1, length, f"{kept} - {length} - {_LEAST}")
            self.last += [f"if {kept} != {_LEAST}:", *indent(1, report)]
        # Counted so, the least number is none of those outside, and their order stays.
        outside = f"choose({valid}, {_LEAST}, {found} + {length} + {_LEAST})"
        return [f"{kept} = max({kept}, {outside})"]

    def store(self, block: Block) -> Block:
        """`block`, which computes the nest's result, and the store of it."""
        target = self.nest.target
        level = max(self.levels[self.nest.result], self._access_level(target, self.levels))
        kind = self.nest.dtype
        text = self.at_result(f"write_{kind.value}", block)
        block.lines(max(level, Level.ROW)).append(f"{text}, {block.names[self.nest.result]})")
        return block

    def at_result(self, name: str, block: Block) -> str:
        """The beginning of a call that reads or writes an element of the nest's result."""
        return self._at(name, self.nest.target, self.nest.dtype.itemsize, block)

    def forget_rows(self) -> None:
        """From here on what there is once per row is computed anew."""
        self.names = {at: x for at, x in self.names.items() if self.levels[at] is Level.SETUP}
        self._rows = {}

    def row_base(self, access: Access) -> str:
        """The name of the address where `access` starts in a row; a block must have used it."""
        return self._rows[access]

    def _status_name(self) -> str:
        if self._status is None:
            self._status = self.arguments.new(Pointer(("status", 0)))
        return self._status

    def _at(self, name: str, access: Access, unit: int, block: Block) -> str:
        """The beginning of a call that reads or writes an element: `name(base, index`."""
        base, moving = self._address(access, unit, block)
        if not moving:
            return f"{name}({base}, 0"
        if moving == f"{self.inner}*{unit}":
            return f"{name}({base}, {self.inner}"
        return f"{name}_at({base}, {moving}"

    def _address(self, access: Access, unit: int, block: Block) -> tuple[str, str]:
        """Where `access` starts in the inner loop, and what the inner loop adds to it."""
        slot = self._slots.get(access)
        if slot is None:
            slot = self._slots[access] = self._slot(access, unit)
        terms: dict[Level, list[str]] = {Level.ROW: [], Level.MIDDLE: [], Level.INNER: []}
        for (source, _), scale in zip(access.extras, slot.scales, strict=True):
            terms[max(Level.ROW, self.levels[source])].append(f"{block.names[source]}*{scale}")
        base = self._rows.get(access)
        if base is None:
            sums = [f"{i}*{s}" for i, s in zip(self.outer, slot.outer, strict=False)]
            if self.start is not None and slot.inner:
                sums.append(f"{self.start}*{slot.inner}")
            base = slot.base
            if sums or terms[Level.ROW]:
                base = f"{self.prefix}q{slot.number}"
                block.row.append(f"{base} = {' + '.join([slot.base, *sums, *terms[Level.ROW]])}")
            self._rows[access] = base
        hop = _known_hop(slot.middle, block.taps)
        if terms[Level.MIDDLE] or (slot.middle and hop is None):
            hop = None
            if access not in block.bases:
                sums = [f"{j}*{s}" for j, s in zip(block.taps, slot.middle, strict=False)]
                name = f"{self.prefix}r{slot.number}{block.suffix}"
                block.middle.append(f"{name} = {' + '.join([base, *sums, *terms[Level.MIDDLE]])}")
                block.bases[access] = name
            base = block.bases[access]
        moving = [f"{self.inner}*{slot.inner}"] if slot.inner else []
        if hop:  # in the index, not the base: LLVM then sees that such stores stand side by side
            moving.append(str(hop))
        return base, " + ".join([*moving, *terms[Level.INNER]])

    def _slot(self, access: Access, unit: int) -> _Slot:
        """Arguments for the numbers of `access`. Strides of one level are all there or none."""
        new = self.arguments.new
        count = len(self.outer)
        moves = any(access.strides)
        middles = access.strides[count:-1]
        inner = access.strides[-1]
        return _Slot(
            len(self._slots),
            new(access.start),
            tuple(new(stride) for stride in access.strides[:count]) if moves else (),
            tuple(self._stride(stride) for stride in middles) if any(middles) else (),
            "" if not inner else str(unit) if inner == unit else self._inner_stride(inner),
            tuple(new(scale) for _, scale in access.extras),
        )

    def _stride(self, stride: int) -> str:
        return str(int(stride)) if self._is_literal(stride) else self.arguments.new(stride)

    def _is_literal(self, stride: int) -> bool:
        return is_fixed(stride) and stride in self.literals

    def _inner_stride(self, stride: int) -> str:
        """A stride of the inner loop. Where LLVM is told one that it does not know, it has vectors
        only for a stride of 1: of a sum it does not think so, and gathers and scatters."""
        if self._is_literal(stride) or not self.nest.is_dear:
            return self._stride(stride)
        return f"({self.arguments.new(stride - 1)} + 1)"

    def _expression(self, index: int, block: Block) -> str:
        value = self.nest.values[index]
        operands = [block.names[operand] for operand in value.operands]
        if value.op == "load":
            return self._load(index, value, operands, block)
        if value.op == "position":
            assert value.access is not None
            base, moving = self._address(value.access, 1, block)
            return f"{base} + {moving}" if moving else base
        if value.op == "argument":
            return self.arguments.new(value.literal)
        if value.op == "scalar":
            return self.arguments.element(value.dtype, value.literal)
        if value.op == "cast":
            return self._cast(value, block)
        if value.op == "exp" and self.nest.is_up_to_0(value.operands[0]):
            weight = self.nest.is_weight(index)
            return f"{'exp_or_0' if weight else 'exp_up_to_0'}({operands[0]})"
        return self._bounded(value, operands) or op_text(value, operands)

    def _cast(self, value: Value, block: Block) -> str:
        """A cast, of an earlier value where that gives the same and costs less.

        A cast to integers saturates, so bounds that are no narrower than the type's are left out.
        Integers of 8 bits less their zero point, a difference in 16 bits, are subtracted in f32,
        which is exact: so no vectors of 16 bits are widened.
        """
        (source,) = value.operands
        if value.dtype.is_integer:
            while (inner := unbounded(self.nest.values, source, value.dtype)) in block.names:
                source = inner
            return f"cast_{value.dtype.value}({block.names[source]})"
        below = self.nest.values[source]
        if value.dtype is DType.F32 and below.op == "sub" and below.dtype is DType.I16:
            octets, zero_point = (self.nest.values[operand] for operand in below.operands)
            parts = octets.operands[:1] if octets.op == "cast" else ()
            kinds = [self.nest.values[part].dtype for part in parts if part in block.names]
            if kinds in ([DType.I8], [DType.U8]) and _is_octet(zero_point):
                names = [block.names[part] for part in (*parts, below.operands[1])]
                return " - ".join(f"cast_f32({name})" for name in names)
        return f"cast_{value.dtype.value}({block.names[source]})"

    def _bounded(self, value: Value, operands: Sequence[str]) -> str | None:
        """The larger or smaller of a float and a scalar whose value is known, in an instruction or
        two; None for anything else."""
        if value.op not in ("max", "min") or value.dtype not in (DType.F32, DType.F64):
            return None
        for operand, other, bound in zip(value.operands, reversed(operands), operands, strict=True):
            found = self.nest.values[operand]
            if found.op != "scalar":
                continue
            number = float_of(found)
            is_zero, is_below = number == 0, bool(np.signbit(number))
            # Of two zeros the instruction may give the wrong one: -0.0 for max, 0.0 for min.
            if value.op == "max" and is_zero and not is_below:
                return f"relu({other})"
            is_min_of_minus_0 = value.op == "min" and is_zero and is_below
            if not np.isnan(number) and not is_min_of_minus_0:
                return f"{value.op}({other}, {bound})"
        return None

    def _load(self, index: int, value: Value, operands: Sequence[str], block: Block) -> str:
        assert value.access is not None
        read, unit = f"read_{value.dtype.value}", value.dtype.itemsize
        plain = value.access.strides[-1] == unit and not value.access.extras
        mask, *fill = value.operands or (None,)
        if mask is not None and self.page and plain and self.levels[mask] < Level.INNER:
            base, _ = self._address(value.access, unit, block)
            name = f"{self.prefix}m{index}{block.suffix}"
            page = self.page(fill[0] if fill else None)
            line = f"{name} = choose({operands[0]}, {base}, {page})"
            (block.middle if block.taps else block.row).append(line)
            return f"{read}({name}, {self.inner})"
        text = f"{self._at(read, value.access, unit, block)})"
        if mask is None:
            return text
        other = operands[1] if fill else zero(value.dtype)
        return f"({text} if {operands[0]} else {other})"


def _known_hop(strides: Sequence[str], places: Sequence[str]) -> int | None:
    """How many bytes on the middle loops are, where the text says where they stand."""
    if not strides or not all(text.isdigit() for text in (*strides, *places)):
        return None
    return sum(int(stride) * int(place) for stride, place in zip(strides, places, strict=True))


@dataclass(frozen=True)
class _Slot:
    """Names of the arguments of one access; `inner` may be the element size itself."""

    number: int
    base: str
    outer: tuple[str, ...]
    middle: tuple[str, ...]
    inner: str
    scales: tuple[str, ...]


def _is_octet(scalar: Value) -> bool:
    """Whether a value is an integer of 8 bits, signed or not, in 16 bits."""
    least, most = -128, 255
    return scalar.op == "scalar" and (scalar.literal - least) % (1 << 16) <= most - least
