"""The microkernel of windows that move along the contiguous axis, one weight per tap.

    out[r, i] = Σ over taps (h, w) of  source[r · step + h · dilation][hops[w] + i] · weights[h, w]

What one row of the source gives to several rows of results is loaded once. All sums stay in
registers and each is a chain of FMAs in the order of the taps, so that a result does not depend on
how rows are cut.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product

from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.vector import F32, F64, INT64, Code, outlined_helper

_NAME = re.compile(r"window_f(32|64)_(\d+)_(\d+)x(\d+)_(\d+)_(\d+)")


def window_tile_name(
    bits: int, rows: int, taps: tuple[int, int], step: int, dilation: int
) -> str:
    """The name of the helper that computes `rows` rows of results."""
    return f"window_f{bits}_{rows}_{taps[0]}x{taps[1]}_{step}_{dilation}"


@cache
def window_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it is not a window.

    `window_…(source, pitch, hops, weights, out, out_pitch, vectors)`: `hops` is the address of
    the distances of one row's taps and pitches are those between rows, all in bytes; each row of
    results has so many `vectors`. They are written from the last to the first, so that what one
    has too much lies where results of the next row are to be written.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    bits, rows, high, wide, step, dilation = (int(part) for part in match.groups())
    uses: dict[int, list[tuple[int, int]]] = {}  # of each row of the source: results and taps
    for result, tap in product(range(rows), range(high)):
        uses.setdefault(result * step + tap * dilation, []).append((result, tap))

    def write(code: Code, *arguments: ir.Value) -> None:
        source, pitch, hops, weights, out, out_pitch, vectors = arguments
        hop = [code.load(hops, tap, INT64) for tap in range(wide)]
        factors = [code.broadcast(weights, code.integer(at)) for at in range(high * wide)]
        width = code.integer(code.lanes * bits // 8)

        def column(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            last = code.builder.sub(code.builder.sub(vectors, i), code.integer(1))
            start = code.builder.mul(last, width)
            sums = [code.zero()] * rows
            for row in sorted(uses):
                line = code.add(code.add(source, start), code.multiply(pitch, row))
                for tap in range(wide):
                    seen = code.load(code.add(line, hop[tap]), 0, code.vector)
                    for result, high_tap in uses[row]:
                        factor = factors[high_tap * wide + tap]
                        sums[result] = code.fma(seen, factor, sums[result])
            for result, total in enumerate(sums):
                there = code.add(code.add(out, start), code.multiply(out_pitch, result))
                code.store(there, 0, total)
            return []

        code.loop(vectors, [], column)

    return outlined_helper(name, write, 7, F64 if bits == 64 else F32)
