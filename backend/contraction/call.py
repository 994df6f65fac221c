"""conv and matmul in f32 for the register-tiled kernel of `emit/contraction.py`.

The operands must be plain strided views of f32, or of f16 or bf16, which are packed as f32. Weights
that are constants are packed into panels at compile time; other right operands are packed by the
kernel. Depthwise convolutions and all other dtypes are plain loops, see `lower_reductions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.contraction.emit import contraction_source
from satura.backend.contraction.epilogue import NestEpilogue
from satura.backend.contraction.spec import (
    ContractionCall,
    ContractionSpec,
    RowAxis,
    choose_tile,
    contraction_plan,
    pack_panels,
    panel_columns,
    parameters,
)  # fmt: skip
from satura.backend.emit.body import Code
from satura.backend.lower.body import Nest, Pointer
from satura.backend.lower.canonical import renumber
from satura.backend.lower.reductions import anchor_of, epilogue_nest
from satura.backend.lower.space import space_of
from satura.backend.lower.walk import shape_of, strides_of
from satura.rewrite.extract.schedule import Dispatch, Home, Schedule
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Groups, Window
from satura.rewrite.types.dims import static
from satura.rewrite.types.index_map import coefficient, is_affine, offset, pull
from satura.rewrite.types.tensor_type import Array, DType

F32_BYTES = 4


@dataclass(frozen=True)
class View:
    """A strided view of a materialised tensor; strides in bytes, 0 along axes of extent 1."""

    node: int
    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


@dataclass(frozen=True)
class Axis:
    """One axis of the result but its columns: how far both operands step along it.

    `variable` is its place among the axes of the result; several merged axes have the last one's.
    """

    row: RowAxis
    right: int
    variable: int

    @property
    def is_windowed(self) -> bool:
        return self.row.taps > 1 or self.row.lo != 0 or self.row.input != 0


def contraction_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore, name: str,
    any_sizes: bool,
) -> Code | None:  # fmt: skip
    """The kernel of a contraction in f32; None where only plain loops will do.

    With `any_sizes` the text must not depend on extents that other sizes may change.
    """
    node = schedule.program.nodes[anchor_of(dispatch)]
    if node.type.dtype.compute is not DType.F32 or 0 in shape_of(schedule, node.operands[0]):
        return None
    left = view_of(schedule, dispatch, node.operands[0])
    right = view_of(schedule, dispatch, node.operands[1])
    if left is None or right is None or 0 in right.shape:
        return None
    lowered = _matmul if node.op.name == "matmul" else _conv
    problem = lowered(node, left, right, shape_of(schedule, anchor_of(dispatch)))
    if problem is None:
        return None
    return problem.code(schedule, dispatch, threads, store, name, any_sizes)


def view_of(schedule: Schedule, dispatch: Dispatch, node: int) -> View | None:
    """How `node` lies in a materialised tensor; None where that is not a strided view."""
    shape = shape_of(schedule, node)
    space = space_of(shape)
    index, at = space.index, node
    nodes = schedule.program.nodes
    while at not in dispatch.operands and nodes[at].op.name != "constant":
        if nodes[at].op.name not in ("transpose", "reshape", "broadcast", "slice"):
            return None
        below = nodes[at].operands[0]
        source = nodes[below].type.shape
        index = pull(
            nodes[at].op.name, nodes[at].attributes, index, nodes[at].type.shape, source,
            space.ranges,
        )  # fmt: skip
        at = below
    home = schedule.homes.get(at, Home(at, (0,) * nodes[at].type.rank))
    inside = tuple(start + i for start, i in zip(home.start, index, strict=True))
    position = offset(inside, strides_of(schedule, home))
    if not is_affine(position):
        return None
    size = nodes[node].type.dtype.itemsize
    strides = tuple(static(coefficient(position, v.name)) * size for v in space.variables)
    start = position if isinstance(position, int) else dict(position.terms).get((), 0)
    return View(at, Pointer(("buffer", home.buffer), start * size), shape, strides, size)


@dataclass(frozen=True)
class _Problem:
    """A contraction over axes; `groups` is 0 where there are none, as in a matmul."""

    batches: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    groups: int
    left: View
    right: View
    columns: int
    depth: int
    left_group: int
    left_depth: int
    right_depth: int
    right_column: int
    fill: float

    def code(
        self, schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore,
        name: str, any_sizes: bool,
    ) -> Code:  # fmt: skip
        """The kernel's text and arguments."""
        nest = renumber(epilogue_nest(schedule, dispatch))
        batches, rows = self._merged(nest)
        count = prod(axis.row.extent for axis in rows)
        tile = choose_tile(None if any_sizes else count, self.columns)
        grouped = self.groups > 1
        dtype = schedule.program.nodes[self.left.node].type.dtype
        packed = schedule.program.nodes[self.right.node].op.name == "constant"
        spec = ContractionSpec(
            len(batches) + grouped, tuple(axis.is_windowed for axis in rows), tile, grouped,
            left_packed=dtype is not DType.F32 or self.left_depth != F32_BYTES,
            right_packed=not packed, dtype=dtype,
        )  # fmt: skip
        pointer, right_strides = self.right.pointer, tuple(axis.right for axis in batches)
        group_stride = self.columns * self.right_column
        if packed:
            array = schedule.program.nodes[self.right.node].constant.array
            digest = schedule.program.nodes[self.right.node].constant.digest
            pointer, right_strides, group_stride = self._packed(
                store, digest, array, batches, panel_columns(tile)
            )
        call = ContractionCall(
            left=self.left.pointer,
            right=pointer,
            scratch=Pointer(("scratch", 0)),
            batches=(*(axis.row.extent for axis in batches), *((self.groups,) * grouped)),
            left_strides=(*(axis.row.stride for axis in batches), *((self.left_group,) * grouped)),
            right_strides=(*right_strides, *((group_stride,) * grouped)),
            rows=tuple(axis.row for axis in rows),
            columns=self.columns,
            depth=self.depth,
            fill=self.fill,
            left_depth_stride=self.left_depth,
            right_depth_stride=self.right_depth,
            right_column_stride=self.right_column,
        )
        plan = contraction_plan(spec, call, threads)
        epilogue = NestEpilogue(_over_axes(nest, [*batches, *rows]), len(parameters(spec)))
        source = contraction_source(name, spec, epilogue)
        work = count * prod(call.batches) * self.columns * self.depth * call.taps
        return Code(
            name, source.text, (*plan.arguments, *epilogue.arguments), work // 8, plan.scratch_size
        )

    def _merged(self, nest: Nest) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """Batches and rows with neighbours made one where all operands step evenly."""
        return _merge(self.batches, nest), _merge(self.rows, nest) or (_NO_ROWS,)

    def _packed(
        self, store: ConstantStore, digest: bytes, array: Array, batches: Sequence[Axis],
        width: int,
    ) -> tuple[Pointer, tuple[int, ...], int]:  # fmt: skip
        """The weights as panels in `store`, and their strides along batches and groups."""
        taps = prod(axis.row.taps for axis in self.rows)
        moving = [axis for axis in batches if axis.right]
        groups = max(1, self.groups)
        shape = (*(axis.row.extent for axis in moving), taps * self.depth, groups * self.columns)
        strides = (*(axis.right for axis in moving), self.right_depth, self.right_column)
        start = self.right.pointer.offset // array.itemsize
        key = f"{digest.hex()} {start} {shape} {strides} {groups} {width}".encode()

        def pack() -> Array:
            flat = array.reshape(-1)[start:]
            weights = np.lib.stride_tricks.as_strided(flat, shape, strides)
            stacks = weights.reshape(-1, *shape[-2:])
            panels = [pack_panels(stack, groups, width) for stack in stacks]
            return np.ascontiguousarray(np.stack(panels))

        address, packed_shape = store.derived(key, pack)
        group_stride = prod(packed_shape[2:]) * F32_BYTES
        batch_stride = group_stride * groups
        right: list[int] = []
        for axis in reversed(batches):
            right.insert(0, batch_stride if axis.right else 0)
            batch_stride *= axis.row.extent if axis.right else 1
        return Pointer(("address", address)), tuple(right), group_stride


