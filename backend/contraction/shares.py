"""Shares: the tile and the blocks with which the thread that has most to do is done soonest.

Threads share units, of a block of rows and one panel of columns each, in the order of their rows.
Where there are few, narrower tiles make more panels, and tiles of fewer rows fill shorter blocks.

What comes before and after a contraction is shared by rows, too: so a thread finds its own part of
the rows in its own cache, and what it reads or writes of others' costs a transfer between cores.
Where each thread keeps to its rows, all of them fetch all panels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from satura.backend.contraction.tile import Tile, panel_columns, panel_count, tile_of, with_tail
from satura.backend.sizes.size import defer

_MANY = 8  # units per thread, beyond which one more or less does not matter
_GAIN = 0.95  # of the time: what gains less is not worth a kernel of its own
_FOREIGN, _FETCHED = 4, 16  # bytes per cycle: from another core's cache, and of panels ahead of use
_WORD = 4  # bytes
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


@defer
def row_blocks(
    rows: int, products: int, panels: int, threads: int, fits: int, tallest: int, taps: int,
    lines: int, vectors: int, lanes: int, around: int = 2,
) -> int:  # fmt: skip
    """Into how many blocks the rows of each product are cut: of no more rows than `fits`, and for
    several threads those of which the largest share takes least.

    A panel has `lines` of so many `vectors`, of `lanes` words each; a row sees so many `taps`. To
    begin a unit takes as long as so many rows `around` it.
    """
    blocks = max(1, -(-rows // fits))
    if threads == 1 or not products * panels:
        return blocks
    if blocks >= _MANY * threads:
        return -(-blocks // threads) * threads
    # In units of what a row's products with a panel take:
    fetch = 2 * lanes * _WORD / _FETCHED
    read = 2 * _WORD / (_FOREIGN * max(1, taps) * vectors)
    write = 2 * lanes * _WORD / (_FOREIGN * max(1, lines))

    def largest_share(count: int) -> float:
        most = -(-rows // count)
        computed = max(most, -(-most // tallest) * (tallest - 1))
        share = -(-products * panels * count // threads)
        seen = min(share, panels)
        places = -(-share // panels)  # blocks of which it computes some columns
        foreign = max(0.0, min(places * most, products * rows) - products * rows / threads)
        fetched = max(seen, share // count)
        return share * (computed + around) + foreign * (read + seen * write) + fetched * fetch

    most = max(blocks, min(blocks + threads, rows // tallest))
    return min(range(blocks, most + 1), key=largest_share)
