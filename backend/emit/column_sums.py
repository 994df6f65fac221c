"""Sums kept in an array over the columns, several steps at a time.

The array is then loaded and stored once for all these steps, not for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satura.backend.emit.body import BodyText
from satura.backend.emit.reductions import step_text
from satura.backend.emit.text import indent
from satura.backend.lower.body import Reduction

STEPS = 8


def column_sum_lines(
    body: BodyText, reduction: Reduction, array: str, middle: Sequence[str],
    counts: Sequence[str], given: Mapping[int, str],
) -> list[str]:  # fmt: skip
    """Lines that add the operand of a sum, over the loops `middle`, to the `width` sums of
    `array`."""
    *outer, last = middle
    kind = reduction.dtype.value
    operand = body.nest.values[reduction.operand]
    fused = operand.op == "mul" and reduction.dtype.is_float
    targets = operand.operands if fused else (reduction.operand,)
    row: list[str] = []

    def steps(taps: Sequence[str]) -> list[str]:
        lines: list[str] = []
        inner = [f"total = get_{kind}({array}, i)"]
        for number, tap in enumerate(taps):
            block = body.block(targets, given, taps=(*outer, tap), suffix=f"t{number}")
            row.extend(block.row)
            lines += block.middle
            inner += block.inner
            names = [block.names[target] for target in targets]
            if fused:
                inner.append(f"total = mul_add({names[0]}, {names[1]}, total)")
            else:
                inner.append(f"total = {step_text(reduction.function, 'total', names[0])}")
        inner.append(f"put_{kind}({array}, i, total)")
        return [*lines, "for i in range(width):", *indent(1, inner)]

    together = f"{counts[-1]} // {STEPS} * {STEPS}"
    lines = [
        f"for {last} in range(0, {together}, {STEPS}):",
        *indent(1, steps([f"({last} + {step})" for step in range(STEPS)])),
        f"for {last} in range({together}, {counts[-1]}):",
        *indent(1, steps([last])),
    ]
    for name, count in zip(reversed(outer), reversed(counts[:-1]), strict=True):
        lines = [f"for {name} in range({count}):", *indent(1, lines)]
    return [*row, *lines]
