"""Dispatches that combine many elements, as nests whose last loops are reduced.

Reductions run over the reduced axes of their operand, pools over the taps of their window, plain
contractions over taps and channels or the inner extent. All have elementwise work around them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from satura.backend.lower.anchors import anchor_of, finished_nest, paths_after
from satura.backend.lower.body import MAX_TAPS, Clip, Nest, Reduction
from satura.backend.lower.factors import is_only_a_factor
from satura.backend.lower.filling import filled
from satura.backend.lower.space import TAPS, Space, space_of
from satura.backend.lower.walk import LoweringError, Walk, refine, shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.ops import Kind
from satura.rewrite.ops.reductions import SELECTIONS, reduction_identity
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Groups,
    ReduceFn,
    Window,
)
from satura.rewrite.types.constant import Scalar  # fmt: skip
from satura.rewrite.types.dims import Dim, is_one
from satura.rewrite.types.index_map import Index, variable_name
from satura.rewrite.types.tensor_type import DType

# Taps times depth of a convolution that asks per tap what lies outside: its text is written out.
# More of them are loops, which are clipped instead.
MAX_STEPS = 25


def row_nest(schedule: Schedule, dispatch: Dispatch) -> Nest:
    """Reductions over the same axes, with elementwise work before, between and after them."""
    anchor = schedule.program.nodes[anchor_of(dispatch)]
    space = space_of(shape_of(schedule, anchor.operands[0]))
    axes = _reduced_axes(anchor)

    def attempt(box: Space) -> tuple[Walk, Nest]:
        return _rows(schedule, dispatch, box, axes)

    return replace(refine(space, attempt), is_factor=is_only_a_factor(schedule, dispatch.root))


def _reduced_axes(node: Node) -> tuple[int, ...]:
    attribute = node.attributes[1]
    if isinstance(attribute, Axes):
        return attribute.indices
    assert isinstance(attribute, Axis)
    return (attribute.index,)


def _rows(
    schedule: Schedule, dispatch: Dispatch, space: Space, axes: tuple[int, ...]
) -> tuple[Walk, Nest]:
    nodes = schedule.program.nodes
    kept = [v for axis, vs in enumerate(space.axes) if axis not in axes for v in vs]
    gone = [v for axis in axes for v in space.axes[axis]]
    walk = Walk(schedule, dispatch.operands, {v.name: v.length for v in (*kept, *gone)})
    row = tuple(0 if axis in axes else at for axis, at in enumerate(space.index))
    found = [index for index in dispatch.nodes if nodes[index].op.kind is Kind.REDUCTION]
    for index in found:
        if _reduced_axes(nodes[index]) != axes:
            raise LoweringError(f"%{index} = {nodes[index]} reduces other axes than its dispatch")
    starts = dict.fromkeys(found, row)
    walk.paths = paths_after(schedule, dispatch, starts, space.index, space.ranges)
    reductions: list[Reduction] = []
    for number, index in enumerate(found):
        node = nodes[index]
        operand = walk.value(node.operands[0], space.index)
        dtype = nodes[node.operands[0]].type.dtype
        function, _, *last = node.attributes
        assert isinstance(function, ReduceFn)
        if node.op.name == "reduce":
            reductions.append(Reduction(function.name, dtype.compute, operand))
            walk.anchored[index] = walk.reduced(number, dtype)
        else:
            assert isinstance(last[0], Count)
            position, takes_last = walk.position(space.index[axes[0]]), bool(last[0].value)
            reductions.append(
                Reduction(function.name, dtype.compute, operand, position, takes_last=takes_last)
            )
            walk.anchored[index] = walk.reduced(number, DType.I64)
    reduced = sum(not is_one(variable.length) for variable in gone)
    return walk, finished_nest(schedule, dispatch, walk, reduced, reductions, [])


def window_nest(schedule: Schedule, dispatch: Dispatch) -> Nest:
    """A pool: the reduction of the window's taps."""
    anchor = anchor_of(dispatch)
    node = schedule.program.nodes[anchor]
    function, window = node.attributes
    assert isinstance(function, ReduceFn) and isinstance(window, Window)
    dtype = node.type.dtype
    source = node.operands[0]
    outer = space_of(shape_of(schedule, anchor))
    taps = space_of(window.sizes, TAPS)
    walk = _walk_around_anchor(schedule, dispatch, outer, taps)
    identity = _is_identity(window.fill, function.name, dtype)
    may_skip = identity or function.name in SELECTIONS
    skip = may_skip and not _is_unrolled(window, shape_of(schedule, anchor), 1)
    reader = _WindowReader(walk, window, outer.index, taps.index, skip)
    position = reader.positions(shape_of(schedule, source))
    operand = _seen(reader, source, position)
    fill = walk.scalar(window.fill) if reader.clips and not identity else None
    reduction = Reduction(function.name, dtype.compute, operand, fill=fill)
    walk.anchored[anchor] = walk.reduced(0, dtype)
    return _nest_around_anchor(schedule, dispatch, walk, taps, [reduction], reader.clips)


