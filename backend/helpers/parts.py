"""f32 as the sum of three bf16, for CPUs that multiply matrices of these: splits, and exact sums.

    x = high + middle + low,  of 8 bits each

The high part is cut off and the others are rounded, so that no part of a finite number overflows.
Word j of a chunk of c words holds elements j and c + j of a position, or of a column of a panel; a
chunk has its high parts first, then the middle and the low ones. What is beyond the last element is
zero.

Products of parts say nothing of infinities, inf · 0 would be among them; they may overflow where
their sum does not; and instructions on bf16 take numbers below 2^-126 for zero. So a split of rows
tells the largest magnitude. Rows for which it is too large or too small are copied `whole`: as f32
where the first two parts of a chunk would be, of the first elements of words and of the second
ones. They are multiplied by `exact_parts_RxV`.
"""

from __future__ import annotations

import re
from functools import cache, partial

from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.matrix_tile import first_words
from satura.backend.helpers.vector import F32, INT32, INT64, Code, outlined_helper
from satura.backend.matrices import EDGE, PARTS

_HIGH, _HALF, _MAGNITUDE = 0xFFFF0000, 0x8000, 0x7FFFFFFF
_WORD, _ADDRESS, _LINE = 4, 8, 4 * EDGE
_NAME = re.compile(r"exact_parts_(\d+)x(\d+)|row_of_parts|panel_of_parts_(\d+)")


@cache
def parts_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it is not about parts.

    `row_of_parts(source, target, elements, chunk, chunks, largest, whole)` writes a position's
    elements as `chunks` chunks of `chunk` words, and up to 15 words more; `largest` is the address
    of the bits of the largest magnitude, which it updates. `panel_of_parts_V(source, target, taps,
    elements, chunk, chunks)` does so with the columns of a panel of V vectors.
    `exact_parts_RxV(rows, pitch, hops, taps, positions, elements, chunk, chunks, panel, tile)` sums
    `positions` positions per tap of the f32 panel in the order of the microkernel of f32.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if match[3]:
        return outlined_helper(name, partial(_split_panel, vectors=int(match[3])), 6)
    if match[1]:
        size = partial(_exact_tile, rows=int(match[1]), vectors=int(match[2]))
        return outlined_helper(name, size, 10)
    return outlined_helper(name, _split_row, 7)


def _vector(scalar: ir.Type) -> ir.VectorType:
    return ir.VectorType(scalar, EDGE)


def _all(value: int) -> ir.Constant:
    return ir.Constant(_vector(INT32), [value] * EDGE)


def _parts(code: Code, bits: ir.Value) -> list[ir.Value]:
    """The parts of 16 finite numbers, each in the upper half of a word."""
    builder = code.builder
    floats = _vector(F32)
    parts, rest = [builder.and_(bits, _all(_HIGH))], bits
    for _ in range(PARTS - 1):
        left = builder.fsub(builder.bitcast(rest, floats), builder.bitcast(parts[-1], floats))
        rest = builder.bitcast(left, _vector(INT32))
        parts.append(builder.and_(builder.add(rest, _all(_HALF)), _all(_HIGH)))
    return parts


def _words(code: Code, first: ir.Value, second: ir.Value) -> list[ir.Value]:
    """Of each part the words that hold it of two vectors of numbers."""
    builder = code.builder
    pairs = zip(_parts(code, first), _parts(code, second), strict=True)
    return [builder.or_(builder.lshr(low, _all(16)), high) for low, high in pairs]


