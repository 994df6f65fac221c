"""A matmul or convolution as a contraction: its axes, how operands are read, other forms of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.contraction.axes import NO_ROWS, Axis, merge, window_axis
from satura.backend.contraction.bands import can_be_widened
from satura.backend.contraction.readings import Reading
from satura.backend.contraction.spec import RowAxis
from satura.backend.contraction.tile import (
    Products,
    lanes_of,
    multiplies_as_matrices,
    multiplies_in_parts,
)  # fmt: skip
from satura.backend.contraction.views import View
from satura.backend.lower.body import Nest, Pointer
from satura.backend.lower.canonical import SHORT
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Groups, Window
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.copies import row_major
from satura.rewrite.types.dims import is_one
from satura.rewrite.types.tensor_type import Array

MANY_TAPS, FEW = 25, 4  # of a shallow convolution, and elements that a tap sees


@dataclass(frozen=True)
class Problem:
    """A contraction over axes; `groups` is 0 where there are none, as in a matmul."""

    batches: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    groups: int
    reading: Reading
    columns: int
    depth: int
    left_group: int
    left_depth: int
    right_depth: int
    right_column: int
    shared: int = 0
    column: int = -1  # the place of the columns among the axes of the result
    octets_banded: bool = False  # whether octets are copied once for all rows that see them

    @property
    def left_packed(self) -> bool:
        """Whether rows are copied as words of their own before they are multiplied."""
        reading = self.reading
        scattered = self.left_depth != reading.left.itemsize
        return (
            reading.left_packed or scattered or self._is_shallow
            or self.depth % reading.products.per_word != 0
        )  # fmt: skip

    @property
    def _is_shallow(self) -> bool:
        """Whether many taps see little each, some of them beyond a border: there they take long."""
        taps, word = prod(axis.row.taps for axis in self.rows), self.reading.products.word
        has_border = any(axis.row.lo for axis in self.rows)
        return has_border and not word.is_integer and taps >= MANY_TAPS and self.depth <= FEW

    @property
    def planar(self) -> bool:
        """Whether positions are copied to planes, see `ContractionSpec`."""
        return self.reading.products is Products.PARTS or self.octets_banded

    @property
    def copies_rows(self) -> bool:
        """Whether each row is copied, with all that its taps see side by side."""
        return self.left_packed and not self.planar

    @property
    def pieces_of_a_row(self) -> tuple[int, int]:
        """How many pieces of a row lie apart, and how long each is: one of a copied row."""
        taps = prod(axis.row.taps for axis in self.rows)
        return (1, taps * self.depth) if self.copies_rows else (taps, self.depth)

    @property
    def words_of_a_piece(self) -> int:
        """How many words hold one of these."""
        return self.reading.products.words(self.pieces_of_a_row[1], self.copies_rows)

    @property
    def words_of_a_row(self) -> int:
        """How many words of a row are multiplied."""
        return self.pieces_of_a_row[0] * self.words_of_a_piece

    @property
    def groups_of_a_vector(self) -> int:
        """How many groups can have their columns in one vector; 0 where these do not fill it."""
        products = self.reading.products
        lanes, windowed = lanes_of(products), any(axis.row.is_windowed for axis in self.rows)
        plain = not products.word.is_integer and (windowed or not self.left_packed)
        packed = self.reading.weights is not None
        if not plain or not packed or self.groups < 2 or self.columns != self.depth:
            return 0
        shared = lanes // self.columns
        is_even = shared * self.columns == lanes and self.groups % shared == 0
        return int(shared) if is_even else 0

    def sharing(self, shared: int) -> Problem:
        """The same with so many groups as one, if any."""
        if not shared:
            return self
        return replace(
            self, groups=self.groups // shared, columns=self.columns * shared,
            left_group=self.left_group * shared, shared=shared,
        )  # fmt: skip

    def by_image(self) -> Problem:
        """The same image by image, where rows see windows of what is copied."""
        if not self.left_packed or not any(axis.row.is_windowed for axis in self.rows):
            return self
        return replace(self, batches=(*self.batches, self.rows[0]), rows=self.rows[1:])

    def as_matrices(self, any_sizes: bool, is_exact: bool) -> Problem:
        """The same by instructions that multiply matrices, where the CPU has them and that pays:
        those of bf16 only where the sums need not be exact."""
        reading = self.reading
        if reading.products is Products.QUADS:
            faster = replace(self, reading=replace(reading, products=Products.MATRICES))
            if not any_sizes:
                faster = faster.in_bands()
            known = None if any_sizes else faster.row_count
            words = faster.words_of_a_piece
            return faster if multiplies_as_matrices(known, self.columns, words) else self
        if reading.products is not Products.F32 or is_exact or self.left_packed or self.shared:
            return self
        if not isinstance(reading.weights, Constant):  # whose columns and depth may be of any size
            return self
        parts = replace(reading, products=Products.PARTS, left_packed=True)
        faster = replace(self, reading=parts).by_image()
        is_faster = multiplies_in_parts(faster.row_count, self.columns, *faster.pieces_of_a_row)
        return faster if is_faster and reading.has_parts else self

    def in_bands(self) -> Problem:
        """The same with bands of octets, where that makes rows lie evenly spaced."""
        packed = replace(self, reading=replace(self.reading, left_packed=True), octets_banded=True)
        packed = packed if self.left_packed else packed.by_image()
        is_even = self.depth % self.reading.products.per_word == 0 and self.left_depth == 1
        widened = can_be_widened(tuple(axis.row for axis in packed.rows))
        return packed if is_even and widened else self

    @property
    def row_count(self) -> int:
        """How many rows there are in each batch."""
        return prod(axis.row.extent for axis in self.rows)

    def crossed(self, nest: Nest, store: ConstantStore) -> Problem:
        """The same with weights as rows and pixels as columns, where both the left operand and the
        result have neighbouring rows side by side: as channels-first tensors do."""
        batches, rows = self.merged(nest)
        *outer, last = rows
        weights, size, target = self.reading.weights, self.reading.left.itemsize, nest.target
        if not isinstance(weights, Constant) or batches or self.groups > 1 or self.shared:
            return self
        if self.reading.left_packed or any(axis.row.is_windowed for axis in rows):
            return self
        if target.strides[-1] == size or target.strides[last.variable] != size:
            return self
        if last.row.stride != size or self.left_depth == size or last.row.extent < SHORT:
            return self
        start, shape = self.reading.right.pointer.offset // size, (self.columns, self.depth)
        steps = tuple(int(step) for step in (self.right_column, self.right_depth))
        key = f"{weights.digest.hex()} {start} {shape} {steps} as rows"

        def pack() -> Array:
            flat = weights.array.reshape(-1)[start:]
            return row_major(np.lib.stride_tricks.as_strided(flat, shape, steps), shape)

        number = store.derived(key.encode(), pack)
        left = View(
            self.reading.right.node, Pointer(("constant", number)), shape, (shape[1] * size, size),
            size,
        )  # fmt: skip
        pixels = tuple(
            Axis(RowAxis(axis.row.extent, 0), axis.row.stride, axis.variable) for axis in outer
        )
        row = Axis(RowAxis(self.columns, self.depth * size), 0, len(nest.extents) - 1)
        return replace(
            self, batches=pixels, rows=(row,), groups=0, columns=last.row.extent,
            reading=replace(self.reading, left=left, right=self.reading.left, weights=None),
            left_depth=size, right_depth=self.left_depth, right_column=size, column=last.variable,
        )  # fmt: skip

    def merged(self, nest: Nest) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """Batches and rows with neighbours made one where all operands step evenly."""
        return merge(self.batches, nest), merge(self.rows, nest) or (NO_ROWS,)


def matmul_problem(node: Node, reading: Reading, shape: tuple[int, ...]) -> Problem | None:
    left, right = reading.left, reading.right
    axes = [
        Axis(RowAxis(shape[axis], left.strides[axis]), right.strides[axis], axis)
        for axis in range(len(shape) - 2)
    ]
    row = len(shape) - 2
    rows = [Axis(RowAxis(shape[row], left.strides[row]), 0, row)]
    while axes and not axes[-1].right:  # the same right operand: more rows
        rows.insert(0, axes.pop())
    return Problem(
        tuple(axes), tuple(rows), 0, reading, shape[-1], left.shape[-1], 0,
        _last_stride(left), right.strides[-2], _last_stride(right),
    )  # fmt: skip


def conv_problem(node: Node, reading: Reading, shape: tuple[int, ...]) -> Problem | None:
    left, right = reading.left, reading.right
    window, *rest = node.attributes
    (groups,) = rest or (Groups(1),)
    assert isinstance(window, Window) and isinstance(groups, Groups)
    depth = right.shape[-2]
    if groups.count > 1 and depth == 1:
        return None
    column = _last_stride(right)
    step = right.strides[-2] if depth > 1 else shape[-1] * column
    if not _is_dense(right, step):
        return None
    rows = [Axis(RowAxis(shape[0], left.strides[0]), 0, 0)]
    for axis in range(window.rank):
        rows.append(window_axis(window, axis, shape, left))
    channel = _last_stride(left)
    problem = Problem(
        (), tuple(rows), groups.count, reading, shape[-1] // groups.count, depth,
        depth * channel, channel, step, column,
    )  # fmt: skip
    return problem.by_image()


def _last_stride(view: View) -> int:
    """The stride of the last axis; any will do where it has extent 1."""
    return view.itemsize if is_one(view.shape[-1]) else view.strides[-1]


def _is_dense(right: View, step: int) -> bool:
    """Whether taps and depth of the weights form one evenly spaced sequence."""
    stride = step * right.shape[-2]
    for extent, found in zip(reversed(right.shape[:-2]), reversed(right.strides[:-2]), strict=True):
        if extent > 1:
            if found != stride:
                return False
            stride *= extent
    return True
