"""Matmuls and convolutions: what a contraction kernel is generic over, and its arguments.

A contraction has batches, rows and columns: result[b, r, n] = Σ over taps t and depth k of
left[b, r, t, k] · right[b, t, k, n]. Rows run over one or more axes. Along a windowed axis (of a
convolution) a row sees several input positions, one per tap, and positions outside the input
count as the fill value. Groups of a convolution are its last batch axis.

Operands are read as words of four bytes: an f32, or several neighbours along the depth of integers
(see `Products`). Depths and steps below count words.

`ContractionSpec` is what the text of a kernel depends on. Everything else is an argument:
`ContractionCall` describes one call, and `contraction_plan` turns it into the argument table's
first words and the bytes of scratch that each thread needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import prod

import numpy as np
from numpy.typing import NDArray

from satura.backend.contraction.scratch import Layout
from satura.backend.lower.body import Argument
from satura.backend.sizes.size import defer
from satura.backend.target import Target, host_target
from satura.rewrite.types.tensor_type import DType

_F32, _WORD = 4, 8
_PANEL_BYTES = 640 * 1024  # of one weight panel between two changes of tiles: stays in L2
_TABLE_BYTES = 64 * 1024  # of row addresses
_LEFT_BYTES = 384 * 1024  # of rows in flight
_MOST_ROWS = 480
_TALLEST_OF_32 = {4: 6, 3: 8, 2: 12, 1: 10}  # rows of the tile by vectors, by registers
_TALLEST_OF_16 = {3: 4, 2: 6, 1: 8}
_TALLEST_OF_16_PAIRS = {3: 3, 2: 6, 1: 8}  # their products need a register
_OCTETS_OF_32 = {4: 4, 3: 6, 2: 8, 1: 10}  # rows that are in registers at a time
_OCTETS_OF_16 = {3: 2, 2: 4, 1: 6}
_OCTET_ROWS = 24  # of a tile
_SLOWER_OF_32 = {4: 1.0, 3: 1.01, 2: 1.03, 1: 1.15}  # narrow tiles load more per product
_SLOWER_OF_16 = {3: 1.03, 2: 1.0, 1: 1.35}  # wide ones of few rows read more of a deep panel
_OF_AN_AXIS, _OF_A_COUNT = 0.003, 0.01  # of a kernel's time: one more row axis, counted columns
_BALANCED_UNITS = 8  # with so many units per thread, one more or less does not matter


class Products(Enum):
    """What a word holds, and so how the microkernel adds products: the name of its helper."""

    F32 = "tile"
    PAIRS = "pairs"  # two i16 each, added as i32
    QUADS = "quads"  # four u8 of rows and four i8 of weights, added as i32
    OCTETS = "octets"  # the same, as two i16 first where these cannot saturate

    @property
    def per_word(self) -> int:
        return {Products.F32: 1, Products.PAIRS: 2}.get(self, 4)


@dataclass(frozen=True)
class Tile:
    """What a microkernel holds in registers: some number of rows by `vectors` vectors.

    A kernel has one microkernel per entry of `rows` (descending), so that tiles can share the rows
    of a block evenly; or one that takes `part` of the rows at a time.
    """

    rows: tuple[int, ...]
    vectors: int
    part: int = 0


@dataclass(frozen=True)
class ContractionSpec:
    """What the text of a contraction kernel depends on, besides its epilogue.

    `windowed` has one entry per row axis, `dtype` is that of the operands in memory. The left
    operand is read in place, or copied row by row as f32 first (`left_packed`: its depth is not
    contiguous, or it is not f32). The right operand comes as weight panels
    (see `pack_panels`), or is copied to a panel by the kernel (`right_packed`); its elements have
    the dtype `right`, where that is another. Panels of integers start with a line of what is added
    to the sums. `result` is the dtype of the sums. As many small groups of a convolution as
    `shared` says have their columns in one vector, and are one group. Where columns fill all panels
    (`full`), the text says how many a panel has, and LLVM writes the epilogue without loops.
    """

    batches: int
    windowed: tuple[bool, ...]
    tile: Tile
    grouped: bool = False
    left_packed: bool = False
    right_packed: bool = False
    dtype: DType = DType.F32
    products: Products = Products.F32
    right: DType | None = None
    result: DType = DType.F32
    shared: int = 1
    full: bool = False

    @property
    def is_integer(self) -> bool:
        return self.products is not Products.F32

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
        if self.tile != other.tile and (any_sizes or self.tile.part):
            return False  # how many rows there are is not asked; sorted words stand in panels
        if self.full and (not other.full or columns % panel_columns(self.tile)):
            return False
        return self == replace(other, windowed=self.windowed, tile=self.tile, full=self.full)

    def computed(self, rows: int, columns: int) -> float:
        """About how many results the tiles compute, those beyond the last included, in units of
        the fastest tile's."""
        slower = _SLOWER_OF_32 if host_target().registers == 32 else _SLOWER_OF_16
        panels = -(-columns // panel_columns(self.tile))
        rows = max(rows, self.tile.rows[-1])
        kind = 1 + _OF_AN_AXIS * len(self.windowed) + _OF_A_COUNT * (not self.full)
        return rows * panels * panel_columns(self.tile) * slower[self.tile.vectors] * kind

    @property
    def tile_names(self) -> tuple[str, ...]:
        """The microkernels, one per entry of the tile's rows."""
        if self.tile.part:
            return (tile_name(self.tile.part, self.tile.vectors, self.products),)
        depth = panel_columns(self.tile) // self.shared if self.shared > 1 else 0
        return tuple(
            tile_name(rows, self.tile.vectors, self.products, depth) for rows in self.tile.rows
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
    left_depth_stride: int = _F32
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


def tile_name(rows: int, vectors: int, products: Products = Products.F32, depth: int = 0) -> str:
    """The helper that computes a tile of `rows` rows by `vectors` vectors.

    With `depth`, every so many columns are a group that sees as many elements of its own.
    """
    return f"{products.value}_{rows}x{vectors}" + (f"g{depth}" if depth else "")


def choose_tile(
    rows: int | None, columns: int, target: Target | None = None, any_columns: bool = False,
    products: Products = Products.F32,
) -> Tile:  # fmt: skip
    """A tile that wastes little on `rows` (None: not known) by `columns`.

    Its width is the one that computes the fewest columns beyond the last; with `any_columns` it
    depends only on whether the columns fill the fastest. Few rows get a tile of just their number.
    """
    target = target or host_target()
    many = target.registers == 32
    few = _TALLEST_OF_16_PAIRS if products is Products.PAIRS else _TALLEST_OF_16
    tallest_of = _TALLEST_OF_32 if many else few
    slower = _SLOWER_OF_32 if many else _SLOWER_OF_16
    filled = -(-columns // target.lanes)
    if any_columns:
        best = min(slower, key=lambda count: slower[count])
        vectors = int(min(best, max(1, filled)))
    else:
        vectors = min(tallest_of, key=lambda count: -(-filled // count) * count * slower[count])
    tallest = tallest_of[vectors]
    if products is Products.OCTETS:
        tallest = min(_OCTET_ROWS, _OCTET_ROWS if rows is None else max(1, rows))
        parts = -(-tallest // (_OCTETS_OF_32 if many else _OCTETS_OF_16)[vectors])
        part = -(-tallest // parts)
        return Tile((parts * part,), vectors, part)
    if rows is not None and rows < tallest:
        return Tile((max(1, rows),), vectors)
    return Tile((tallest, tallest - 1), vectors)


def panel_columns(tile: Tile, target: Target | None = None) -> int:
    """How many columns a weight panel has."""
    return tile.vectors * (target or host_target()).lanes


def pack_panels(weights: NDArray[np.float32], groups: int, width: int) -> NDArray[np.float32]:
    """Weights [*taps, depth, columns of all groups] as [groups, panels, taps · depth, width].

    The last panel of each group is filled up with zeros.
    """
    columns = weights.shape[-1] // groups
    flat = weights.reshape(-1, groups, columns)
    panels = -(-columns // width)
    result = np.empty((groups, panels, flat.shape[0], width), np.float32)
    for panel in range(panels):  # no copy beside the result: it may be as large as all memory
        part = flat[:, :, panel * width : (panel + 1) * width].transpose(1, 0, 2)
        result[:, panel, :, : part.shape[-1]] = part
        result[:, panel, :, part.shape[-1] :] = 0
    return result


def pack_products(
    weights: NDArray[np.int64], groups: int, width: int, products: Products, shift: int
) -> NDArray[np.int32]:
    """Integers [depth, columns of all groups] as [groups, panels, 1 + words, width].

    A word has neighbours along the depth. The first line is -shift · Σ over the depth: what rows
    that are `shift` too large add too much.
    """
    per = products.per_word
    kind = np.int8 if products is Products.QUADS else np.int16
    depth, columns = len(weights), weights.shape[-1] // groups
    panels, words = -(-columns // width), -(-depth // per)
    padded = np.zeros((words * per, groups, panels * width), kind)
    padded[:depth, :, :columns] = weights.reshape(depth, groups, columns)
    split = padded.reshape(words, per, groups, panels, width).transpose(2, 3, 0, 4, 1)
    lines = np.ascontiguousarray(split).view(np.int32)[..., 0]
    sums = np.zeros((groups, panels * width), np.int64)
    sums[:, :columns] = -shift * weights.sum(axis=0, dtype=np.int64).reshape(groups, columns)
    head = sums.astype(np.int32).reshape(groups, panels, 1, width)  # wraps, as the products do
    return np.ascontiguousarray(np.concatenate([head, lines], axis=2))


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
    if any(spec.windowed):
        names += ["fill", "fill_offset", "joins", "kinds_offset"]
    if spec.left_packed:
        names += ["left_depth_stride", "rows_offset"]
        if spec.is_integer:
            names += ["tap_depth", "left_zero"]
    if spec.right_packed:
        names += ["right_depth_stride", "right_column_stride", "panel_offset"]
        if spec.is_integer:
            names += ["right_depth", "right_zero"]
    if spec.tile.part:
        names += ["panel_lines", "table_lines"]
    return tuple(names)


def contraction_plan(spec: ContractionSpec, call: ContractionCall, threads: int) -> ContractionPlan:
    """Blocking and arguments of one call that up to `threads` threads share."""
    tallest, width = spec.tile.rows[0], panel_columns(spec.tile)
    taps, depth = (1, call.taps * call.depth) if spec.left_packed else (call.taps, call.depth)
    depth = -(-depth // spec.products.per_word)
    tap_step, depth_step = _panel_steps(taps, depth, width)
    if spec.tile.part:  # where the words of a tap begin is in the panel's table
        tap_step, depth_step = taps, max(1, depth)
    tap_steps, depth_steps = -(-taps // tap_step), -(-depth // depth_step)
    steps = max(1, tap_steps * depth_steps)
    panels = -(-call.columns // width)
    units = prod(call.batches) * panels
    blocks = _row_blocks(tallest, call.row_count, units, threads, taps, depth)
    most_rows = -(-call.row_count // blocks)
    tiles = -(-most_rows // tallest)
    last = call.rows[-1]
    joins = last.taps > 1 and last.dilation == 1 and steps == 1
    joins = joins and last.stride == depth * _F32 and spec.shared == 1 and not spec.tile.part

    layout = Layout()
    tile_pitch = tallest * width * _F32 if steps > 1 else 0
    layout.take(tallest * width * _F32 if steps == 1 else tiles * tile_pitch)
    table_pitch = taps * tallest * _WORD
    values: dict[str, Argument] = {
        "left": call.left, "right": call.right, "scratch": call.scratch,
        "batches": prod(call.batches), "blocks": blocks, "panels": panels,
        "rows": call.row_count, "columns": call.columns, "taps": taps, "depth": depth,
        "steps": steps, "depth_steps": max(1, depth_steps),
        "tap_step": tap_step, "depth_step": depth_step,
        "table_offset": layout.take(tiles * table_pitch),
        "table_pitch": table_pitch, "tile_pitch": tile_pitch,
        "fill": _fill_word(spec, call.fill),
        "fill_offset": layout.take(depth * spec.shared * _F32),
        "joins": int(joins), "kinds_offset": layout.take(tiles * _WORD),
        "hops_offset": layout.take(3 * taps * _WORD),
        "left_depth_stride": call.left_depth_stride,
        "right_depth_stride": call.right_depth_stride,
        "right_column_stride": call.right_column_stride,
        "tap_depth": call.depth, "right_depth": call.taps * call.depth,
        "left_zero": call.left_zero, "right_zero": call.right_zero,
        "panel_lines": call.panel_lines, "table_lines": call.table_lines,
    }  # fmt: skip
    if spec.left_packed:
        values["rows_offset"] = layout.take(most_rows * depth * _F32)
    if spec.right_packed:
        values["panel_offset"] = layout.take((taps * depth + spec.heads) * width * _F32)
    for axis, extent in enumerate(call.batches):
        values[f"batch_extent{axis}"] = extent
        values[f"left_batch{axis}"] = call.left_strides[axis]
        values[f"right_batch{axis}"] = call.right_strides[axis]
    for axis, row in enumerate(call.rows):
        values[f"row_extent{axis}"] = row.extent
        for name in ("stride", "step", "lo", "input", "taps", "dilation"):
            values[f"{name}{axis}"] = getattr(row, name)
    values["scratch_pitch"] = layout.size
    return ContractionPlan(tuple(values[name] for name in parameters(spec)), layout.size)


def _fill_word(spec: ContractionSpec, fill: float) -> int:
    """What stands for positions outside: a word of the fill page, or one packed integer."""
    if not spec.is_integer:
        return int(np.float32(fill).view(np.uint32))
    return int(fill) if spec.left_packed else int(fill) * 0x01010101


def _panel_steps(taps: int, depth: int, width: int) -> tuple[int, int]:
    """How many taps, and how much depth of each, a step over a weight panel takes."""
    limit = max(1, _PANEL_BYTES // (width * _F32))
    if depth > limit:
        pieces = -(-depth // limit)
        return 1, -(-depth // pieces)
    return max(1, min(taps, limit // max(1, depth))), max(1, depth)


@defer
def _row_blocks(tallest: int, rows: int, units: int, threads: int, taps: int, depth: int) -> int:
    """Into how many blocks the rows of one batch are cut: what fits the caches, and an even share
    of the work for each thread."""
    fits = min(_TABLE_BYTES // (_WORD * taps), _LEFT_BYTES // (_F32 * max(1, depth)), _MOST_ROWS)
    blocks = max(1, -(-rows // max(fits, 8 * tallest)))
    if rows < 2 * tallest * threads:
        return blocks
    for more in range(blocks, blocks + threads):
        if units * more % threads == 0 or units * more >= _BALANCED_UNITS * threads:
            return more
    return blocks
