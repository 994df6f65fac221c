"""f32 as the sum of three bf16, for CPUs that multiply matrices of these: splits, and exact sums.

    x = high + middle + low,  of 8 bits each

The high part is cut off and the middle one is rounded, so that no part of a finite number
overflows; what is left has 8 bits. See `part_words.py` for the words that hold them. Positions are
split into planes: a part of a chunk has a line of 16 words for each of them, so that the lines of
neighbours, which registers take together, lie side by side. Of a panel, only the first chunk is
split here: a microkernel splits the one that comes next while it multiplies one.

Products of parts say nothing of infinities, inf · 0 would be among them; they may overflow where
their sum does not; and instructions on bf16 take numbers below 2^-126 for zero. So a position whose
largest magnitude is too large or too small is flagged and copied whole: as f32 where the first two
parts of a chunk would be, of the first elements of words and of the second ones. Rows that see one
are multiplied once more, by `exact_parts_RxV`: no row depends on others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.matrix_tile import first_words
from satura.backend.helpers.part_words import (
    HIGH,
    SplitChunk,
    all_of,
    line_of_zeros,
    vector_of,
    words_of_parts,
)
from satura.backend.helpers.vector import F32, INT32, INT64, Code, outlined_helper
from satura.backend.matrices import EDGE, LARGE, LINE, PARTS, TINY

_MAGNITUDE = 0x7FFFFFFF
_WORD = 4
_Body = Callable[[ir.Value, ir.Value, list[ir.Value]], list[ir.Value]]
_NAME = re.compile(r"exact_parts_(\d+)x(\d+)|row_of_parts|chunk_of_parts")


@cache
def parts_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it is not about parts.

    `row_of_parts(source, target, elements, chunk, chunks, apart, base, flags)` writes a position's
    elements as `chunks` chunks of `chunk` words, in planes that are `apart` bytes from one another.
    Of `flags`, one per position from `base` on behind one for all, it sets those that matter.
    `chunk_of_parts(source, target, elements, chunk)` splits the first chunk of a panel, whose taps
    have so many elements.
    `exact_parts_RxV(rows, pitch, hops, taps, elements, chunk, apart, panel, tile, base, flags,
    before, resume)` sums flagged rows over all taps and the f32 panel, in the order of the
    microkernel of f32: from 0 where `resume` is 0, and else from their sums in the tile `before`.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if name == "chunk_of_parts":
        return outlined_helper(name, _split_first, 4)
    if match[1]:
        size = partial(_exact_tile, rows=int(match[1]), vectors=int(match[2]))
        return outlined_helper(name, size, 13)
    return outlined_helper(name, _split_row, 8)


def _split_row(
    code: Code, source: ir.Value, target: ir.Value, elements: ir.Value, chunk: ir.Value,
    chunks: ir.Value, apart: ir.Value, base: ir.Value, flags: ir.Value,
) -> None:  # fmt: skip
    builder = code.builder
    half = code.multiply(chunk, _WORD)

    def read(at: ir.Value, left: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """The elements of a chunk as two vectors; where the next one begins, and what is left."""
        both = []
        for _ in range(2):
            count = _least(code, left, chunk)
            both.append(first_words(code, at, count))
            at, left = code.add(at, half), builder.sub(left, count)
        return both, [at, left]

    def split(_: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        *place, to, most = state
        both, after = read(*place)
        for words in both:
            magnitude = builder.and_(words, all_of(_MAGNITUDE))
            more = builder.icmp_unsigned(">", magnitude, most)
            most = builder.select(more, magnitude, most)
        return [*after, written(to, words_of_parts(code, *both)), most]

    def written(to: ir.Value, lines: list[ir.Value]) -> ir.Value:
        for line in lines:
            code.store(to, 0, line)
            to = code.add(to, apart)
        return to

    *_, most = code.loop(chunks, [source, elements, target, all_of(0)], split)
    largest = code.call(f"llvm.vector.reduce.umax.v{EDGE}i32", INT32, [most])
    # 0 is not small: less 1 it is the largest number there is.
    is_tiny = builder.icmp_unsigned("<", builder.sub(largest, INT32(1)), INT32(TINY - 1))
    is_whole = builder.or_(is_tiny, builder.icmp_unsigned(">=", largest, INT32(LARGE)))
    flag = builder.zext(is_whole, INT64)
    code.store(flags, code.add(_number(code, target, base), code.integer(1)), flag)

    def whole() -> list[ir.Value]:
        def copy(_: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            *place, to = state
            both, after = read(*place)
            return [*after, written(to, [*both, both[1]])]

        code.loop(chunks, [source, elements, target], copy)
        code.store(flags, 0, flag)
        return []

    code.either(is_whole, whole, list)


def _number(code: Code, address: ir.Value, base: ir.Value) -> ir.Value:
    """Which of the positions from `base` on has its first line at an address."""
    return code.builder.udiv(code.builder.sub(address, base), code.integer(LINE))


def _least(code: Code, a: ir.Value, b: ir.Value) -> ir.Value:
    return code.builder.select(code.builder.icmp_signed("<", a, b), a, b)


def _split_first(
    code: Code, source: ir.Value, target: ir.Value, elements: ir.Value, chunk: ir.Value
) -> None:
    SplitChunk(source, elements, target, chunk).split_all(code, chunk, line_of_zeros(code))


def _exact_tile(
    code: Code, table: ir.Value, pitch: ir.Value, hops: ir.Value, taps: ir.Value,
    elements: ir.Value, chunk: ir.Value, apart: ir.Value, panel: ir.Value, tile: ir.Value,
    base: ir.Value, flags: ir.Value, before: ir.Value, resume: ir.Value, *, rows: int, vectors: int,
) -> None:  # fmt: skip
    builder = code.builder
    line = code.integer(vectors * LINE)

    def over_taps(m: ir.Value, start: list[ir.Value], body: _Body) -> list[ir.Value]:
        """`state = body(address, flag, state)` for all positions that row m sees."""

        def tap(t: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            addresses, *state = state
            at = code.add(code.load(addresses, m, INT64), code.load(hops, t, INT64))
            number = code.add(_number(code, at, base), code.integer(1))
            flag = code.load(flags, number, INT64)
            return [code.add(addresses, pitch), *body(at, flag, state)]

        return code.loop(taps, [table, *start], tap)[1:]

    def element(start: ir.Value, k: ir.Value, flag: ir.Value) -> ir.Value:
        """Element k of a position, in all lanes: as it is, or the sum of its parts."""
        pair = code.multiply(chunk, 2)
        q, rest = builder.udiv(k, pair), builder.urem(k, pair)
        is_low, word = builder.icmp_unsigned("<", rest, chunk), builder.urem(rest, chunk)
        first = code.add(start, builder.mul(q, code.multiply(apart, PARTS)))
        whole = code.load(code.choose(is_low, first, code.add(first, apart)), word, F32)
        total = F32(-0.0)
        for part in reversed(range(PARTS)):
            bits = code.load(code.add(first, code.multiply(apart, part)), word, INT32)
            low, high = builder.shl(bits, INT32(16)), builder.and_(bits, INT32(HIGH))
            value = builder.bitcast(builder.select(is_low, low, high), F32)
            total = builder.fadd(total, value)
        value = builder.select(builder.icmp_signed("!=", flag, code.integer(0)), whole, total)
        return code.spread(value, EDGE)

    def summed(at: ir.Value, flag: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        def step(k: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            weights, *sums = state
            value = element(at, k, flag)
            columns = [code.load(weights, n, vector_of(F32)) for n in range(vectors)]
            pairs = zip(columns, sums, strict=True)
            return [code.add(weights, line), *(code.fma(value, *pair) for pair in pairs)]

        return code.loop(elements, state, step)

    def row(m: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        to, start = state
        (is_flagged,) = over_taps(
            m, [code.integer(0)], lambda _, flag, state: [builder.or_(flag, *state)]
        )

        def exact() -> list[ir.Value]:
            zeros = [ir.Constant(vector_of(F32), [0.0] * EDGE)] * vectors
            first = code.either(
                builder.icmp_signed("!=", resume, code.integer(0)),
                lambda: [code.load(start, n, vector_of(F32)) for n in range(vectors)],
                lambda: list[ir.Value](zeros),
            )
            _, *sums = over_taps(m, [panel, *first], summed)
            for n, total in enumerate(sums):
                code.store(to, n, total)
            return []

        code.either(builder.icmp_signed("!=", is_flagged, code.integer(0)), exact, list)
        return [code.add(to, line), code.add(start, line)]

    code.loop(code.integer(rows), [tile, before], row)
