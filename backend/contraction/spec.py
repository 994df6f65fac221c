"""Matmuls and convolutions: what a contraction kernel is generic over, and its arguments.

A contraction has batches, rows and columns: result[b, r, n] = Σ over taps t and depth k of
left[b, r, t, k] · right[b, t, k, n]. Rows run over one or more axes. Along a windowed axis (of a
convolution) a row sees several input positions, one per tap, and positions outside the input
count as the fill value. Groups of a convolution are its last batch axis.

Operands are read as words: an f32, an f64, or several neighbours along the depth of integers in
four bytes (see `Products`). Depths and steps below count words.

`ContractionSpec` is what the text of a kernel depends on. Everything else is an argument:
`ContractionCall` describes one call, and `contraction_plan` (see `plan.py`) turns it into the
argument table's first words and the bytes of scratch that each thread needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from satura.backend.contraction.tile import (
    Products,
    Tile,
    panel_columns,
    step_cycles,
    tile_name,
)  # fmt: skip
from satura.backend.lower.body import Argument
from satura.rewrite.types.tensor_type import DType

_AROUND_A_ROW, _OF_AN_AXIS, _OF_A_COUNT = 8, 1, 1  # cycles per row of a tile


@dataclass(frozen=True)
class ContractionSpec:
    """What the text of a contraction kernel depends on, besides its epilogue.

    `windowed` has one entry per row axis, `dtype` is that of the operands in memory. The left
    operand is read in place, or copied as words first (`left_packed`: its depth is not contiguous,
    or its elements are none): row by row, or all positions between those that a block's first and
    last rows see (`banded`, those of octets where `octets_banded`), where each counts for several
    rows. The right operand comes as weight panels (see `pack_panels`), or is copied to one by the
    kernel (`right_packed`): elements of the dtype `right`, where that is another. Panels of
    integers start with a line of what is added to the sums. `result` is the dtype of the sums. As
    many small groups of a convolution as `shared` says (0: none) have their columns in one vector,
    and are one group. Where columns fill all panels (`full`), the text says how many a panel has,
    and LLVM writes the epilogue without loops. Where copies are `widened`, rows along the last axis
    are followed by as many as would see its border, so that all are evenly spaced; these have no
    results.
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
        names += ["result_extent"]
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
        names += ["elements", "positions", "flags_offset", "kept", "panel_pitch", "tags_offset"]
        names += ["slabs", "slab_words", "panel_sums", "before_offset"]
    return tuple(names)