def contraction_nest(schedule: Schedule, dispatch: Dispatch) -> Nest:
    """conv or matmul as plain loops over any dtype: sums of products in the compute type."""
    anchor = anchor_of(dispatch)
    node = schedule.program.nodes[anchor]
    lowered = _matmul if node.op.name == "matmul" else _conv
    return lowered(schedule, dispatch, anchor, node)


def _matmul(schedule: Schedule, dispatch: Dispatch, anchor: int, node: Node) -> Nest:
    x, y = node.operands
    outer = space_of(shape_of(schedule, anchor))
    inner = space_of(shape_of(schedule, x)[-1:], TAPS)
    walk = _walk_around_anchor(schedule, dispatch, outer, inner)
    *batch, row, column = outer.index
    (k,) = inner.index
    first = walk.value(x, (*batch, row, k))
    second = walk.value(y, (*batch, k, column))
    dtype = node.type.dtype
    product = walk.apply("mul", dtype.compute, first, second)
    walk.anchored[anchor] = walk.reduced(0, dtype)
    reduction = Reduction("sum", dtype.compute, product)
    return _nest_around_anchor(schedule, dispatch, walk, inner, [reduction], [])


def _conv(schedule: Schedule, dispatch: Dispatch, anchor: int, node: Node) -> Nest:
    x, w = node.operands
    window, *rest = node.attributes
    (groups,) = rest or (Groups(1),)
    assert isinstance(window, Window) and isinstance(groups, Groups)
    shape, kernel = shape_of(schedule, anchor), shape_of(schedule, w)
    width = shape[-1] // groups.count
    outer = space_of(shape)
    if groups.count > 1 and width > 1:
        outer = outer.split(variable_name(len(shape) - 1), width)
    inner = space_of((*window.sizes, kernel[-2]), TAPS)
    walk = _walk_around_anchor(schedule, dispatch, outer, inner)
    may_skip = _is_zero(window.fill) and _is_finite(schedule, w)
    skip = may_skip and not _is_unrolled(window, shape, kernel[-2])
    *taps, channel = inner.index
    reader = _WindowReader(walk, window, outer.index[1:-1], tuple(taps), skip)
    positions = reader.positions(shape_of(schedule, x)[1:-1])
    group = _group_index(outer, len(shape) - 1, groups.count, width)
    at = (outer.index[0], *positions, group * kernel[-2] + channel)
    seen = _seen(reader, x, at)
    dtype = node.type.dtype
    weight = walk.value(w, (*taps, channel, outer.index[-1]))
    product = walk.apply("mul", dtype.compute, seen, weight)
    walk.anchored[anchor] = walk.reduced(0, dtype)
    reduction = Reduction("sum", dtype.compute, product)
    return _nest_around_anchor(schedule, dispatch, walk, inner, [reduction], reader.clips)


