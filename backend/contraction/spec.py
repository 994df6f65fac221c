"""Matmuls and convolutions: what a contraction kernel is generic over, and its arguments.

A contraction has batches, rows and columns: result[b, r, n] = Σ over taps t and depth k of
left[b, r, t, k] · right[b, t, k, n]. Rows run over one or more axes. Along a windowed axis (of a
convolution) a row sees several input positions, one per tap, and positions outside the input
count as the fill value. Groups of a convolution are its last batch axis.

Operands are read as words: an f32, an f64, or several neighbours along the depth of integers in
four bytes (see `Products`). Depths and steps below count words.

`ContractionSpec` is what the text of a kernel depends on. Everything else is an argument:
`ContractionCall` describes one call, and `contraction_plan` turns it into the argument table's
first words and the bytes of scratch that each thread needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from satura.backend.contraction.scratch import Layout
from satura.backend.contraction.shares import row_blocks
from satura.backend.contraction.tile import (
    Products,
    Tile,
    panel_columns,
    step_cycles,
    tile_name,
)  # fmt: skip
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
_NEAR_BYTES, _LEAST_NEAR = 1536 * 1024, 2  # of parts of rows and of a panel: stay in L2
_WIDER = 1.2  # as many rows: copies of those that lie unevenly take longer
_NEAR_PANEL = 256 * 1024  # of parts of a panel
_AROUND_A_ROW, _OF_AN_AXIS, _OF_A_COUNT = 8, 1, 1  # cycles per row of a tile


@dataclass(frozen=True)
class ContractionSpec:
    """What the text of a contraction kernel depends on, besides its epilogue.

    `windowed` has one entry per row axis, `dtype` is that of the operands in memory. The left
    operand is read in place, or copied as words first (`left_packed`: its depth is not contiguous,
    or its elements are none): row by row, or all positions between those that a block's first and
    last rows see (`banded`, those of octets where `octets_banded`), where each counts for several
    rows. The right operand comes as weight
    panels (see `pack_panels`), or is copied to one by the kernel (`right_packed`): elements of
    the dtype `right`, where that is another. Panels of integers start with a line of what is added
    to the sums. `result` is the dtype of the sums. As many small groups of a convolution as
    `shared` says (0: none) have their columns in one vector, and are one group. Where columns fill
    all panels (`full`), the text says how many a panel has, and LLVM writes the epilogue without
    loops. Where copies are `widened`, rows along the last axis are followed by as many as would see
    its border, so that all are evenly spaced; these have no results.
    """

    batches: int
    windowed: tuple[bool, ...]
    tile: Tile
    grouped: bool = False
    left_packed: bool = False
    right_packed: bool = False
    dtype: DType = DType.F32
    right: DType | None = None
    result: DType = DType.F32
    shared: int = 0
    full: bool = False
    octets_banded: bool = False
    widened: bool = False

    @property
    def products(self) -> Products:
        return self.tile.products

    @property
    def word(self) -> DType:
        """The dtype of words and sums."""
        return self.products.word

    @property
    def is_integer(self) -> bool:
        return self.word.is_integer

    @property
    def width(self) -> int:
        """How many columns a panel has."""
        return panel_columns(self.tile)

    @property
    def line(self) -> int:
        """The bytes of a panel's columns at one depth."""
        return self.width * self.word.itemsize

    @property
    def banded(self) -> bool:
        """Whether the positions that the rows of a block see are copied, not the rows."""
        return self.octets_banded or (
            self.left_packed and any(self.windowed) and not self.is_integer
        )

    @property
    def planar(self) -> bool:
        """Whether copies of positions are planes: of each chunk, or of its parts, a line of 16
        words for each position, so that the lines that registers take lie side by side."""
        return self.products is Products.PARTS or self.octets_banded

    @property
    def shares_tables(self) -> bool:
        """Whether the groups of a block have one table: they are a distance apart everywhere."""
        return self.grouped and not self.left_packed and not self.tile.part

    @property
    def heads(self) -> int:
        """How many lines stand before the weights of a panel."""
        return int(self.is_integer)

    def serves(self, other: ContractionSpec, columns: int, any_sizes: bool) -> bool:
        """Whether this kernel can run what `other` is made for: a call of other arguments.

        Row axes may be missing, which then have one row, the tile may be another one, and panels
        may be full where this kernel asks how full they are.
        """
        missing = len(self.windowed) - len(other.windowed)
        if missing < 0 or any(self.windowed[:missing]) or self.windowed[missing:] != other.windowed:
            return False
        if self.products is not other.products:
            return False
        if self.tile != other.tile and (any_sizes or self.tile.part):
            return False  # how many rows there are is not asked; sorted words stand in panels
        if self.full and (not other.full or columns % self.width):
            return False
        return self == replace(other, windowed=self.windowed, tile=self.tile, full=self.full)

    def cycles(self, lines: int, tile: Tile, rows: int) -> float:
        """About how many cycles of a core a panel of so many lines takes with the rows of a block:
        rows beyond the last count, and so does what there is to do around each row of a tile."""
        tiles = -(-rows // tile.rows[0])
        least, larger = divmod(rows, tiles)
        heights = ((least, tiles - larger), (least + 1, larger))
        step = sum(count * step_cycles(tile, height) for height, count in heights if count)
        around = _AROUND_A_ROW + _OF_AN_AXIS * len(self.windowed) + _OF_A_COUNT * (not self.full)
        return step * lines + rows * around

    @property
    def tile_names(self) -> tuple[str, ...]:
        """The microkernels, one per entry of the tile's rows."""
        if self.tile.part:
            return (tile_name(self.tile.part, self.tile.vectors, self.products),)
        depth = self.width // self.shared if self.shared else 0
        return tuple(
            tile_name(rows, self.tile.vectors, self.products, depth) for rows in self.tile.rows
        )

    @property
    def tail_names(self) -> tuple[str, ...]:
        """The microkernels of a panel that few columns fill, one per entry of the tile's rows."""
        width, vectors = self.tile.vectors, self.tile.tail
        return tuple(
            tile_name(rows, vectors, self.products, width=width) for rows in self.tile.rows
        )


@dataclass(frozen=True)
class RowAxis:
    """One axis of the rows: its extent, and the bytes between neighbouring input positions.

    Row r of a windowed axis sees, for tap t, position r · step - lo + t · dilation of `input`.
    """

    extent: int
    stride: int
    step: int = 1
    lo: int = 0
    input: int = 0
    taps: int = 1
    dilation: int = 1

    @property
    def is_windowed(self) -> bool:
        return self.taps > 1 or self.lo != 0 or self.input != 0

    def seen(self, count: int) -> int:
        """How many positions so many neighbouring rows see, the border among them."""
        return (count - 1) * self.step + (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True)
class ContractionCall:
    """One call. Strides are in bytes; `depth` counts the elements that one tap sees. Of integers
    that the kernel packs, `left_zero` and `right_zero` are taken off; `fill` is what is read then.
    `panel_lines` are those of each panel of sorted words, `table_lines` those before the weights.

    `right_depth_stride` (over taps and depth together) and `right_column_stride` matter to a
    kernel that packs its right operand, `left_depth_stride` to one that packs its left.
    """

    left: Argument
    right: Argument
    scratch: Argument
    batches: tuple[int, ...]
    left_strides: tuple[int, ...]
    right_strides: tuple[int, ...]
    rows: tuple[RowAxis, ...]
    columns: int
    depth: int
    fill: float = 0.0
    left_depth_stride: int = 4
    right_depth_stride: int = 0
    right_column_stride: int = 0
    left_zero: int = 0
    right_zero: int = 0
    panel_lines: int = 0
    table_lines: int = 0

    @property
    def row_count(self) -> int:
        return prod(axis.extent for axis in self.rows)

    @property
    def taps(self) -> int:
        return prod(axis.taps for axis in self.rows)


@dataclass(frozen=True)
class ContractionPlan:
    """Values for `parameters(spec)`, in order, and the scratch bytes that each thread needs."""

    arguments: tuple[Argument, ...]
    scratch_size: int


def parameters(spec: ContractionSpec) -> tuple[str, ...]:
    """Names of the first words of the argument table; the epilogue's follow."""
    names = ["left", "right", "scratch", "scratch_pitch", "batches", "blocks", "panels"]
    names += ["rows", "columns", "taps", "depth", "steps", "depth_steps", "tap_step", "depth_step"]
    names += ["table_offset", "table_pitch", "tile_pitch", "hops_offset"]
    for axis in range(spec.batches):
        names += [f"batch_extent{axis}", f"left_batch{axis}", f"right_batch{axis}"]
    for axis, windowed in enumerate(spec.windowed):
        names += [f"row_extent{axis}", f"stride{axis}"]
        if windowed:
            names += [f"step{axis}", f"lo{axis}", f"input{axis}", f"taps{axis}", f"dilation{axis}"]
    if spec.widened:
        names += ["valid"]
    if any(spec.windowed):
        names += ["fill", "fill_offset", "joins", "kinds_offset"]
    if spec.left_packed:
        names += ["left_depth_stride", "rows_offset"]
        if spec.is_integer:
            names += ["tap_depth", "left_zero"]
    if spec.banded:
        names += [f"source{axis}" for axis in range(len(spec.windowed))]
        cut = [axis for axis, windowed in enumerate(spec.windowed) if windowed]
        names += [f"{name}{axis}" for axis in cut for name in ("border", "held")]
    if spec.right_packed:
        names += ["right_depth_stride", "right_column_stride", "panel_offset"]
        if spec.is_integer:
            names += ["right_depth", "right_zero"]
    if spec.tile.part:
        names += ["panel_lines", "table_lines"]
    if spec.products.are_matrices:
        names += ["chunk", "apart"]
    if spec.products is Products.PARTS:
        names += ["elements", "positions", "flags_offset"]
    return tuple(names)


def contraction_plan(spec: ContractionSpec, call: ContractionCall, threads: int) -> ContractionPlan:
    """Blocking and arguments of one call that up to `threads` threads share."""
    tallest, word = spec.tile.rows[0], spec.word.itemsize
    by_rows = spec.left_packed and not spec.banded
    parted = spec.products is Products.PARTS
    taps, depth = (1, call.taps * call.depth) if by_rows else (call.taps, call.depth)
    chunk = spec.products.chunk(depth) if spec.products.are_matrices else 1
    depth = spec.products.words(depth)
    limit, pieces = (_NEAR_PANEL, PARTS * chunk) if parted else (_PANEL_BYTES, chunk)
    tap_step, depth_step = _panel_steps(taps, depth, limit // spec.line, pieces)
    if spec.tile.part:  # where the words of a tap begin is in the panel's table
        tap_step, depth_step = taps, max(1, depth)
    tap_steps, depth_steps = -(-taps // tap_step), -(-depth // depth_step)
    steps = max(1, tap_steps * depth_steps)
    groups = call.batches[-1] if spec.grouped else 1
    panels = -(-call.columns // spec.width)
    neighbours = groups if spec.shares_tables else 1  # units of the same rows follow one another
    fits = _rows_that_fit(taps, depth * word, tallest)
    if parted:
        fits = _rows_beside(tap_step * depth_step * spec.line, depth * word, tallest)
    rows, row_count = call.rows, call.row_count
    if spec.widened:
        rows, row_count = widened_rows(rows), widened_count(rows)
    blocks = row_blocks(
        row_count, prod(call.batches) // neighbours, panels * neighbours, threads, fits,
        tallest, taps, taps * depth, spec.tile.vectors, spec.width // spec.tile.vectors,
    )  # fmt: skip
    most_rows = -(-row_count // blocks)
    if spec.products.are_matrices:
        every = -(-row_count // tallest)
        most_rows = -(-every // blocks) * tallest
    tiles = -(-most_rows // tallest)
    row_axes, seen = call.rows, depth * max(1, spec.shared)
    if spec.banded:
        row_axes = _of_copies(call.rows, LINE if spec.planar else seen * word)
    last = row_axes[-1]
    joins = last.taps > 1 and last.dilation == 1 and steps == 1 and not spec.planar
    joins = joins and last.stride == depth * word and not spec.shared and not spec.tile.part

    layout = Layout()
    tile_pitch = tallest * spec.line if steps > 1 else 0
    layout.take(tallest * spec.line if steps == 1 else tiles * tile_pitch)
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
        "fill_offset": layout.take(seen * word * groups),
        "joins": int(joins), "kinds_offset": layout.take(tiles * _WORD),
        "hops_offset": layout.take(3 * taps * _WORD),
        "left_depth_stride": call.left_depth_stride,
        "right_depth_stride": call.right_depth_stride,
        "right_column_stride": call.right_column_stride,
        "tap_depth": call.depth, "right_depth": call.taps * call.depth,
        "left_zero": call.left_zero, "right_zero": call.right_zero,
        "panel_lines": call.panel_lines, "table_lines": call.table_lines, "chunk": chunk,
        "apart": chunk * word, "elements": call.depth,
    }  # fmt: skip
    values["valid"] = call.rows[-1].extent
    if spec.left_packed:
        positions = _band(call.rows, rows, most_rows) if spec.banded else most_rows
        position = seen * word
        if spec.planar:  # an odd number of lines: so the planes of a position lie in different sets
            position = depth // chunk * LINE
            values["apart"] = (positions // 2 * 2 + 1) * LINE
        values["rows_offset"] = layout.take((positions + 1) * position + _BEYOND)
        values["positions"] = positions
        values["flags_offset"] = layout.take((positions + 1) * _WORD)
    if spec.right_packed:
        lines = tap_step * depth_step if parted else taps * depth
        values["panel_offset"] = layout.take((lines + spec.heads) * spec.line)
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


def _of_copies(rows: tuple[RowAxis, ...], position: int) -> tuple[RowAxis, ...]:
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


def _band(rows: tuple[RowAxis, ...], wide: tuple[RowAxis, ...], most: int) -> int:
    """How many positions `most` neighbouring rows may see, which run over `wide` axes: all but
    along the first axis."""
    first, *others = rows
    slices = _slices(most, first.extent, prod(axis.extent for axis in wide[1:]))
    return first.seen(slices) * prod(axis.seen(axis.extent) for axis in others)


@defer
def _slices(most: int, extent: int, inner: int) -> int:
    """Over how many indices of the first axis `most` rows may lie, where each has `inner` rows."""
    return min(extent, (most + inner - 2) // max(1, inner) + 1)


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
def _rows_beside(panel: int, tap: int, tallest: int) -> int:
    """How many rows of parts a block may have beside a panel of so many bytes, which is split for
    each block: what fits the cache of a core, or some tiles. Of a row a tap sees `tap` bytes."""
    return max(min((_NEAR_BYTES - panel) // max(1, tap), _MOST_ROWS), _LEAST_NEAR * tallest)
