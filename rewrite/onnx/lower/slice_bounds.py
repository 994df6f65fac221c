"""Bounds of slices: where the first element is, and how many there are, for sizes that are open."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.types.clamps import largest, smallest
from satura.rewrite.types.dims import Dim, known_at_least, static, symbols_of
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.typical import samples

FAR = 2**31 - 1  # exporters write "to the end" as this or more


def hold_at_typical_sizes(natural: Sequence[Dim]) -> bool:
    """Whether all of these are at least 0 at more than one of the sizes that are typical."""
    needed = [SizeCondition(dim, 0, ">=", "") for dim in natural]
    looked_at = samples(symbols_of(natural))
    return sum(all(each.holds(sizes) for each in needed) for sizes in looked_at) > 1


def slice_bounds(extent: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim, Dim, list[Dim]]:
    """First index and number of elements of extent[start:end:step], where others are not negative.

    Those are what the clamps of open sizes come down to.
    """
    if all(isinstance(value, int) for value in (extent, start, end)):
        # A backward slice that starts before the axis takes the first element, unlike Python's.
        begin = max(static(start), -static(extent)) if step < 0 else start
        covered = range(*slice(begin, end, step).indices(static(extent)))
        return (covered.start if covered else 0), len(covered), []
    reach, least = (extent, 0) if step > 0 else (extent - 1, -1)
    low, low_inside = _bound(start, extent, reach, 0)
    high, high_inside = _bound(end, extent, reach, least)
    if step < 0 and isinstance(end, int) and end < -FAR:
        high, high_inside = -1, []
    if step < 0 and high == reach:
        return 0, 0, []  # wherever it starts
    span = high - low if step > 0 else low - high
    if known_at_least(-span, 0):
        return low, 0, [*low_inside, *high_inside]
    natural = [span] if low_inside or high_inside else []
    return low, (span + (abs(step) - 1)) // abs(step), [*low_inside, *high_inside, *natural]


def clamped_bounds(extent: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim, Dim] | None:
    """First index and number of elements of extent[start:end:step] for all sizes.

    None where that is not known: backwards, where a bound may count from either end, or where
    two sizes are compared.
    """
    ends: list[Dim] = []
    for value in (start, end):
        if isinstance(value, int) and abs(value) >= FAR:
            value = extent if value > 0 else 0
        if not known_at_least(value, 0) and not known_at_least(-value, 1):
            return None
        ends.append(value if known_at_least(value, 0) else value + extent)
    begin, stop = ends
    first, last = (_within(at, extent) for at in ends)
    size: Dim | None = None
    if first is not None and last is not None and known_at_least(stop - begin, 0):
        size = last - first
    elif known_at_least(begin - stop, 0) or known_at_least(-stop, 0):
        size = 0
    elif known_at_least(begin, 0) and known_at_least(extent - stop, 0):
        size = largest(stop - begin, 0)
    elif known_at_least(extent - begin, 0) and known_at_least(stop, 0):
        size = _between_both_ends(extent, extent - begin, stop)
    if step < 0 or first is None or size is None:
        return None
    return first, (size + (step - 1)) // step


def _between_both_ends(extent: Dim, last: Dim, first: Dim) -> Dim | None:
    """How many are among the `last` and the `first` elements of an axis; None as above."""
    parts = [largest(extent - gone, 0) for gone in (last, first, last + first)]
    if any(part is None for part in parts):
        return None
    not_last, not_first, neither = (part or 0 for part in parts)
    return extent - not_last - not_first + neither


def _within(at: Dim, extent: Dim) -> Dim | None:
    """A bound between 0 and `extent`; None where no dim is known to be that."""
    if known_at_least(at, 0):
        return smallest(at, extent)
    return largest(at, 0) if known_at_least(extent - at, 0) else None


def _bound(value: Dim, extent: Dim, reach: Dim, least: int) -> tuple[Dim, list[Dim]]:
    """A slice's bound counted from 0, between `least` and `reach` where that can be told.

    Else the second are not negative where it is. One that may be negative counts from the end if it
    is never positive, as -m is, and else from the start.
    """
    if isinstance(value, int) and value >= FAR:
        return reach, []
    at_0 = [] if known_at_least(reach, 0) else [reach]  # backwards, an axis has no first element
    if isinstance(value, int) and value <= -FAR:
        return 0, at_0
    needed: list[Dim] = []
    if not known_at_least(value, 0):
        is_from_end = known_at_least(-value, 0)
        if not is_from_end:
            needed = [value]
        elif not known_at_least(-value, 1):
            needed = [-value - 1]
        value = value + extent if is_from_end else value
    if known_at_least(value - reach, 0):
        return reach, needed
    if known_at_least(least - value, 0):
        return least, [*needed, *at_0]
    inside = [value - least, reach - value]
    return value, [*needed, *(dim for dim in inside if not known_at_least(dim, 0))]
