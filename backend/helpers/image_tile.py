"""The microkernel of windows over images, one weight per tap and channel.

    sums[x, c] = Σ over taps (h, w) of  rows[h][x · stride + w · dilation, c] · weights[h, w, c]

Channels lie side by side, some vectors of them. The weights of one vector stay in registers while
it moves along a row, and what a position gives to several results is loaded once. Every sum is one
chain of multiply-adds, so that a result does not depend on how rows are cut.
"""

from __future__ import annotations

import re
from functools import cache

from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.vector import F32, F64, INT64, Code, outlined_helper

_NAME = re.compile(r"image(\d+)_f(32|64)_(\d+)x(\d+)_(\d+)_(\d+)_(\d+)")


@cache
def image_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it is not one of windows over images.

    `imageR_f32_HxW_S_D_V` sums R neighbours at a time, for windows of H x W taps with their step
    and dilation, in V vectors. `image…(rows, weights, sums, count)` computes at least so many, some
    of them twice. `rows` is a table of an address for each row of taps.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    results, bits, high, wide, stride, dilation, vectors = map(int, match.groups())
    size = bits // 8
    uses: dict[int, list[tuple[int, int]]] = {}  # of each position: results and taps
    for result in range(results):
        for tap in range(wide):
            uses.setdefault(result * stride + tap * dilation, []).append((result, tap))

    def write(
        code: Code, rows: ir.Value, weights: ir.Value, sums: ir.Value, count: ir.Value
    ) -> None:
        builder = code.builder
        line = code.lanes * size
        pitch = vectors * line
        lines = [code.load(rows, row, INT64) for row in range(high)]
        last = builder.sub(count, code.integer(results))
        blocks = builder.udiv(code.add(count, code.integer(results - 1)), code.integer(results))

        def channels(vector: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            start = code.multiply(vector, line)
            factors = [
                code.load(code.add(weights, start), vectors * tap, code.vector)
                for tap in range(high * wide)
            ]

            def block(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                x = code.multiply(number, results)
                x = code.choose(builder.icmp_signed("<", x, last), x, last)
                totals = [code.zero()] * results
                here = code.add(start, code.multiply(x, stride * pitch))
                for row, address in enumerate(lines):
                    there = code.add(address, here)
                    for position in sorted(uses):
                        seen = code.load(there, vectors * position, code.vector)
                        for result, tap in uses[position]:
                            factor = factors[row * wide + tap]
                            totals[result] = code.fma(seen, factor, totals[result])
                target = code.add(code.add(sums, start), code.multiply(x, pitch))
                for result, total in enumerate(totals):
                    code.store(target, vectors * result, total)
                return []

            code.loop(blocks, [], block)
            return []

        code.loop(code.integer(vectors), [], channels)

    return outlined_helper(name, write, 4, F64 if size == 8 else F32)
