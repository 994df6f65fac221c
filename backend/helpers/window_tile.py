"""The microkernel of windows that move along the contiguous axis, one weight per tap.

    out[r, i] = Σ over taps (h, w) of  source[r · step + h · dilation][i + place[w]] · weights[h, w]

What a row of the source gives to several rows of results is loaded once per column of taps, whose
weights stay in registers. So do all sums: each is a chain of multiply-adds, so that a result does
not depend on how rows are cut.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product

from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.vector import F32, F64, Code, outlined_helper
from satura.backend.target import host_target

_OTHERS = 1  # registers besides those of sums, and of the weights of a column of taps
_NAME = re.compile(r"window(\d+)_f(32|64)_(\d+)_(\d+)_(\d+)_at((?:_\d+p\d+)+)")
_PLACE = re.compile(r"_(\d+)p(\d+)")


@cache
def window_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it is not a window.

    `windowR_f32_H_S_D_at_…` is for windows of H rows, with their step and dilation, and then for
    each tap of a row as `XpA`: the first result finds it X elements on, in array A.
    `window_…(source, pitch, apart, weights, out, out_pitch, vectors, groups)` computes `groups`
    times R rows of results, of so many `vectors` each. Pitches are between rows and `apart` is
    between arrays, in bytes. The vectors of a row are written from the last to the first, so that
    what one has too much lies where results of the next row are to be written.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    rows, bits, high, step, dilation = (int(match[at]) for at in range(1, 6))
    size = bits // 8
    places = [(int(place), int(array)) for place, array in _PLACE.findall(match[6])]
    wide = len(places)
    uses: dict[int, list[tuple[int, int]]] = {}  # of each row of the source: results and taps
    for result, tap in product(range(rows), range(high)):
        uses.setdefault(result * step + tap * dilation, []).append((result, tap))

    def write(code: Code, *arguments: ir.Value) -> None:
        source, pitch, apart, weights, out, out_pitch, vectors, groups = arguments
        builder = code.builder
        is_held = high + 2 * rows + _OTHERS <= host_target().registers

        def block(here: ir.Value, there: ir.Value, count: int) -> None:
            """Rows of `count` vectors."""
            sums = [[code.zero()] * count for _ in range(rows)]
            lines = {row: code.add(here, code.multiply(pitch, row)) for row in sorted(uses)}
            # Else factors are spread anew: LLVM would keep all of them, in memory.
            again = [weights if is_held else code.opaque(weights) for _ in sums]
            for tap, (place, array) in enumerate(places):
                known = [code.opaque(weights)] * rows if is_held else again
                for row, line in lines.items():
                    at = code.add(line, code.integer(place * size))
                    at = code.add(at, code.multiply(apart, array)) if array else at
                    seen = [code.load(at, i, code.vector) for i in range(count)]
                    for result, high_tap in uses[row]:
                        number = code.integer(high_tap * wide + tap)
                        factor = code.broadcast(known[result], number)
                        pairs = zip(seen, sums[result], strict=True)
                        sums[result] = [code.fma(each, factor, total) for each, total in pairs]
            for result, totals in enumerate(sums):
                target = code.add(there, code.multiply(out_pitch, result))
                for i, total in enumerate(totals):
                    code.store(target, i, total)

        def group(_: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            here, there = state
            pairs, odd = (
                builder.udiv(vectors, code.integer(2)),
                builder.and_(vectors, vectors.type(1)),
            )

            def single(_: ir.Value, __: list[ir.Value]) -> list[ir.Value]:
                start = code.multiply(pairs, 2 * code.lanes * size)
                block(code.add(here, start), code.add(there, start), 1)
                return []

            def pair(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                last = builder.sub(builder.sub(pairs, i), code.integer(1))
                start = code.multiply(last, 2 * code.lanes * size)
                block(code.add(here, start), code.add(there, start), 2)
                return []

            code.loop(odd, [], single)
            code.loop(pairs, [], pair)
            below = code.add(here, code.multiply(pitch, rows * step))
            return [below, code.add(there, code.multiply(out_pitch, rows))]

        code.loop(groups, [source, out], group)

    return outlined_helper(name, write, 8, F64 if size == 8 else F32)
