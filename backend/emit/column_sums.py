"""Sums kept in an array over the columns, several steps at a time.

The array is then loaded and stored once for all these steps, not for each. Of long sums those of
each block of steps are in another array, and are added to the first one at its end: rounding errors
grow with the length of a block and the number of blocks, not with their product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from satura.backend.emit.body import BodyText
from satura.backend.emit.reductions import identity_text, step_text
from satura.backend.emit.text import indent
from satura.backend.lower.body import Reduction
from satura.rewrite.types.dims import TracedSize

STEPS = 8
BLOCK = 512  # steps
_LONG = 4 * BLOCK  # in all, of which some are side by side
_LEAST_BLOCK = 64  # steps that follow one another, beside which two more passes take little


def is_long_sum(extents: Sequence[int]) -> bool:
    """Whether sums over loops of so many steps have blocks: where sizes are open, they do."""
    is_open = any(isinstance(extent, TracedSize) for extent in extents)
    return is_open or (prod(extents) >= _LONG and extents[-1] >= _LEAST_BLOCK)


def column_sum_lines(
    body: BodyText, reduction: Reduction, array: str, middle: Sequence[str],
    counts: Sequence[str], given: Mapping[int, str], of_block: str = "",
) -> list[str]:  # fmt: skip
    """Lines that add the operand of a sum, over the loops `middle`, to the `width` sums of `array`;
    where there are blocks, by way of those of the array `of_block`."""
    *outer, last = middle
    sums = of_block or array
    kind = reduction.dtype.value
    operand = body.nest.values[reduction.operand]
    fused = operand.op == "mul" and reduction.dtype.is_float
    targets = operand.operands if fused else (reduction.operand,)
    row: list[str] = []

    def steps(taps: Sequence[str]) -> list[str]:
        lines: list[str] = []
        inner = [f"total = get_{kind}({sums}, i)"]
        for number, tap in enumerate(taps):
            tapped = body.block(targets, given, taps=(*outer, tap), suffix=f"t{number}")
            row.extend(tapped.row)
            lines += tapped.middle
            inner += tapped.inner
            names = [tapped.names[target] for target in targets]
            if fused:
                inner.append(f"total = mul_add({names[0]}, {names[1]}, total)")
            else:
                inner.append(f"total = {step_text(reduction.function, 'total', names[0])}")
        inner.append(f"put_{kind}({sums}, i, total)")
        return [*lines, "for i in range(width):", *indent(1, inner)]

    start, end = ("block", f"min(block + {BLOCK}, {counts[-1]})") if of_block else ("0", counts[-1])
    together = f"{start} + ({end} - {start}) // {STEPS} * {STEPS}"
    lines = [
        f"for {last} in range({start}, {together}, {STEPS}):",
        *indent(1, steps([f"({last} + {step})" for step in range(STEPS)])),
        f"for {last} in range({together}, {end}):",
        *indent(1, steps([last])),
    ]
    if of_block:
        held, new = f"get_{kind}({array}, i)", f"get_{kind}({sums}, i)"
        clear = f"put_{kind}({sums}, i, {identity_text(reduction)})"
        add = f"put_{kind}({array}, i, {step_text(reduction.function, held, new)})"
        columns = "for i in range(width):"
        block = [columns, *indent(1, [clear]), *lines, columns, *indent(1, [add])]
        lines = [f"for block in range(0, {counts[-1]}, {BLOCK}):", *indent(1, block)]
    for name, count in zip(reversed(outer), reversed(counts[:-1]), strict=True):
        lines = [f"for {name} in range({count}):", *indent(1, lines)]
    return [*row, *lines]
