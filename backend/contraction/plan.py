"""The plan of one call of a contraction kernel: how it is cut, and the words that say so."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from satura.backend.contraction.bands import (
    positions_of_band,
    rows_of_copies,
    widened_count,
    widened_rows,
)  # fmt: skip
from satura.backend.contraction.scratch import Layout
from satura.backend.contraction.shares import row_blocks
from satura.backend.contraction.spec import ContractionCall, ContractionSpec, parameters
from satura.backend.contraction.tile import Products
from satura.backend.lower.body import Argument
from satura.backend.matrices import LINE, PARTS
from satura.backend.sizes.size import defer
from satura.rewrite.types.tensor_type import DType

_WORD = 8
_BEYOND = 64  # bytes that may be written behind the last row
_PANEL_BYTES = 640 * 1024  # of one weight panel between two changes of tiles: stays in L2
_TABLE_BYTES = 64 * 1024  # of row addresses
_LEFT_BYTES = 2 * 1024 * 1024  # of rows in flight, which all panels see: stay in the last cache
_MOST_ROWS, _LEAST_TILES = 480, 8
_NEAR_BYTES, _LEAST_NEAR = 1536 * 1024, 2  # of parts of rows and of panels: stay in L2
_LEAST_KEPT = 64  # rows that are beside panels which stay for the next ones
_NEAREST_BYTES = 16 * 1024  # of rows of octets, which each panel sees: stay in the first cache
_NEAR_PANEL = 128 * 1024  # of parts of a panel
_DEEP, _SLAB = 1024, 768  # elements of rows that are multiplied slab by slab, and of a slab
_SUMS_BYTES = 2 * 1024 * 1024  # of a block, between two slabs


@dataclass(frozen=True)
class ContractionPlan:
    """Values for `parameters(spec)`, in order, and the scratch bytes that each thread needs."""

    arguments: tuple[Argument, ...]
    scratch_size: int


def contraction_plan(spec: ContractionSpec, call: ContractionCall, threads: int) -> ContractionPlan:
    """Blocking and arguments of one call that up to `threads` threads share."""
    tallest, word = spec.tile.rows[0], spec.word.itemsize
    by_rows = spec.left_packed and not spec.banded
    parted = spec.products is Products.PARTS
    taps, depth = (1, call.taps * call.depth) if by_rows else (call.taps, call.depth)
    chunk = spec.products.chunk(depth, by_rows) if spec.products.are_matrices else 1
    depth = spec.products.words(depth, by_rows)
    panels = -(-call.columns // spec.width)
    limit, pieces = _PANEL_BYTES, chunk
    if parted:
        beside = _NEAR_BYTES - panels * taps * depth * spec.line
        limit = _NEAR_BYTES if beside >= _LEAST_KEPT * depth * word else _NEAR_PANEL
        pieces = PARTS * chunk
    slabs, slab = 1, depth
    if parted and by_rows and call.taps * call.depth > _DEEP:
        slabs, slab = _slabs(depth, call.taps * call.depth, pieces)
        limit = slab * spec.line
    tap_step, depth_step = _panel_steps(taps, slab, limit // spec.line, pieces)
    if spec.tile.part:  # where the words of a tap begin is in the panel's table
        tap_step, depth_step = taps, max(1, depth)
    tap_steps, depth_steps = -(-taps // tap_step), -(-slab // depth_step)
    steps = max(1, tap_steps * depth_steps)
    groups = call.batches[-1] if spec.grouped else 1
    neighbours = groups if spec.shares_tables else 1  # units of the same rows follow one another
    fits = _rows_that_fit(taps, depth * word, tallest)
    if spec.products is Products.MATRICES:
        fits = _rows_nearby(fits, taps * depth * word, tallest)
    rows, row_count = call.rows, call.row_count
    if spec.widened:
        rows, row_count = widened_rows(rows), widened_count(rows)
    kept, panel_pitch = 1, tap_step * depth_step * spec.line
    if parted:
        if steps == slabs == 1:
            kept = _kept_panels(panels, panel_pitch, slab * word, prod(call.batches), row_count)
        fits = _rows_beside(kept * panel_pitch, slab * word, tallest)
        if slabs > 1:
            fits = _rows_between_slabs(fits, panels * spec.line, tallest)
    blocks = row_blocks(
        row_count, prod(call.batches) // neighbours, panels * neighbours, threads, fits,
        tallest, taps, taps * depth, spec.tile.vectors, spec.width // spec.tile.vectors,
    )  # fmt: skip
    most_rows = -(-row_count // blocks)
    if spec.products.are_matrices:
        every = -(-row_count // tallest)
        most_rows = -(-every // blocks) * tallest
    tiles = -(-most_rows // tallest)
    row_axes, seen = call.rows, slab * max(1, spec.shared)
    if spec.banded:
        row_axes = rows_of_copies(call.rows, LINE if spec.planar else seen * word)
    last = row_axes[-1]
    joins = last.taps > 1 and last.dilation == 1 and steps == 1 and not spec.planar
    joins = joins and last.stride == depth * word and not spec.shared and not spec.tile.part

    layout = Layout()
    tile_bytes = tallest * spec.line
    tile_pitch = tile_bytes if steps > 1 or slabs > 1 else 0
    panel_sums = tiles * tile_pitch if slabs > 1 else 0
    layout.take(
        panels * panel_sums if slabs > 1 else tile_bytes if steps == 1 else tiles * tile_pitch
    )
    table_pitch = taps * tallest * _WORD
    values: dict[str, Argument] = {
        "left": call.left, "right": call.right, "scratch": call.scratch,
        "batches": prod(call.batches), "blocks": blocks, "panels": panels,
        "rows": row_count, "columns": call.columns, "taps": taps, "depth": depth,
        "steps": steps, "depth_steps": max(1, depth_steps),
        "tap_step": tap_step, "depth_step": depth_step,
        "table_offset": layout.take(tiles * table_pitch),
        "table_pitch": table_pitch, "tile_pitch": tile_pitch,
        "fill": _fill_word(spec, call.fill),
        "fill_offset": layout.take(0 if spec.banded else seen * word * groups),
        "joins": int(joins), "kinds_offset": layout.take(tiles * _WORD),
        "hops_offset": layout.take(3 * taps * _WORD),
        "left_depth_stride": call.left_depth_stride,
        "right_depth_stride": call.right_depth_stride,
        "right_column_stride": call.right_column_stride,
        "tap_depth": call.depth, "right_depth": call.taps * call.depth,
        "left_zero": call.left_zero, "right_zero": call.right_zero,
        "panel_lines": call.panel_lines, "table_lines": call.table_lines, "chunk": chunk,
        "apart": chunk * word, "elements": call.depth, "result_extent": call.rows[-1].extent,
    }  # fmt: skip
    if spec.left_packed:
        positions = positions_of_band(call.rows, rows, most_rows) if spec.banded else most_rows
        position = seen * word
        if spec.planar:  # an odd number of lines: so the planes of a position lie in different sets
            position = slab // chunk * LINE
            values["apart"] = (positions // 2 * 2 + 1) * LINE
        values["rows_offset"] = layout.take((positions + 1) * position + _BEYOND)
        values["positions"] = positions
        values["flags_offset"] = layout.take((positions + 1) * _WORD)
    if parted:
        values["kept"], values["panel_pitch"] = kept, panel_pitch
        values["panel_offset"] = layout.take(kept * panel_pitch)
        values["tags_offset"] = layout.take(kept * _WORD)
        values["slabs"], values["slab_words"], values["panel_sums"] = slabs, slab, panel_sums
        values["before_offset"] = layout.take(tile_bytes)
    elif spec.right_packed:
        values["panel_offset"] = layout.take((taps * depth + spec.heads) * spec.line)
    for axis, extent in enumerate(call.batches):
        values[f"batch_extent{axis}"] = extent
        values[f"left_batch{axis}"] = call.left_strides[axis]
        values[f"right_batch{axis}"] = call.right_strides[axis]
    for axis, row in enumerate(row_axes):
        values[f"row_extent{axis}"] = rows[axis].extent
        source = call.rows[axis]
        values[f"source{axis}"] = source.stride
        values[f"border{axis}"], values[f"held{axis}"] = source.lo, source.input
        for name in ("stride", "step", "lo", "input", "taps", "dilation"):
            values[f"{name}{axis}"] = getattr(row, name)
    values["scratch_pitch"] = layout.size
    return ContractionPlan(tuple(values[name] for name in parameters(spec)), layout.size)


def _fill_word(spec: ContractionSpec, fill: float) -> int:
    """What stands for positions outside: a word of the fill page, or one packed integer."""
    if not spec.is_integer:
        bits = np.uint32 if spec.word is DType.F32 else np.int64
        return int(np.asarray(fill, spec.word.numpy).view(bits))
    is_octet = spec.left_packed and not spec.octets_banded
    return int(fill) if is_octet else int(fill) * 0x01010101


def _panel_steps(taps: int, depth: int, limit: int, chunk: int) -> tuple[int, int]:
    """How many taps, and how many whole chunks of each one's depth, a step takes over a panel, of
    which so many lines are near."""
    if depth > limit:
        pieces = -(-depth // limit)
        return 1, -(-depth // (pieces * chunk)) * chunk
    return max(1, min(taps, limit // max(1, depth))), max(1, depth)


@defer
def _rows_that_fit(taps: int, tap: int, tallest: int) -> int:
    """How many rows a block may have: what fits the caches, or some tiles. Of a row a tap sees
    `tap` bytes."""
    fits = min(_TABLE_BYTES // (_WORD * taps), _LEFT_BYTES // max(1, tap), _MOST_ROWS)
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
