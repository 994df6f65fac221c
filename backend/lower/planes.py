"""Pools whose windows move along the last axis, as two nests around a window of known size.

Channels-first tensors are pooled along the axis that is contiguous. The first nest computes the
pool's operand at its own positions, the second one is what follows the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from satura.backend.lower.body import Access, Nest
from satura.backend.lower.reductions import anchor_of, epilogue_nest
from satura.backend.lower.space import space_of
from satura.backend.lower.walk import Walk, shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.types.attributes import ReduceFn, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType

MOST_TAPS = 16  # along one axis


@dataclass(frozen=True)
class WindowAxis:
    """An axis along which the window moves: result o sees o · stride - lo + tap · dilation."""

    extent: int
    results: int
    taps: int
    stride: int
    dilation: int
    lo: int

    @property
    def span(self) -> int:
        """How many positions one result sees, from first to last."""
        return (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True)
class Planes:
    """A pool over the last two axes; `before` and `after` have a loop for every axis.

    The result of `before` is at value `before.result`; `after` reads the pool's as `accumulator`.
    """

    function: str
    dtype: DType
    fill: Scalar
    high: WindowAxis
    wide: WindowAxis
    before: Nest
    after: Nest

    @property
    def work(self) -> int:
        """Innermost iterations, as a nest of taps would have them."""
        return prod(self.after.extents) * self.high.taps * self.wide.taps


def planes(schedule: Schedule, dispatch: Dispatch) -> Planes | None:
    """The dispatch as planes; None where its window or its layout is another one."""
    anchor = anchor_of(dispatch)
    node = schedule.program.nodes[anchor]
    function, window = node.attributes
    assert isinstance(function, ReduceFn) and isinstance(window, Window)
    shape, result = shape_of(schedule, node.operands[0]), shape_of(schedule, anchor)
    axes = [
        WindowAxis(
            shape[axis], result[axis], window.sizes[axis], window.strides[axis],
            window.dilations[axis], window.lo[axis],
        )
        for axis in range(window.rank)
    ]  # fmt: skip
    if len(axes) < 2 or 0 in shape or not _is_windowed(axes[-1]):
        return None
    if any(_is_windowed(axis) for axis in axes[:-2]):
        return None
    if max(axis.taps for axis in axes) > MOST_TAPS:
        return None
    space = space_of(shape)
    ranges = {variable.name: variable.length for variable in space.variables}
    walk = Walk(schedule, dispatch.operands, ranges, keep_units=True)
    value = walk.value(node.operands[0], space.index)
    if walk.divided:
        return None
    dtype = node.type.dtype
    nowhere = Access(0, (0,) * len(shape))
    before = Nest(shape, 0, tuple(walk.body.values), (), (), nowhere, value, dtype)
    after = epilogue_nest(schedule, dispatch)
    if not (_is_contiguous(before) and _is_contiguous(after)):
        return None
    if after.target.strides[-1] != after.dtype.itemsize and after.extents[-1] > 1:
        return None
    return Planes(function.name, dtype, window.fill, axes[-2], axes[-1], before, after)


def _is_windowed(axis: WindowAxis) -> bool:
    return (axis.taps, axis.stride, axis.lo, axis.results) != (1, 1, 0, axis.extent)


def _is_contiguous(nest: Nest) -> bool:
    """Whether all that a nest reads lies along the last loop."""
    loads = [value for value in nest.values if value.op == "load" and value.access is not None]
    return all(
        value.access is not None and value.access.strides[-1] in (0, value.dtype.itemsize)
        for value in loads
    )
