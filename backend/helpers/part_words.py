"""Words of parts: what an f32 is split into, and the panels of weights that are split.

Word j of a chunk of c words holds elements j and c + j of a position, or of a column of a panel; a
chunk has its high parts first, then the middle and the low ones. What is beyond the last element is
zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from satura.backend.helpers.vector import F32, INT32, INT64, Code
from satura.backend.matrices import EDGE, LINE, VECTORS

HIGH, _HALF = 0xFFFF0000, 0x8000


def vector_of(scalar: ir.Type) -> ir.VectorType:
    """16 of them: a line."""
    return ir.VectorType(scalar, EDGE)


def all_of(value: int) -> ir.Constant:
    """16 times this word."""
    return ir.Constant(vector_of(INT32), [value] * EDGE)


def words_of_parts(code: Code, first: ir.Value, second: ir.Value) -> list[ir.Value]:
    """Of each part the words that hold it of two vectors of numbers."""
    builder = code.builder
    pairs = zip(_parts(code, first), _parts(code, second), strict=True)
    return [builder.or_(builder.lshr(low, all_of(16)), high) for low, high in pairs]


def _parts(code: Code, bits: ir.Value) -> list[ir.Value]:
    """The parts of 16 finite numbers, each in the upper half of a word."""
    builder, floats = code.builder, vector_of(F32)

    def without(whole: ir.Value, part: ir.Value) -> ir.Value:
        left = builder.fsub(builder.bitcast(whole, floats), builder.bitcast(part, floats))
        return builder.bitcast(left, vector_of(INT32))

    high = builder.and_(bits, all_of(HIGH))
    rest = without(bits, high)
    middle = builder.and_(builder.add(rest, all_of(_HALF)), all_of(HIGH))
    return [high, middle, without(rest, middle)]


@dataclass(frozen=True)
class SplitChunk:
    """A chunk of a panel that is split: its f32 lines start at `source`, of which `left` are there,
    and its words of parts at `target`."""

    source: ir.Value
    left: ir.Value
    target: ir.Value
    chunk: ir.Value

    def split(self, code: Code, j: ir.Value, zeros: ir.Value) -> None:
        """Writes the words number j of all columns. At `zeros` there is a line of zeros."""
        builder = code.builder
        line = code.integer(VECTORS * LINE)
        part = builder.mul(self.chunk, line)
        places = []
        for k in (j, code.add(self.chunk, j)):
            is_there = builder.icmp_signed("<", k, self.left)
            place = code.add(self.source, builder.mul(k, line))
            places.append(code.choose(is_there, place, zeros))
        target = code.add(self.target, builder.mul(j, line))
        for n in range(VECTORS):
            both = [code.load(place, n, vector_of(INT32)) for place in places]
            here = target
            for words in words_of_parts(code, *both):
                code.store(here, n, words)
                here = code.add(here, part)

    def split_all(self, code: Code, count: ir.Value, zeros: ir.Value) -> None:
        """Writes the first `count` words of all columns."""

        def word(j: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self.split(code, j, zeros)
            return []

        code.loop(count, [], word)


def line_of_zeros(code: Code) -> ir.Value:
    """The address of a line of zeros that is as wide as a panel."""
    place = code.builder.alloca(vector_of(INT32), size=INT32(VECTORS))
    place.align = LINE
    address = code.builder.ptrtoint(place, INT64)
    for n in range(VECTORS):
        code.store(address, n, all_of(0))
    return address