def _group_index(outer: Space, axis: int, count: int, width: int) -> Dim:
    """Which group an output channel belongs to."""
    if count == 1:
        return 0
    if width == 1:
        return outer.index[axis]
    return replace(outer, axes=(outer.axes[axis][:1],), extents=((count,),)).index[0]


def _walk_around_anchor(schedule: Schedule, dispatch: Dispatch, outer: Space, inner: Space) -> Walk:
    variables = (*outer.variables, *inner.variables)
    walk = Walk(schedule, dispatch.operands, {v.name: v.length for v in variables})
    start = {anchor_of(dispatch): outer.index}
    walk.paths = paths_after(schedule, dispatch, start, None, outer.ranges)
    return walk


def _nest_around_anchor(
    schedule: Schedule, dispatch: Dispatch, walk: Walk, inner: Space,
    reductions: list[Reduction], clips: list[Clip],
) -> Nest:  # fmt: skip
    reduced = sum(not is_one(variable.length) for variable in inner.variables)
    return finished_nest(schedule, dispatch, walk, reduced, reductions, clips)


class _WindowReader:
    """Positions that a window reads, and how what lies outside is left out.

    With `skip` the taps' loops are clipped, where there is a loop to clip; else a mask tells.
    """

    def __init__(self, walk: Walk, window: Window, outer: Index, taps: Index, skip: bool) -> None:
        self.walk = walk
        self.window = window
        self.outer = outer
        self.taps = taps
        self.skip = skip
        self.mask: int | None = None
        self.clips: list[Clip] = []

    def positions(self, shape: tuple[int, ...]) -> Index:
        """The index in an operand of `shape` (of the window's axes); fills `mask` and `clips`."""
        result: list[Dim] = []
        for axis, extent in enumerate(shape):
            stride, dilation = self.window.strides[axis], self.window.dilations[axis]
            origin = self.outer[axis] * stride - self.window.lo[axis]
            position = origin + self.taps[axis] * dilation
            result.append(position)
            if not self.window.lo[axis] and not self.window.hi[axis]:
                continue
            name = f"{TAPS}{axis}"
            if self.skip and name in self.walk.loops:
                loop = self.walk.loops.index(name)
                start = self.walk.position(origin)
                self.clips.append(Clip(loop, start, dilation, extent))
                continue
            guard = self.walk.guarded(position, extent, may_pass=self.window.hi[axis] > 0)
            if guard is False:  # every position lies outside
                guard = self.walk.scalar(Scalar.of(False, DType.BOOL))
            if guard is not True:
                self.mask = self.walk.both(self.mask, guard)
        return tuple(result)


def _seen(reader: _WindowReader, operand: int, at: Index) -> int:
    """The element of the operand at an index that the window reads: outside, its fill."""
    value = reader.walk.value(operand, at, reader.mask)
    if reader.mask is None:
        return value
    return filled(reader.walk, reader.mask, value, reader.window.fill)


def _is_unrolled(window: Window, shape: tuple[int, ...], depth: int) -> bool:
    """Whether the kernel will unroll taps over the last axis: masks then cost little."""
    last = window.rank - 1
    is_stepped = len(shape) == window.rank and window.strides[last] > 1
    most = MAX_TAPS if depth == 1 else MAX_STEPS
    return shape[-1] > 1 and not is_stepped and prod(window.sizes) * depth <= most


def _is_identity(fill: Scalar, function: str, dtype: DType) -> bool:
    return Scalar.of(reduction_identity(function, dtype), dtype) == fill


def _is_zero(fill: Scalar) -> bool:
    return not any(fill.bits)


def _is_finite(schedule: Schedule, node: int) -> bool:
    """Whether zeros times these weights are surely zeros."""
    constant = schedule.program.nodes[node]
    if not constant.type.dtype.is_float:
        return True
    if constant.op.name != "constant":
        return False
    array = constant.constant.array
    wide = array if array.itemsize >= 4 else array.astype(np.float32)
    return bool(np.isfinite(wide).all())