_NO_ROWS = Axis(RowAxis(1, 0), 0, -1)


def _matmul(node: Node, left: View, right: View, shape: tuple[int, ...]) -> _Problem | None:
    axes = [
        Axis(RowAxis(shape[axis], left.strides[axis]), right.strides[axis], axis)
        for axis in range(len(shape) - 2)
    ]
    row = len(shape) - 2
    rows = [Axis(RowAxis(shape[row], left.strides[row]), 0, row)]
    while axes and not axes[-1].right:  # the same right operand: more rows
        rows.insert(0, axes.pop())
    return _Problem(
        tuple(axes), tuple(rows), 0, left, right, shape[-1], left.shape[-1], 0,
        _last_stride(left), right.strides[-2], _last_stride(right), 0.0,
    )  # fmt: skip


def _conv(node: Node, left: View, right: View, shape: tuple[int, ...]) -> _Problem | None:
    window, groups = node.attributes
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
        rows.append(_window_axis(window, axis, shape, left))
    channel = _last_stride(left)
    return _Problem(
        (), tuple(rows), groups.count, left, right, shape[-1] // groups.count, depth,
        depth * channel, channel, step, column, float(window.fill.value),
    )  # fmt: skip


def _last_stride(view: View) -> int:
    """The stride of the last axis; any will do where it has extent 1."""
    return view.itemsize if view.shape[-1] == 1 else view.strides[-1]


