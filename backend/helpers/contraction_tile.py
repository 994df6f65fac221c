"""The microkernel of every f32 matmul and convolution.

    acc[m, n] += Σ over taps t and depth k of  (rows[t, m] + hops[t])[k] · panel[t, k, n]

`rows[t, m] + hops[t]` is the address of what tap t sees of row m, so strides, borders, dilations
and fill values are matters of two small tables and cost nothing here. `n` runs over the columns
of one weight panel: `vectors` vectors side by side. All accumulators stay in registers; each is a
chain of FMAs in the order of (t, k), so that a result does not depend on how rows, columns and
blocks of k are cut.
"""

from __future__ import annotations

import re
from functools import cache

from llvmlite import ir

from satura.backend.helpers.vector import INT64, Code, outlined_helper
from satura.backend.target import host_target

_NAME = re.compile(r"tile_(\d+)x(\d+)")
_F32, _LINE = 4, 64


@cache
def tile_helper(name: str) -> object | None:
    """The helper of that name, or None if it is not a tile.

    `tile_RxV(rows, pitch, hops, taps, depth, offset, panel, ahead, tile, resume)`: `rows` is the
    address of row addresses, those of tap t at `rows + t · pitch` (pitch 0: the same for all taps),
    `hops` that of [taps] distances; `offset` bytes are added to each. `panel` [taps, depth,
    columns] and `tile` [R, columns] are f32; with `resume` 0 the sums start from 0, otherwise from
    `tile`. Each step fetches one more cache line from `ahead` on: weights that are needed soon.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    rows, vectors = (int(part) for part in match.groups())

    def write(code: Code, *arguments: ir.Value) -> None:
        _tile(code, rows, vectors, *arguments)

    return outlined_helper(name, host_target().lanes, write, arguments=10)


def _tile(
    code: Code, rows: int, vectors: int, table: ir.Value, pitch: ir.Value, hops: ir.Value,
    taps: ir.Value, depth: ir.Value, offset: ir.Value, panel: ir.Value, ahead: ir.Value,
    tile: ir.Value, resume: ir.Value,
) -> None:  # fmt: skip
    width = code.integer(vectors * code.lanes * _F32)
    line_bytes = code.integer(_LINE)
    before = code.builder.icmp_signed("!=", resume, code.integer(0))
    start = [
        code.choose(before, code.load(tile, i, code.vector), code.zero())
        for i in range(rows * vectors)
    ]

    def tap(t: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        line, *state = state
        hop = code.add(code.load(hops, t, INT64), offset)
        seen = [code.add(code.load(line, m, INT64), hop) for m in range(rows)]

        def step(k: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            weights, soon, *sums = state
            code.prefetch(soon)
            columns = [code.load(weights, n, code.vector) for n in range(vectors)]
            for m in range(rows):
                value = code.broadcast(seen[m], k)
                for n in range(vectors):
                    place = m * vectors + n
                    sums[place] = code.fma(value, columns[n], sums[place])
            return [code.add(weights, width), code.add(soon, line_bytes), *sums]

        return [code.add(line, pitch), *code.loop(depth, state, step)]

    _, _, _, *sums = code.loop(taps, [table, panel, ahead, *start], tap)
    for place, value in enumerate(sums):
        code.store(tile, place, value)
