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
from satura.backend.contraction.cut import cut_of
from satura.backend.contraction.scratch import Layout
from satura.backend.contraction.shares import row_blocks
from satura.backend.contraction.spec import ContractionCall, ContractionSpec, parameters
from satura.backend.contraction.tile import Products
from satura.backend.lower.body import Argument
from satura.backend.matrices import LINE
from satura.backend.sizes.size import smallest
from satura.rewrite.types.tensor_type import DType

_POINTER = 8  # bytes
_BEYOND = 64  # bytes that may be written behind the last row


@dataclass(frozen=True)
class ContractionPlan:
    """Values for `parameters(spec)`, in order, and the scratch bytes that each thread needs."""

    arguments: tuple[Argument, ...]
    scratch_size: int


def contraction_plan(spec: ContractionSpec, call: ContractionCall, threads: int) -> ContractionPlan:
    """Blocking and arguments of one call that up to `threads` threads share."""
    tallest, word = spec.tile.rows[0], spec.word.itemsize
    rows, row_count = call.rows, call.row_count
    if spec.widened:
        rows, row_count = widened_rows(rows), widened_count(rows)
    cut = cut_of(spec, call, row_count)
    panels = -(-call.columns // spec.width)
    groups = call.batches[-1] if spec.grouped else 1
    neighbours = groups if spec.shares_tables else 1  # units of the same rows follow one another
    blocks = row_blocks(
        row_count, prod(call.batches) // neighbours, panels * neighbours, threads, cut.fits,
        tallest, cut.taps, cut.taps * cut.depth, spec.tile.vectors, spec.width // spec.tile.vectors,
    )  # fmt: skip
    most_rows = -(-row_count // blocks)
    if spec.products.are_matrices:
        every = -(-row_count // tallest)
        most_rows = -(-every // blocks) * tallest
    tiles = -(-most_rows // tallest)
    row_axes, seen = call.rows, cut.slab * max(1, spec.shared)
    if spec.banded:
        row_axes = rows_of_copies(call.rows, LINE if spec.planar else seen * word)
    last = row_axes[-1]
    joins = last.taps > 1 and last.dilation == 1 and cut.steps == 1 and not spec.planar
    joins = joins and last.stride == cut.depth * word and not spec.shared and not spec.tile.part

    layout = Layout()
    tile_bytes = tallest * spec.line
    # The sums of tiles lie apart where they wait for a next step:
    tile_pitch = tile_bytes * smallest(cut.steps * cut.slabs - 1, 1)
    sums, panel_sums = tile_bytes + (tiles - 1) * tile_pitch, 0
    if cut.slabs > 1:
        sums, panel_sums = panels * sums, sums
    layout.take(sums)
    table_pitch = cut.taps * tallest * _POINTER
    values: dict[str, Argument] = {
        "left": call.left, "right": call.right, "scratch": call.scratch,
        "batches": prod(call.batches), "blocks": blocks, "panels": panels,
        "rows": row_count, "columns": call.columns, "taps": cut.taps, "depth": cut.depth,
        "steps": cut.steps, "depth_steps": cut.depth_steps,
        "tap_step": cut.tap_step, "depth_step": cut.depth_step,
        "table_offset": layout.take(tiles * table_pitch),
        "table_pitch": table_pitch, "tile_pitch": tile_pitch,
        "fill": _fill_word(spec, call.fill),
        "fill_offset": layout.take(0 if spec.banded else seen * word * groups),
        "joins": int(joins), "kinds_offset": layout.take(tiles * _POINTER),
        "hops_offset": layout.take(3 * cut.taps * _POINTER),
        "left_depth_stride": call.left_depth_stride,
        "right_depth_stride": call.right_depth_stride,
        "right_column_stride": call.right_column_stride,
        "tap_depth": call.depth, "right_depth": call.taps * call.depth,
        "left_zero": call.left_zero, "right_zero": call.right_zero,
        "panel_lines": call.panel_lines, "table_lines": call.table_lines, "chunk": cut.chunk,
        "apart": cut.chunk * word, "elements": call.depth, "result_extent": call.rows[-1].extent,
    }  # fmt: skip
    if spec.left_packed:
        positions = positions_of_band(call.rows, rows, most_rows) if spec.banded else most_rows
        position = seen * word
        if spec.planar:  # an odd number of lines: so the planes of a position lie in different sets
            position = cut.slab // cut.chunk * LINE
            values["apart"] = (positions // 2 * 2 + 1) * LINE
        values["rows_offset"] = layout.take((positions + 1) * position + _BEYOND)
        values["positions"] = positions
        values["flags_offset"] = layout.take((positions + 1) * _POINTER)
    if spec.products is Products.PARTS:
        values["kept"], values["panel_pitch"] = cut.kept, cut.lines * spec.line
        values["panel_offset"] = layout.take(cut.kept * cut.lines * spec.line)
        values["tags_offset"] = layout.take(cut.kept * _POINTER)
        values["slabs"], values["slab_words"] = cut.slabs, cut.slab
        values["panel_sums"] = panel_sums
        values["before_offset"] = layout.take(tile_bytes)
    elif spec.right_packed:
        values["panel_offset"] = layout.take((cut.taps * cut.depth + spec.heads) * spec.line)
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
