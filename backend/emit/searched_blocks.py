"""Places of the best element of rows, found block by block.

What the best element of a block is, and where it comes first, are two loops that vectors run. The
second is needed only if it is better than all before the block: few are in most rows.

    for each block of a row
        for each element     the best of the block
        if that is better
            for each element     its place, if it equals the best
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from satura.backend.emit.accumulators import Accumulator
from satura.backend.emit.reductions import has_key, identity_text, is_better
from satura.backend.emit.text import indent
from satura.backend.lower.body import Reduction
from satura.rewrite.types.tensor_type import DType

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
        lines += indent(1, [f"best = {row.value}", f"if {is_better(row.reduction, best)}:"])
        search = _search(row.reduction, best, values, names)
        taken = ["for i in range(found, found + 1):", *indent(1, [*values, *row.step_lines(names)])]
        lines += indent(2, [*search, *taken])
    return lines


def _search(
    reduction: Reduction, best: str, values: Sequence[str], names: Mapping[int, str]
) -> list[str]:
    """Lines that set `found` to the place of an element as good as `best`, which the block has."""
    value = names[reduction.operand]
    same = f"{value} == best"
    if reduction.dtype.is_float:
        same += f" or {value} != {value}"
    elif reduction.dtype is DType.BOOL:
        same = f"i8({value}) == i8(best)"
    choice, other = ("max", "first") if reduction.takes_last else ("min", "stop - 1")
    step = f"found = {choice}(found, choose({same}, i, {other}))"
    return [f"best = {best}", f"found = {other}", *_loop([*values, step])]


def _of_block(number: int, row: Accumulator) -> Accumulator:
    """What is kept of a block: its best element, not where that is."""
    return Accumulator(replace(row.reduction, position=None), f"b{number}", None, False)


def _loop(lines: Sequence[str]) -> list[str]:
    return ["for i in range(first, stop):", *indent(1, lines)]
