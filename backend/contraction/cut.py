"""The cut of a contraction: depth into slabs and steps over a panel, rows into blocks that fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from satura.backend.contraction.spec import ContractionCall, ContractionSpec
from satura.backend.contraction.tile import Products
from satura.backend.matrices import PARTS
from satura.backend.sizes.size import defer, largest

_POINTER = 8  # bytes
_PANEL_BYTES = 640 * 1024  # of one weight panel between two changes of tiles: stays in L2
_LONGEST = 512  # products that are summed one after the other: errors grow with their number
_TABLE_BYTES = 64 * 1024  # of row addresses
_LEFT_BYTES = 2 * 1024 * 1024  # of rows in flight, which all panels see: stay in the last cache
_MOST_ROWS, _LEAST_TILES = 480, 8
_NEAREST_BYTES = 16 * 1024  # of rows of octets, which each panel sees: stay in the first cache
# Where f32 are multiplied in parts:
_NEAR_BYTES, _LEAST_NEAR = 1536 * 1024, 2  # of parts of rows and of panels: stay in L2
_LEAST_KEPT = 64  # rows that are beside panels which stay for the next ones
_NEAR_PANEL = 128 * 1024  # of parts of a panel
_DEEP, _SLAB = 1024, 768  # elements of rows that are multiplied slab by slab, and of a slab
_SUMS_BYTES = 2 * 1024 * 1024  # of a block, between two slabs


@dataclass(frozen=True)
class Cut:
    """How depth and rows of a call are cut; depths are in words.

    Each of `taps` has a depth of `slabs` slabs. A slab is multiplied in steps over a panel, of
    `tap_step` taps and `depth_step` words of each, which are whole chunks. In scratch memory are
    `kept` panels at a time, and in a block as many rows as `fits` says at most.
    """

    taps: int
    depth: int
    chunk: int
    slabs: int
    slab: int
    tap_step: int
    depth_step: int
    kept: int
    fits: int

    @property
    def depth_steps(self) -> int:
        """How many steps each tap of a slab takes."""
        return largest(1, -(-self.slab // self.depth_step))

    @property
    def steps(self) -> int:
        """How many steps a slab takes."""
        return largest(1, -(-self.taps // self.tap_step)) * self.depth_steps

    @property
    def lines(self) -> int:
        """How many lines of a panel a step takes."""
        return self.tap_step * self.depth_step


def cut_of(spec: ContractionSpec, call: ContractionCall, rows: int) -> Cut:
    """The cut of a call that has so many rows."""
    tallest, word = spec.tile.rows[0], spec.word.itemsize
    by_rows = spec.left_packed and not spec.banded
    taps, elements = (1, call.taps * call.depth) if by_rows else (call.taps, call.depth)
    depth = spec.products.words(elements, by_rows)
    chunk = spec.products.chunk(elements, by_rows) if spec.products.are_matrices else 1
    if spec.products is Products.PARTS:
        whole = Cut(taps, depth, chunk, 1, depth, taps, depth, 1, rows)
        return _cut_of_parts(whole, spec, call, elements if by_rows else 0)
    near = _PANEL_BYTES // spec.line
    near = near if spec.is_integer else min(near, _LONGEST)
    tap_step, depth_step = _tap_step(taps, depth, near), _depth_step(depth, near, chunk)
    if spec.tile.part:  # where the words of a tap begin is in the panel's table
        tap_step, depth_step = taps, max(1, depth)
    fits = _rows_that_fit(taps, depth * word, tallest)
    if spec.products is Products.MATRICES:
        fits = _rows_nearby(fits, taps * depth * word, tallest)
    return Cut(taps, depth, chunk, 1, depth, tap_step, depth_step, 1, fits)


def _cut_of_parts(whole: Cut, spec: ContractionSpec, call: ContractionCall, elements: int) -> Cut:
    """The same where a panel is split into parts, for some blocks of rows or for each: it is beside
    them then. Of rows that lie side by side, so many `elements` long, slabs may be cut."""
    tallest, word = spec.tile.rows[0], spec.word.itemsize
    panels, pieces = -(-call.columns // spec.width), PARTS * whole.chunk
    beside = _NEAR_BYTES - panels * whole.taps * whole.depth * spec.line
    limit = _NEAR_BYTES if beside >= _LEAST_KEPT * whole.depth * word else _NEAR_PANEL
    slabs, slab = 1, whole.depth
    if elements > _DEEP:
        slabs, slab = _slabs(whole.depth, elements, pieces)
        limit = slab * spec.line
    near = limit // spec.line
    tap_step, depth_step = _tap_step(whole.taps, slab, near), _depth_step(slab, near, pieces)
    cut = replace(whole, slabs=slabs, slab=slab, tap_step=tap_step, depth_step=depth_step)
    panel, row, kept = cut.lines * spec.line, slab * word, 1
    if cut.steps == slabs == 1:
        kept = _kept_panels(panels, panel, row, prod(call.batches), whole.fits)
    fits = _rows_beside(kept * panel, row, tallest)
    if slabs > 1:
        fits = _rows_between_slabs(fits, panels * spec.line, tallest)
    return replace(cut, kept=kept, fits=fits)


@defer
def _tap_step(taps: int, depth: int, near: int) -> int:
    """How many taps a step takes over a panel, of which so many lines are near."""
    return max(1, min(taps, near // max(1, depth)))


@defer
def _depth_step(depth: int, near: int, chunk: int) -> int:
    """How many words of a tap's depth: all, or whole chunks of about a fair share."""
    pieces = -(-depth // near)
    return max(1, depth) if pieces <= 1 else -(-depth // (pieces * chunk)) * chunk


@defer
def _rows_that_fit(taps: int, tap: int, tallest: int) -> int:
    """How many rows a block may have: what fits the caches, or some tiles. Of a row a tap sees
    `tap` bytes."""
    fits = min(_TABLE_BYTES // (_POINTER * taps), _LEFT_BYTES // max(1, tap), _MOST_ROWS)
    return max(fits, _LEAST_TILES * tallest)


@defer
def _rows_nearby(fits: int, row: int, tallest: int) -> int:
    """The same where registers take rows of octets for each panel anew: what stays in the first
    cache, if that is some tiles."""
    near = _NEAREST_BYTES // max(1, row) // tallest * tallest
    return min(fits, near) if near >= _LEAST_NEAR * tallest else fits


def _slabs(words: int, elements: int, pieces: int) -> tuple[int, int]:
    """How many slabs of whole pieces so many words of a row are, and how many words one has."""
    count = -(-elements // _SLAB)
    slab = -(-words // (count * pieces)) * pieces
    return -(-words // slab), slab


@defer
def _rows_between_slabs(fits: int, row: int, tallest: int) -> int:
    """How many of these rows a block may have, whose sums wait for the next slab: `row` bytes."""
    return max(min(fits, _SUMS_BYTES // max(1, row)), _LEAST_NEAR * tallest)


@defer
def _kept_panels(panels: int, panel: int, row: int, products: int, rows: int) -> int:
    """How many panels of parts are kept: all, if several blocks of rows see them, and a block fits
    the cache of a core beside them. Of a row a tap sees `row` bytes."""
    beside = (_NEAR_BYTES - panels * panel) // max(1, row)
    are_seen_again = products > 1 or rows > min(beside, _MOST_ROWS)
    return panels if are_seen_again and beside >= _LEAST_KEPT else 1


@defer
def _rows_beside(panel: int, tap: int, tallest: int) -> int:
    """How many rows of parts a block may have beside a panel of so many bytes, which is split for
    each block: what fits the cache of a core, or some tiles. Of a row a tap sees `tap` bytes."""
    return max(min((_NEAR_BYTES - panel) // max(1, tap), _MOST_ROWS), _LEAST_NEAR * tallest)
