"""Shares: the tile with which the thread that has most to do is done soonest.

Threads share units, of some rows and one panel of columns each. Where there are few, narrower tiles
make more panels, and tiles of fewer rows fill shorter blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from satura.backend.contraction.tile import Tile, panel_columns, panel_count, tile_of, with_tail

_MANY = 8  # units per thread, beyond which one more or less does not matter
_GAIN = 0.95  # of the time: what gains less is not worth a kernel of its own
UnitCycles: TypeAlias = Callable[[Tile, int], float]
"""The cycles of a core that a tile takes for a unit of so many rows."""


def share_cycles(
    tile: Tile, rows: int, columns: int, products: int, threads: int, cycles: UnitCycles
) -> float:
    """The cycles of the thread that has most to do, of so many `products` of `rows` by `columns`,
    whose rows are cut as is best for it."""
    if threads == 1:
        return products * panel_count(tile, columns) * cycles(tile, rows)
    panels = _panels(tile, columns, products)
    return min(
        _largest_share(tile, rows, panels, threads, blocks, cycles)
        for blocks in _block_counts(rows, panels, threads)
    )


def tile_for_threads(
    tile: Tile, rows: int, columns: int, products: int, threads: int, cycles: UnitCycles
) -> Tile:
    """`tile`, or another one with which the thread that has most to do takes less."""
    counts = _block_counts(rows, _panels(tile, columns, products), threads)
    if threads == 1 or len(counts) == 1:
        return tile
    best, least = tile, _GAIN * share_cycles(tile, rows, columns, products, threads, cycles)
    for blocks in counts:
        for vectors in range(tile.vectors, 0, -1):
            other = tile_of(vectors, -(-rows // blocks), tile.products)
            if tile.tail:
                other = with_tail(other, columns)
            panels = _panels(other, columns, products)
            share = _largest_share(other, rows, panels, threads, blocks, cycles)
            if share < least:
                best, least = other, share
    return best


def _panels(tile: Tile, columns: int, products: int) -> int:
    """How many panels all products have."""
    return products * -(-columns // panel_columns(tile))


def _block_counts(rows: int, panels: int, threads: int) -> range:
    """Into how many blocks rows may be cut: into one, where panels are enough for all threads."""
    return range(1, 2 if panels >= _MANY * threads else min(threads, rows) + 1)


def _largest_share(
    tile: Tile, rows: int, panels: int, threads: int, blocks: int, cycles: UnitCycles
) -> float:
    return -(-panels * blocks // threads) * cycles(tile, -(-rows // blocks))
