"""Bands: all positions that the rows of a block see, copied once for all of these.

Where they are widened, rows run on over the border along the last axis: so rows are as many as
positions, evenly spaced, and some have no results.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from satura.backend.contraction.spec import RowAxis
from satura.backend.sizes.size import defer

_WIDER = 1.2  # as many rows: copies of those that lie unevenly take longer


def rows_of_copies(rows: tuple[RowAxis, ...], position: int) -> tuple[RowAxis, ...]:
    """The axes over copies of all positions that are seen, of so many bytes each."""
    result: list[RowAxis] = []
    for row in reversed(rows):
        seen = row.seen(row.extent)
        result.insert(0, replace(row, stride=position, lo=0, input=seen))
        position *= seen
    return tuple(result)


def widened_rows(rows: tuple[RowAxis, ...]) -> tuple[RowAxis, ...]:
    """The axes with as many rows along the last one as there are positions."""
    *outer, last = rows
    return (*outer, replace(last, extent=last.seen(last.extent)))


def can_be_widened(rows: tuple[RowAxis, ...]) -> bool:
    """Whether that makes the rows of a band evenly spaced, and not many more."""
    *outer, last = rows
    if not outer or not last.is_windowed or last.step != 1 or outer[-1].step != 1:
        return False
    return _WIDER * last.extent >= last.seen(last.extent)


def widened_count(rows: tuple[RowAxis, ...]) -> int:
    """How many rows there are then, without those behind the very last that has a result."""
    wide = widened_rows(rows)
    return prod(axis.extent for axis in wide) - (wide[-1].extent - rows[-1].extent)


def positions_of_band(rows: tuple[RowAxis, ...], wide: tuple[RowAxis, ...], most: int) -> int:
    """How many positions `most` neighbouring rows may see, which run over `wide` axes: all but
    along the first axis."""
    first, *others = rows
    slices = _slices(most, first.extent, prod(axis.extent for axis in wide[1:]))
    return first.seen(slices) * prod(axis.seen(axis.extent) for axis in others)


@defer
def _slices(most: int, extent: int, inner: int) -> int:
    """Over how many indices of the first axis `most` rows may lie, where each has `inner` rows."""
    return min(extent, (most + inner - 2) // max(1, inner) + 1)