def _window_axis(window: Window, axis: int, shape: tuple[int, ...], left: View) -> Axis:
    """A spatial axis; without border and with one tap it is a plain one with a larger stride."""
    stride, place = left.strides[axis + 1], axis + 1
    if window.sizes[axis] == 1 and not window.lo[axis] and not window.hi[axis]:
        return Axis(RowAxis(shape[place], stride * window.strides[axis]), 0, place)
    row = RowAxis(
        shape[place], stride, window.strides[axis], window.lo[axis], left.shape[place],
        window.sizes[axis], window.dilations[axis],
    )  # fmt: skip
    return Axis(row, 0, place)


def _is_dense(right: View, step: int) -> bool:
    """Whether taps and depth of the weights form one evenly spaced sequence."""
    stride = step * right.shape[-2]
    for extent, found in zip(reversed(right.shape[:-2]), reversed(right.strides[:-2]), strict=True):
        if extent > 1:
            if found != stride:
                return False
            stride *= extent
    return True


def _merge(axes: Sequence[Axis], nest: Nest) -> tuple[Axis, ...]:
    result: list[Axis] = []
    for axis in reversed(axes):
        if axis.row.extent == 1 and not axis.is_windowed:
            continue
        if result and not axis.is_windowed and not result[0].is_windowed:
            first, second = axis.row, result[0].row
            even = first.stride == second.stride * second.extent
            even = even and axis.right == result[0].right * second.extent
            even = even and all(
                access.strides[axis.variable] == access.strides[result[0].variable] * second.extent
                for access in nest.accesses()
            )
            if even:
                merged = replace(second, extent=first.extent * second.extent)
                result[0] = replace(result[0], row=merged)
                continue
        result.insert(0, axis)
    return tuple(result)


def _over_axes(nest: Nest, axes: Sequence[Axis]) -> Nest:
    """The epilogue over the contraction's own axes and, innermost, the columns."""

    def restride(strides: tuple[int, ...]) -> tuple[int, ...]:
        moved = (strides[axis.variable] if axis.variable >= 0 else 0 for axis in axes)
        return (*moved, strides[-1])

    extents = [*(axis.row.extent for axis in axes), nest.extents[-1]]
    return nest.with_loops(extents, restride, ())