def _split_row(
    code: Code, source: ir.Value, target: ir.Value, elements: ir.Value, chunk: ir.Value,
    chunks: ir.Value, largest: ir.Value, whole: ir.Value,
) -> None:  # fmt: skip
    builder = code.builder
    is_whole = builder.icmp_signed("!=", whole, code.integer(0))

    def step(index: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        at, to, left, most = state
        both = []
        for place in (at, code.add(at, code.multiply(chunk, _WORD))):
            count = _least(code, left, chunk)
            both.append(first_words(code, place, count))
            left = builder.sub(left, count)
        for words in both:
            magnitude = builder.and_(words, _all(_MAGNITUDE))
            more = builder.icmp_unsigned(">", magnitude, most)
            most = builder.select(more, magnitude, most)
        for split, kept in zip(_words(code, *both), [*both, both[1]], strict=True):
            code.store(to, 0, builder.select(is_whole, kept, split))
            to = code.add(to, code.multiply(chunk, _WORD))
        return [code.add(at, code.multiply(chunk, 2 * _WORD)), to, left, most]

    *_, most = code.loop(chunks, [source, target, elements, _all(0)], step)
    of_all = code.call(f"llvm.vector.reduce.umax.v{EDGE}i32", INT32, [most])
    before = code.load(largest, 0, INT64)
    here = builder.zext(of_all, INT64)
    more = builder.icmp_signed(">", here, before)
    code.store(largest, 0, builder.select(more, here, before))


def _least(code: Code, a: ir.Value, b: ir.Value) -> ir.Value:
    return code.builder.select(code.builder.icmp_signed("<", a, b), a, b)


def _split_panel(
    code: Code, source: ir.Value, target: ir.Value, taps: ir.Value, elements: ir.Value,
    chunk: ir.Value, chunks: ir.Value, *, vectors: int,
) -> None:  # fmt: skip
    builder = code.builder
    line = code.integer(vectors * _LINE)
    nothing = builder.alloca(_vector(INT32), size=INT32(vectors))
    nothing.align = _LINE
    zeros = builder.ptrtoint(nothing, INT64)
    for n in range(vectors):
        code.store(zeros, n, _all(0))
    part = builder.mul(chunk, line)

    def tap(_: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        start, *state = state

        def of_chunk(q: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            (to,) = state
            first = builder.mul(q, code.multiply(chunk, 2))

            def word(j: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
                (to,) = state
                lines = []
                for k in (code.add(first, j), code.add(code.add(first, chunk), j)):
                    known = builder.icmp_signed("<", k, elements)
                    lines.append(code.choose(known, code.add(start, builder.mul(k, line)), zeros))
                for n in range(vectors):
                    both = [code.load(each, n, _vector(INT32)) for each in lines]
                    here = to
                    for words in _words(code, *both):
                        code.store(here, n, words)
                        here = code.add(here, part)
                return [code.add(to, line)]

            (to,) = code.loop(chunk, [to], word)
            return [code.add(to, code.multiply(part, PARTS - 1))]

        return [code.add(start, builder.mul(elements, line)), *code.loop(chunks, state, of_chunk)]

    code.loop(taps, [source, target], tap)


def _exact_tile(
    code: Code, table: ir.Value, pitch: ir.Value, hops: ir.Value, taps: ir.Value,
    positions: ir.Value, elements: ir.Value, chunk: ir.Value, chunks: ir.Value, panel: ir.Value,
    tile: ir.Value, *, rows: int, vectors: int,
) -> None:  # fmt: skip
    builder = code.builder
    line = code.integer(vectors * _LINE)
    position = builder.mul(chunks, code.multiply(chunk, PARTS * _WORD))
    lanes = ir.Constant(_vector(INT32), [0] * EDGE)

    def element(start: ir.Value, k: ir.Value) -> ir.Value:
        """Element k of a position that was copied whole, in all lanes."""
        pair = code.multiply(chunk, 2)
        q, rest = builder.udiv(k, pair), builder.urem(k, pair)
        value = code.load(start, code.add(builder.mul(q, code.multiply(chunk, PARTS)), rest), F32)
        first = builder.insert_element(ir.Constant(_vector(F32), ir.Undefined), value, INT32(0))
        return builder.shuffle_vector(first, first, lanes)

    def row(m: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        (to,) = state

        def tap(t: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            addresses, *state = state
            here = code.add(code.load(addresses, m, INT64), code.load(hops, t, INT64))

            def of_position(p: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
                start = code.add(here, builder.mul(p, position))

                def step(k: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
                    weights, *sums = state
                    value = element(start, k)
                    columns = [code.load(weights, n, _vector(F32)) for n in range(vectors)]
                    pairs = zip(columns, sums, strict=True)
                    return [code.add(weights, line), *(code.fma(value, *pair) for pair in pairs)]

                return code.loop(elements, state, step)

            return [code.add(addresses, pitch), *code.loop(positions, state, of_position)]

        zeros = [ir.Constant(_vector(F32), [0.0] * EDGE)] * vectors
        _, _, *sums = code.loop(taps, [table, panel, *zeros], tap)
        for n, total in enumerate(sums):
            code.store(to, n, total)
        return [code.add(to, line)]

    code.loop(code.integer(rows), [tile], row)
