"""Firings of which an extent is made open: a condition may hold of a symbol, and not of its size.

`t.shape[0] != 0` is true of n, which may be 0 in a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from satura.rewrite.check.instances import Instance, fires, is_well_typed
from satura.rewrite.check.smaller_extents import with_extent
from satura.rewrite.language.dsl import Direction
from satura.rewrite.ops.draw import SYMBOLS
from satura.rewrite.types.attributes import Axes, Axis, Padding

WANTED = 24  # that fire
BASES = 96  # firings that are asked


def with_open_extents(
    direction: Direction, firings: Sequence[Instance], scale: int
) -> Iterator[Instance]:
    """Firings with a symbol for an extent that is padded, that an axis names, or a condition."""
    left = WANTED * scale
    found: set[object] = set()
    bases = sorted(firings, key=lambda each: not _padded_axes(each)) if direction.conditions else []
    for number, base in enumerate(bases[: BASES * scale]):
        axes = _padded_axes(base) or _named_axes(base)
        if not left:
            return
        for name, type_ in base.types.items():
            open_axes = [axis for axis in axes if axis < type_.rank] or [*range(type_.rank)]
            static = [axis for axis in open_axes if isinstance(type_.shape[axis], int)]
            if not static:
                continue
            axis = static[number % len(static)]
            opened = _opened(base, name, axis)
            if opened is not None and opened.values not in found:
                found.add(opened.values)
                left -= 1
                yield opened
                break


def _opened(base: Instance, name: str, axis: int) -> Instance | None:
    """The firing with a symbol there and wherever that axis is as long, or there alone."""
    extent = base.types[name].shape[axis]
    alike = [
        (other, axis)
        for other, type_ in base.types.items()
        if axis < type_.rank and type_.shape[axis] == extent
    ]
    symbol = next((each for each in SYMBOLS if str(each) not in base.symbols), SYMBOLS[0])
    for places in (alike, [(name, axis)]):
        opened = with_extent(base, places, symbol)
        if is_well_typed(opened) and fires(opened):
            return opened
    return None


def _padded_axes(instance: Instance) -> list[int]:
    pads = [value for _, value in instance.values if isinstance(value, Padding)]
    axes = (
        axis
        for each in pads
        for axis, ends in enumerate(zip(each.lo, each.hi, strict=True))
        if ends != (0, 0)
    )
    return [*dict.fromkeys(axes)]


def _named_axes(instance: Instance) -> list[int]:
    """The axes that attributes name."""
    named: dict[int, None] = {}
    for _, value in instance.values:
        if isinstance(value, Axis | Axes):
            indices = (value.index,) if isinstance(value, Axis) else value.indices
            named |= dict.fromkeys(indices)
    return [*named]
