"""conv and matmul for the register-tiled kernel of `contraction/emit.py`.

The operands must be plain strided views of f32 or f64, or of f16 or bf16, packed as f32; or
integers that come from 8 bits (see `readings.py`). Weights that are constants are packed into
panels at compile time; other right operands are packed by the kernel. Depthwise convolutions and
all other dtypes are plain loops, see `lower/reductions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.contraction.axes import NO_ROWS, Axis, merge, over_axes, window_axis
from satura.backend.contraction.emit import contraction_source
from satura.backend.contraction.epilogue import NestEpilogue
from satura.backend.contraction.readings import Reading, reading_of
from satura.backend.contraction.shares import UnitCycles, share_cycles, tile_for_threads
from satura.backend.contraction.sorted_words import table_lines
from satura.backend.contraction.spec import (
    ContractionCall,
    ContractionSpec,
    RowAxis,
    can_be_widened,
    contraction_plan,
    parameters,
    widened_count,
)  # fmt: skip
from satura.backend.contraction.tile import (
    Products,
    choose_tile,
    lanes_of,
    multiplies_as_matrices,
    multiplies_in_parts,
    panel_columns,
)  # fmt: skip
from satura.backend.contraction.views import View
from satura.backend.emit.code import Code, KernelForm
from satura.backend.lower.anchors import anchor_of, epilogue_nest
from satura.backend.lower.body import Nest, Pointer
from satura.backend.lower.canonical import SHORT, renumber
from satura.backend.lower.walk import shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Groups, Window
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.copies import row_major
from satura.rewrite.types.dims import is_one
from satura.rewrite.types.tensor_type import Array

MANY_TAPS, FEW = 25, 4  # of a shallow convolution, and elements that a tap sees


def contraction_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore, name: str,
    any_sizes: bool, wanted: ContractionForm | None = None,
) -> Code | None:  # fmt: skip
    """The register-tiled kernel of a contraction; None where only plain loops will do.

    With `any_sizes` the text must not depend on extents that other sizes may change. The kernel is
    that of `wanted`, another contraction's, or None where that does not serve.
    """
    node = schedule.program.nodes[anchor_of(dispatch)]
    if 0 in shape_of(schedule, node.operands[0]) or 0 in shape_of(schedule, node.operands[1]):
        return None
    reading = reading_of(schedule, dispatch, node)
    if reading is None:
        return None
    lowered = _matmul if node.op.name == "matmul" else _conv
    problem = lowered(node, reading, shape_of(schedule, anchor_of(dispatch)))
    if problem is None:
        return None
    problem = problem.sharing(problem.groups_of_a_vector)
    problem = problem.as_matrices(any_sizes, schedule.is_exact)
    return problem.code(schedule, dispatch, threads, store, name, any_sizes, wanted)


@dataclass(frozen=True)
class ContractionForm:
    """The spec of a contraction kernel, and what it does with each sum."""

    spec: ContractionSpec
    body: tuple[str, ...]

    def may_serve(self, other: KernelForm) -> bool:
        if not isinstance(other, ContractionForm) or self.body != other.body:
            return False
        return self != other and len(self.spec.windowed) >= len(other.spec.windowed)


@dataclass(frozen=True)
class _Problem:
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
    def pieces_of_a_row(self) -> tuple[int, int]:
        """How many pieces of a row lie apart, and how long each is: one of a copied row."""
        taps = prod(axis.row.taps for axis in self.rows)
        banded = self.reading.products is Products.PARTS or self.octets_banded
        as_one = self.left_packed and not banded
        return (1, taps * self.depth) if as_one else (taps, self.depth)

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

    def sharing(self, shared: int) -> _Problem:
        """The same with so many groups as one, if any."""
        if not shared:
            return self
        return replace(
            self, groups=self.groups // shared, columns=self.columns * shared,
            left_group=self.left_group * shared, shared=shared,
        )  # fmt: skip

    def by_image(self) -> _Problem:
        """The same image by image, where rows see windows of what is copied."""
        if not self.left_packed or not any(axis.row.is_windowed for axis in self.rows):
            return self
        return replace(self, batches=(*self.batches, self.rows[0]), rows=self.rows[1:])

    def as_matrices(self, any_sizes: bool, is_exact: bool) -> _Problem:
        """The same by instructions that multiply matrices, where the CPU has them and that pays:
        those of bf16 only where the sums need not be exact."""
        reading = self.reading
        if reading.products is Products.QUADS:
            faster = replace(self, reading=replace(reading, products=Products.MATRICES))
            if not any_sizes:
                faster = faster.in_bands()
            words = reading.products.words(faster.pieces_of_a_row[1])
            rows = faster._known_rows(any_sizes)
            return faster if multiplies_as_matrices(rows, self.columns, words) else self
        if reading.products is not Products.F32 or is_exact or self.left_packed or self.shared:
            return self
        parts = replace(reading, products=Products.PARTS, left_packed=True)
        faster = replace(self, reading=parts).by_image()
        rows = faster._known_rows(any_sizes)
        is_faster = multiplies_in_parts(rows, self.columns, *faster.pieces_of_a_row)
        return faster if is_faster and reading.has_parts else self

    def in_bands(self) -> _Problem:
        """The same with bands of octets, where that makes rows lie evenly spaced."""
        packed = replace(self, reading=replace(self.reading, left_packed=True), octets_banded=True)
        packed = packed if self.left_packed else packed.by_image()
        is_even = self.depth % self.reading.products.per_word == 0 and self.left_depth == 1
        widened = can_be_widened(tuple(axis.row for axis in packed.rows))
        return packed if is_even and widened else self

    def _known_rows(self, any_sizes: bool) -> int | None:
        """How many rows there are, if that may be asked."""
        return None if any_sizes else prod(axis.row.extent for axis in self.rows)

    def crossed(self, nest: Nest, store: ConstantStore) -> _Problem:
        """The same with weights as rows and pixels as columns, where both the left operand and the
        result have neighbouring rows side by side: as channels-first tensors do."""
        batches, rows = self._merged(nest)
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

    def code(
        self, schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore,
        name: str, any_sizes: bool, wanted: ContractionForm | None = None,
    ) -> Code | None:  # fmt: skip
        """The kernel's text and arguments; None where the kernel of `wanted` does not serve."""
        nest = renumber(epilogue_nest(schedule, dispatch))
        crossed = self if self.column >= 0 else self.crossed(nest, store)
        if crossed is not self:
            return crossed.code(schedule, dispatch, threads, store, name, any_sizes, wanted)
        batches, rows = self._merged(nest)
        spec = best = self._best_spec(batches, rows, threads, any_sizes)
        if wanted is not None:
            if not wanted.spec.serves(best, self.columns, any_sizes):
                return None
            spec = wanted.spec
            rows = (*(NO_ROWS,) * (len(spec.windowed) - len(rows)), *rows)
        call = self._call(schedule, store, batches, rows, spec)
        plan = contraction_plan(spec, call, threads)
        over = over_axes(nest, [*batches, *rows], self.column, self.columns)
        epilogue = NestEpilogue(over, len(parameters(spec)))
        source = contraction_source(name, spec, epilogue)
        work = call.row_count * prod(call.batches) * self.columns * self.depth * call.taps
        more = 0.0
        if spec is not best and not any_sizes:  # what sizes must not be asked for is little
            taken, least = (
                share_cycles(each.tile, *self._shared(batches, rows), threads, self._cycles(each))
                for each in (spec, best)
            )
            more = taken - least
        return Code(
            name, source.text, (*plan.arguments, *epilogue.arguments), work // 8,
            plan.scratch_size, ContractionForm(spec, epilogue.body), more,
        )  # fmt: skip

    def _best_spec(
        self, batches: Sequence[Axis], rows: Sequence[Axis], threads: int, any_sizes: bool
    ) -> ContractionSpec:
        """The kernel that takes the fewest cycles; with `any_sizes` one that does not depend on
        extents that differ between calls."""
        reading, grouped = self.reading, self.groups > 1 or self.shared > 0
        any_columns = any_sizes and reading.weights is None  # those of weights are always the same
        known = None if any_sizes else prod(axis.row.extent for axis in rows)
        is_planar = reading.products is Products.PARTS or self.octets_banded
        axes = tuple(axis.row for axis in rows)
        widened = not any_sizes and is_planar and can_be_widened(axes)
        if widened:
            known = widened_count(axes)
        tile = choose_tile(
            known, self.columns, None, any_columns, reading.products, has_tail=not self.shared
        )
        if self.shared == 1:  # the microkernel is written out, and more rows would be spilled
            tile = replace(tile, rows=tuple(max(1, rows - 1) for rows in tile.rows))
        spec = ContractionSpec(
            len(batches) + grouped, tuple(axis.row.is_windowed for axis in rows), tile, grouped,
            self.left_packed, reading.right_packed, reading.left_dtype, reading.right_dtype,
            reading.result, self.shared, octets_banded=self.octets_banded,
            widened=widened,
        )  # fmt: skip
        if not any_sizes and not self.shared:
            shared = self._shared(batches, rows)
            tile = tile_for_threads(tile, *shared, threads, self._cycles(spec))
        full = not any_columns and self.columns % panel_columns(tile) == 0
        return replace(spec, tile=tile, full=full)

    def _call(
        self, schedule: Schedule, store: ConstantStore, batches: Sequence[Axis],
        rows: Sequence[Axis], spec: ContractionSpec,
    ) -> ContractionCall:  # fmt: skip
        """What a kernel of `spec` is called with; constant weights are packed into `store`."""
        reading, grouped = self.reading, spec.grouped
        pointer, right_strides = reading.right.pointer, tuple(axis.right for axis in batches)
        panel_lines = head_lines = 0
        group_stride = self.columns * self.right_column
        if reading.weights is not None:
            digest = schedule.program.nodes[reading.right.node].constant.digest
            pointer, right_strides, group_stride, panel_lines = self._packed(
                store, digest, reading.weights, batches, spec
            )
            if reading.products is Products.OCTETS:
                head_lines = table_lines(*self.pieces_of_a_row, spec.width)
        return ContractionCall(
            left=reading.left.pointer,
            right=pointer,
            scratch=Pointer(("scratch", 0)),
            batches=(*(axis.row.extent for axis in batches), *((self.groups,) * grouped)),
            left_strides=(*(axis.row.stride for axis in batches), *((self.left_group,) * grouped)),
            right_strides=(*right_strides, *((group_stride,) * grouped)),
            rows=tuple(axis.row for axis in rows),
            columns=self.columns,
            depth=self.depth,
            fill=reading.fill,
            left_depth_stride=self.left_depth,
            right_depth_stride=self.right_depth,
            right_column_stride=self.right_column,
            left_zero=reading.left_zero,
            right_zero=reading.right_zero,
            panel_lines=panel_lines,
            table_lines=head_lines,
        )

    def _cycles(self, spec: ContractionSpec) -> UnitCycles:
        """How many cycles a tile takes in a kernel of `spec`, for all lines of a panel."""
        pieces, length = self.pieces_of_a_row
        return partial(spec.cycles, pieces * self.reading.products.words(length))

    def _shared(self, batches: Sequence[Axis], rows: Sequence[Axis]) -> tuple[int, int, int]:
        """What threads share: the rows and columns of a product, and how many products."""
        products = prod(axis.row.extent for axis in batches) * max(1, self.groups)
        return prod(axis.row.extent for axis in rows), self.columns, products

    def _merged(self, nest: Nest) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """Batches and rows with neighbours made one where all operands step evenly."""
        return merge(self.batches, nest), merge(self.rows, nest) or (NO_ROWS,)

    def _packed(
        self, store: ConstantStore, digest: bytes, weights: Constant | Array,
        batches: Sequence[Axis], spec: ContractionSpec,
    ) -> tuple[Pointer, tuple[int, ...], int, int]:  # fmt: skip
        """The weights as panels in `store`, their strides along batches and groups, their lines."""
        reading, width = self.reading, spec.width
        taps = prod(axis.row.taps for axis in self.rows)
        moving = [axis for axis in batches if axis.right]
        groups = max(1, self.groups)
        extents = (*(axis.row.extent for axis in moving), taps * self.depth, groups * self.columns)
        strides = (*(axis.right for axis in moving), self.right_depth, self.right_column)
        size = reading.right.itemsize
        shape = tuple(map(int, extents))  # a constant may be spread over a size
        steps = tuple(int(stride // size) for stride in strides)
        start = reading.right.pointer.offset // size
        pieces, _ = self.pieces_of_a_row
        key = f"{digest.hex()} {start} {shape} {steps} {groups} {width} {reading.key} {pieces}"

        def pack() -> Array:
            array = weights.array if isinstance(weights, Constant) else weights
            flat = array.reshape(-1)[start:]
            strides = tuple(step * array.itemsize for step in steps)
            seen = np.lib.stride_tricks.as_strided(flat, shape, strides)
            return reading.packed(seen.reshape(-1, *shape[-2:]), groups, width, pieces)

        number = store.derived(key.encode(), pack)
        lines = -(-taps * self.depth // reading.products.per_word) + spec.heads
        if spec.tile.part:  # the weights themselves decide it
            store.made(number)
            lines = store.arrays[number].shape[-2]
        group_stride = -(-self.columns // width) * lines * spec.line
        batch_stride = group_stride * groups
        right: list[int] = []
        for axis in reversed(batches):
            right.insert(0, batch_stride if axis.right else 0)
            batch_stride *= axis.row.extent if axis.right else 1
        return Pointer(("constant", number)), tuple(right), group_stride, lines


def _matmul(node: Node, reading: Reading, shape: tuple[int, ...]) -> _Problem | None:
    left, right = reading.left, reading.right
    axes = [
        Axis(RowAxis(shape[axis], left.strides[axis]), right.strides[axis], axis)
        for axis in range(len(shape) - 2)
    ]
    row = len(shape) - 2
    rows = [Axis(RowAxis(shape[row], left.strides[row]), 0, row)]
    while axes and not axes[-1].right:  # the same right operand: more rows
        rows.insert(0, axes.pop())
    return _Problem(
        tuple(axes), tuple(rows), 0, reading, shape[-1], left.shape[-1], 0,
        _last_stride(left), right.strides[-2], _last_stride(right),
    )  # fmt: skip


def _conv(node: Node, reading: Reading, shape: tuple[int, ...]) -> _Problem | None:
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
    problem = _Problem(
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
