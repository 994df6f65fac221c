"""The microkernels of matmuls and convolutions.

    acc[m, n] += Σ over taps t and depth k of  (rows[t, m] + hops[t])[k] · panel[t, k, n]

`rows[t, m] + hops[t]` is the address of what tap t sees of row m, so strides, borders, dilations
and fill values are matters of two small tables and cost nothing here. `n` runs over the columns
of one weight panel: `vectors` vectors side by side. All accumulators stay in registers; each is a
chain of FMAs in the order of (t, k), so that a result does not depend on how rows and columns are
cut. A chain starts from 0 and is added to `acc` at its end: where the depth is cut into steps,
rounding errors grow with the length of a step and the number of steps, not with their product.

Of integers, k counts words of four bytes: two i16, or four u8 of a row and four i8 of the panel,
whose products are added to an i32. Nothing saturates: sums wrap as those of i32.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

from llvmlite import ir

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.matrix_tile import matrix_tile
from satura.backend.helpers.octet_tile import added_pairs, octet_tile
from satura.backend.helpers.vector import F32, F64, INT32, INT64, Code, outlined_helper
from satura.backend.matrices import OF_OCTETS, OF_PARTS
from satura.backend.target import host_target

_KINDS = "tile|doubles|pairs|quads|octets|matrices|parts|split_parts"
_NAME = re.compile(rf"({_KINDS})_(\d+)x(\d+)(?:of(\d+))?(?:g(\d+))?")
_ELEMENTS = {"tile": F32, "doubles": F64}
_MATRICES = {
    "matrices": (INT32, OF_OCTETS), "parts": (F32, OF_PARTS), "split_parts": (F32, OF_PARTS),
}  # fmt: skip

MultiplyAdd = Callable[[Code, ir.Value, ir.Value, ir.Value], ir.Value]


@cache
def tile_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it is not a tile.

    `tile_RxV(rows, pitch, hops, taps, depth, offset, panel, ahead, tile, resume)`: `rows` is the
    address of row addresses, those of tap t at `rows + t · pitch` (pitch 0: the same for all taps),
    `hops` that of [taps] distances; `offset` bytes are added to each. `panel` [taps, depth,
    columns] and `tile` [R, columns] are f32, where the sums are stored, or added if `resume` is not
    0. Each step fetches one more cache line from `ahead` on: weights that are needed soon.
    `doubles_RxV` is the same for f64.
    `tile_RxVofW`: panel and tile have W vectors side by side, and the first V are computed.
    `tile_Rx1gD`: every D columns, of one vector, see their own D elements of as many as there are
    columns, and `depth` is D: it is written out.

    `pairs_RxV` and `quads_RxV` have one more argument, and i32 in `panel` and `tile`: `heads` is
    the address of one i32 per column. Sums start from these where `resume` is 0, else from `tile`.
    `parts_Rx2`, `split_parts_Rx2` and `matrices_Rx2` have three more arguments behind `resume`, see
    `matrix_tile`.
    `octets_RxV(rows, pitch, hops, taps, parts, panel, ahead, tile, heads)` takes R rows at a time,
    see `octet_tile`.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    kind = match[1]
    rows, vectors, width, group = (int(part or 0) for part in match.groups()[1:])
    if kind == "octets":
        write_octets = partial(octet_tile, rows=rows, vectors=vectors)
        return outlined_helper(name, write_octets, 9, INT32)
    if kind in _MATRICES:
        element, done = _MATRICES[kind]
        splits = kind == "split_parts"
        write_matrices = partial(matrix_tile, rows=rows, done=done, splits=splits)
        return outlined_helper(name, write_matrices, 13, element)
    multiply_add = {"pairs": _add_pairs, "quads": _add_quads}.get(kind, Code.fma)
    element = _ELEMENTS.get(kind, INT32)

    def write(code: Code, *arguments: ir.Value) -> None:
        _tile(code, rows, vectors, width or vectors, group, multiply_add, *arguments)

    return outlined_helper(name, write, 10 + (kind not in _ELEMENTS), element)


def _add_quads(code: Code, row: ir.Value, column: ir.Value, total: ir.Value) -> ir.Value:
    """total + Σ row[i] · column[i] over four u8 and i8; not one of the sums saturates."""
    builder, bits = code.builder, 32 * code.lanes
    octets = ir.VectorType(ir.IntType(8), 4 * code.lanes)
    operands = [total, builder.bitcast(row, octets), builder.bitcast(column, octets)]
    return code.call(f"llvm.x86.avx512.vpdpbusd.{bits}", total.type, operands)


def _add_pairs(code: Code, row: ir.Value, column: ir.Value, total: ir.Value) -> ir.Value:
    """total + row[0] · column[0] + row[1] · column[1] of i16."""
    builder = code.builder
    if host_target().triple.startswith("x86_64"):
        return builder.add(total, added_pairs(code, row, column))
    half = ir.Constant(total.type, [16] * code.lanes)
    low = [builder.ashr(builder.shl(word, half), half) for word in (row, column)]
    high = [builder.ashr(word, half) for word in (row, column)]
    return builder.add(builder.add(total, builder.mul(*low)), builder.mul(*high))


def _tile(
    code: Code, rows: int, vectors: int, width: int, group: int, multiply_add: MultiplyAdd,
    table: ir.Value, pitch: ir.Value, hops: ir.Value, taps: ir.Value, depth: ir.Value,
    offset: ir.Value, panel: ir.Value, ahead: ir.Value, tile: ir.Value, resume: ir.Value,
    heads: ir.Value | None = None,
) -> None:  # fmt: skip
    line = code.integer(width * host_target().vector_bytes)
    line_bytes = code.integer(CACHE_LINE)
    before = code.builder.icmp_signed("!=", resume, code.integer(0))
    places = [(m, n) for m in range(rows) for n in range(vectors)]

    def kept() -> list[ir.Value]:
        return [code.load(tile, m * width + n, code.vector) for m, n in places]

    start = [code.zero() for _ in places]
    if heads is not None:
        heads_of = [code.load(heads, n, code.vector) for n in range(vectors)]
        start = code.either(before, kept, lambda: [heads_of[n] for _, n in places])

    def tap(t: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        addresses, *state = state
        hop = code.add(code.load(hops, t, INT64), offset)
        seen = [code.add(code.load(addresses, m, INT64), hop) for m in range(rows)]

        def step(k: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            weights, soon, *sums = state
            code.prefetch(soon)
            columns = [code.load(weights, n, code.vector) for n in range(vectors)]
            for m in range(rows):
                value = code.broadcast(seen[m], k)
                for n in range(vectors):
                    place = m * vectors + n
                    sums[place] = multiply_add(code, value, columns[n], sums[place])
            return [code.add(weights, line), code.add(soon, line_bytes), *sums]

        return [code.add(addresses, pitch), *code.loop(depth, state, step)]

    def grouped_tap(t: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        addresses, weights, soon, *sums = state
        hop = code.add(code.load(hops, t, INT64), offset)
        if group == code.lanes:
            here = [code.load(addresses, m, INT64) for m in range(rows)]
            for k in range(group):
                again = code.opaque(hop)  # else LLVM would load much of a row at once, and spill it
                column = code.load(weights, k, code.vector)
                for m in range(rows):
                    value = code.broadcast(code.add(here[m], again), code.integer(k))
                    sums[m] = code.fma(value, column, sums[m])
        else:
            columns = [code.load(weights, k, code.vector) for k in range(group)]
            for m in range(rows):
                seen = code.load(code.add(code.load(addresses, m, INT64), hop), 0, code.vector)
                for k in range(group):
                    sums[m] = code.fma(code.of_groups(seen, group, k), columns[k], sums[m])
        code.prefetch(soon)
        weights = code.add(weights, code.multiply(line, group))
        return [code.add(addresses, pitch), weights, code.add(soon, line_bytes), *sums]

    if group:
        tap = grouped_tap
    _, _, _, *chains = code.loop(taps, [table, panel, ahead, *start], tap)
    sums = chains
    if heads is None:
        add = code.builder.fadd
        sums = code.either(
            before,
            lambda: [add(*each) for each in zip(kept(), chains, strict=True)],
            lambda: chains,
        )
    for (m, n), value in zip(places, sums, strict=True):
        code.store(tile, m * width + n, value)
