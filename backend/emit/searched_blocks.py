"""Places of the best element of long rows, found block by block.

Where the best element is takes a comparison after the other; what it is are vectors. So a block
is searched only if its best element is better than all before it: few are in most rows.

    for each block of a row
        for each element     the best of the block
        if that is better    for each element   the best so far, and its place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from satura.backend.emit.accumulators import Accumulator
from satura.backend.emit.reductions import has_key, identity_text, is_better
from satura.backend.emit.text import indent

BLOCK = 64  # elements


def search_lines(
    count: str, values: Sequence[str], others: Sequence[str], names: Mapping[int, str],
    searched: Sequence[Accumulator],
) -> list[str]:  # fmt: skip
    """A loop over `count` elements `i`, of which the lines `values` compute what `names` says.

    The lines `others` run for each element once.
    """
    best_of = [_of_block(number, each) for number, each in enumerate(searched)]
    steps = [line for each in best_of for line in each.step_lines(names)]
    lines = [
        f"for first in range(0, {count}, {BLOCK}):",
        f"    stop = min(first + {BLOCK}, {count})",
    ]
    for each in best_of:
        lines += indent(1, each.initial_lines(identity_text(each.reduction)))
    lines += indent(1, _loop([*values, *others, *steps]))
    for block, row in zip(best_of, searched, strict=True):
        best = f"key_value({block.value})" if has_key(block.reduction) else block.value
        search = _loop([*values, *row.step_lines(names)])
        found = [f"best = {row.value}", f"if {is_better(row.reduction, best)}:"]
        lines += indent(1, [*found, *indent(1, search)])
    return lines


def _of_block(number: int, row: Accumulator) -> Accumulator:
    """What is kept of a block: its best element, not where that is."""
    return Accumulator(replace(row.reduction, position=None), f"b{number}", None, False)


def _loop(lines: Sequence[str]) -> list[str]:
    return ["for i in range(first, stop):", *indent(1, lines)]
