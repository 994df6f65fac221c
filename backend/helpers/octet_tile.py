"""The microkernel of octets for CPUs that add products of u8 and i8 in pairs, as i16.

    acc[m, n] += Σ over taps t and words k of  (rows[t, m] + hops[t])[order[k]] · panel[k, n]

Such a sum of two may saturate. Therefore the words of a panel are sorted, tap by tap. First come
pairs of words for which any sum of four products fits an i16, whatever the row values; then words
whose pairwise sums fit; last, words split into even and odd octets, a line of i16 each. Row words
are split in registers. A panel begins with a line of what sums start from, and a table: per tap
the numbers of couples, of words that fit and of others, then where each word stands in a row.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.helpers.vector import INT32, INT64, Code

SORTS = 3
_WORD, _ADDRESS = 4, 8
_FETCHING_PARTS = 2  # of a tile: they ask for as much as follows
_OCTETS = {
    16: "llvm.x86.avx512.pmaddubs.w.512",
    8: "llvm.x86.avx2.pmadd.ub.sw",
    4: "llvm.x86.ssse3.pmadd.ub.sw.128",
}
_PAIRS = {
    16: "llvm.x86.avx512.pmaddw.d.512",
    8: "llvm.x86.avx2.pmadd.wd",
    4: "llvm.x86.sse2.pmadd.wd",
}


_State = list[ir.Value]
_Step = Callable[[Code, list[ir.Value], _State], _State]


def added_pairs(code: Code, row: ir.Value, column: ir.Value) -> ir.Value:
    """row[0] · column[0] + row[1] · column[1] of i16, on x86."""
    halves = ir.VectorType(ir.IntType(16), 2 * code.lanes)
    operands = [code.builder.bitcast(row, halves), code.builder.bitcast(column, halves)]
    return code.call(_PAIRS[code.lanes], ir.VectorType(INT32, code.lanes), operands)


def _halves(code: Code, row: ir.Value, column: ir.Value) -> ir.Value:
    """Sums of two products of u8 and i8, as i16 that they fit."""
    octets = ir.VectorType(ir.IntType(8), 4 * code.lanes)
    halves = ir.VectorType(ir.IntType(16), 2 * code.lanes)
    operands = [code.builder.bitcast(row, octets), code.builder.bitcast(column, octets)]
    return code.call(_OCTETS[code.lanes], halves, operands)


def _added_octets(code: Code, row: ir.Value, column: ir.Value) -> ir.Value:
    """Σ row[i] · column[i] over four u8 and i8, of which no two products saturate an i16."""
    return _add_pairs(code, _halves(code, row, column))


def _add_pairs(code: Code, halves: ir.Value) -> ir.Value:
    """Sums of two i16 each."""
    return added_pairs(code, halves, ir.Constant(halves.type, [1] * (2 * code.lanes)))


def octet_tile(
    code: Code, table: ir.Value, pitch: ir.Value, hops: ir.Value, taps: ir.Value, parts: ir.Value,
    panel: ir.Value, ahead: ir.Value, tile: ir.Value, heads: ir.Value, *, rows: int, vectors: int,
) -> None:  # fmt: skip
    """`parts` times so many rows: as many as registers hold the sums of."""
    vector = code.vector
    line = vectors * code.lanes * _WORD
    places = range(rows * vectors)

    def part(index: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        table, tile, soon = state
        early = code.builder.icmp_signed("<", index, code.integer(_FETCHING_PARTS))
        soon = code.choose(early, soon, panel)  # what is there already

        def tap(t: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            addresses, counts, *state = state
            hop = code.load(hops, t, INT64)
            seen = [code.add(code.load(addresses, m, INT64), hop) for m in range(rows)]
            found = [code.builder.sext(code.load(counts, i, INT32), INT64) for i in range(SORTS)]
            state = [code.add(counts, code.integer(SORTS * _WORD)), *state]
            for count, step in zip(found, (_couples, _octets, _pairs), strict=True):
                state = code.loop(count, state, _of_rows(step, code, seen))
            return [code.add(addresses, pitch), *state]

        start = [code.load(heads, place % vectors, vector) for place in places]
        counts = code.add(heads, code.integer(line))
        _, _, _, soon, *sums = code.loop(taps, [table, counts, panel, soon, *start], tap)
        for place in places:
            code.store(tile, place, sums[place])
        below = zip((table, tile), (_ADDRESS, line), strict=True)
        return [*(code.add(at, code.integer(rows * size)) for at, size in below), soon]

    code.loop(parts, [table, tile, ahead], part)


def _of_rows(step: _Step, code: Code, seen: list[ir.Value]) -> Callable[[ir.Value, _State], _State]:
    """The body of a loop over words of one sort."""
    return lambda _, state: step(code, seen, state)


def _couples(code: Code, seen: list[ir.Value], state: list[ir.Value]) -> list[ir.Value]:
    """Two words, of which sums of four products fit an i16."""
    order, weights, soon, *sums = state
    vectors = len(sums) // len(seen)
    code.prefetch(soon)
    places = [code.builder.sext(code.load(order, i, INT32), INT64) for i in range(2)]
    columns = [code.load(weights, n, sums[0].type) for n in range(vectors)]
    for m, address in enumerate(seen):
        first, second = (code.broadcast(address, place) for place in places)
        here = code.opaque(weights)  # read for each row anew: registers are few
        for n in range(vectors):
            below = _halves(code, second, code.load(here, vectors + n, sums[0].type))
            both = code.add(_halves(code, first, columns[n]), below)
            sums[m * vectors + n] = code.add(sums[m * vectors + n], _add_pairs(code, both))
    return [*_next_word(code, order, weights, soon, 2 * vectors, 2), *sums]


def _octets(code: Code, seen: list[ir.Value], state: list[ir.Value]) -> list[ir.Value]:
    """A word whose pairs fit an i16."""
    order, weights, soon, *sums = state
    code.prefetch(soon)
    sums = _products(code, seen, order, weights, sums, lambda value: value, _added_octets)
    return [*_next_word(code, order, weights, soon, len(sums) // len(seen)), *sums]


def _pairs(code: Code, seen: list[ir.Value], state: list[ir.Value]) -> list[ir.Value]:
    """A word as two lines of pairs of i16."""
    order, weights, soon, *sums = state
    vectors = len(sums) // len(seen)
    halves = ir.VectorType(ir.IntType(16), 2 * code.lanes)
    low = ir.Constant(ir.VectorType(INT32, code.lanes), [0x00FF00FF] * code.lanes)
    half = ir.Constant(halves, [8] * (2 * code.lanes))

    def even(value: ir.Value) -> ir.Value:
        return code.builder.and_(value, low)

    def odd(value: ir.Value) -> ir.Value:
        return code.builder.lshr(code.builder.bitcast(value, halves), half)

    code.prefetch(soon)
    sums = _products(code, seen, order, weights, sums, even, added_pairs)
    following = code.add(weights, code.integer(vectors * code.lanes * _WORD))
    sums = _products(code, seen, order, following, sums, odd, added_pairs)
    return [*_next_word(code, order, weights, soon, 2 * vectors), *sums]


def _products(
    code: Code, seen: list[ir.Value], order: ir.Value, weights: ir.Value, sums: list[ir.Value],
    change: Callable[[ir.Value], ir.Value], added: Callable[[Code, ir.Value, ir.Value], ir.Value],
) -> list[ir.Value]:  # fmt: skip
    """The sums with one line of weights multiplied by the word that `order` names."""
    vectors = len(sums) // len(seen)
    place = code.builder.sext(code.load(order, 0, INT32), INT64)
    columns = [code.load(weights, n, sums[0].type) for n in range(vectors)]
    result = []
    for m, address in enumerate(seen):
        value = change(code.broadcast(address, place))
        for n, column in enumerate(columns):
            result.append(code.add(sums[m * vectors + n], added(code, value, column)))
    return result


def _next_word(
    code: Code, order: ir.Value, weights: ir.Value, soon: ir.Value, vectors: int, words: int = 1
) -> list[ir.Value]:
    """The next word, its weights, and the next line to fetch."""
    steps = words * _WORD, vectors * code.lanes * _WORD, words * CACHE_LINE
    pairs = zip((order, weights, soon), steps, strict=True)
    return [code.add(address, code.integer(step)) for address, step in pairs]
