"""Windows as two nests around a window of known size: over planes, whose rows are contiguous, or
over images, whose channels are.

So channels-first tensors are pooled, and all are convolved where each channel is a group. The first
nest computes the window's operand at its own positions, the second one is what follows the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from satura.backend.lower.anchors import anchor_of, epilogue_nest
from satura.backend.lower.body import Access, Nest
from satura.backend.lower.space import space_of
from satura.backend.lower.walk import Walk, shape_of
from satura.rewrite.extract.readable import MOST_OF_ALL, MOST_TAPS
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Groups, ReduceFn, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType


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
    """A window over the last two loops of `before` and `after`, which have one for every axis.

    Where it `is_of_images`, the last loop runs over channels, and the two before it count.
    The result of `before` is at value `before.result`; `after` reads the window's as `accumulator`.
    The elements that the taps see are multiplied by those of `factors`. Its loops are those of
    channels, both of taps and one of one iteration; those of channels come last over images.
    """

    function: str
    dtype: DType
    fill: Scalar
    high: WindowAxis
    wide: WindowAxis
    before: Nest
    after: Nest
    factors: Nest | None = None
    is_of_images: bool = False

    @property
    def is_computed(self) -> bool:
        """Whether the operand is more than elements that are read, or a 0 around them."""
        value = self.before.values[self.before.result]
        return value.op != "load" or value.dtype is not value.dtype.compute

    @property
    def work(self) -> int:
        """Innermost iterations, as a nest of taps would have them."""
        return prod(self.after.extents) * self.high.taps * self.wide.taps


def planes(schedule: Schedule, dispatch: Dispatch) -> Planes | None:
    """The dispatch as planes, else as images whose channels are convolved each with its own taps;
    None where its window or its layout is another one."""
    anchor = anchor_of(dispatch)
    node = schedule.program.nodes[anchor]
    shape, result = shape_of(schedule, node.operands[0]), shape_of(schedule, anchor)
    window = next((each for each in node.attributes if isinstance(each, Window)), None)
    if window is None or 0 in shape:  # a matmul, or nothing to copy
        return None
    function, first, natural = "sum", 0, tuple(range(len(shape)))
    orders = [(natural, 0)]  # of the loops, by axis, and how many stand inside those of the window
    if node.op.name == "conv":
        if not _is_depthwise(schedule, node):
            return None
        first, orders = 1, [((natural[-1], *natural[:-1]), 0), (natural, 1)]
    else:
        named = next((each for each in node.attributes if isinstance(each, ReduceFn)), None)
        if named is None:  # a winograd
            return None
        function = named.name
    moves = [_axis(window, axis - first, shape[axis], result[axis]) for axis in natural]
    found = []
    for order, inside in orders:
        axes = [moves[axis] for axis in order[: len(order) - inside]]
        if _is_of_last_two(axes):
            found.append((order, inside, axes[-2], axes[-1]))
    before = _operand_nest(schedule, dispatch, node, shape) if found else None
    if before is None:
        return None
    after, dtype = epilogue_nest(schedule, dispatch), node.type.dtype
    for order, inside, high, wide in found:
        around = _ordered(before, order), _ordered(after, order)
        if not (all(map(_is_contiguous, around)) and _is_stored_in_line(around[1])):
            continue
        factors = None
        if node.op.name == "conv":
            factors = _factors(schedule, dispatch, node.operands[1], high.taps, wide.taps)
            factors = _ordered(factors, (1, 2, 3, 0)) if inside else factors
        return Planes(function, dtype, window.fill, high, wide, *around, factors, inside == 1)
    return None


def _operand_nest(
    schedule: Schedule, dispatch: Dispatch, node: Node, shape: Sequence[int]
) -> Nest | None:
    """What the window's operand is computed by; None where its index is divided."""
    space = space_of(shape)
    ranges = {variable.name: variable.length for variable in space.variables}
    walk = Walk(schedule, dispatch.operands, ranges, keep_units=True)
    value = walk.value(node.operands[0], space.index)
    if walk.divided:
        return None
    nowhere = Access(0, (0,) * len(shape))
    values = tuple(walk.body.values)
    return Nest(tuple(shape), 0, values, (), (), nowhere, value, node.type.dtype)


def _is_of_last_two(axes: Sequence[WindowAxis]) -> bool:
    """Whether the window moves along the last axis, and at most along the one before it."""
    if len(axes) < 2 or not _is_windowed(axes[-1]) or any(map(_is_windowed, axes[:-2])):
        return False
    taps = [axis.taps for axis in axes]
    return max(taps) <= MOST_TAPS and prod(taps) <= MOST_OF_ALL


def _is_stored_in_line(nest: Nest) -> bool:
    """Whether results along the last loop lie side by side."""
    return nest.target.strides[-1] == nest.dtype.itemsize or nest.extents[-1] <= 1


def _axis(window: Window, at: int, extent: int, results: int) -> WindowAxis:
    """How the window moves along one axis; it has none for batches and channels of a conv."""
    if not 0 <= at < window.rank:
        return WindowAxis(extent, results, 1, 1, 1, 0)
    return WindowAxis(
        extent, results, window.sizes[at], window.strides[at], window.dilations[at], window.lo[at]
    )


def _is_depthwise(schedule: Schedule, node: Node) -> bool:
    """Whether every channel of floats is a group, with one channel of results."""
    channels = shape_of(schedule, node.operands[0])[-1]
    groups = next((each.count for each in node.attributes if isinstance(each, Groups)), 1)
    return node.type.dtype.is_float and node.type.shape[-1] == groups == channels


def _ordered(nest: Nest, order: Sequence[int]) -> Nest:
    """The nest with its loops in another order."""
    extents = [nest.extents[loop] for loop in order]
    return nest.with_loops(extents, lambda strides: tuple(strides[loop] for loop in order), ())


def _factors(schedule: Schedule, dispatch: Dispatch, w: int, high: int, wide: int) -> Nest:
    """The weights `w` of a convolution, over its channels and the last two axes of taps; the last
    loop is of one iteration."""
    *taps, _, channels = shape_of(schedule, w)
    space = space_of((channels, high, wide, 1))
    ranges = {variable.name: variable.length for variable in space.variables}
    walk = Walk(schedule, dispatch.operands, ranges, keep_units=True)
    channel, *last, _ = space.index
    at = (*(0 for _ in taps[:-2]), *last[-len(taps) :])
    value = walk.value(w, (*at, 0, channel))
    dtype = schedule.program.nodes[w].type.dtype
    nowhere = Access(0, (0, 0, 0, 0))
    return Nest(
        (channels, high, wide, 1), 0, tuple(walk.body.values), (), (), nowhere, value, dtype
    )


def _is_windowed(axis: WindowAxis) -> bool:
    return (axis.taps, axis.stride, axis.lo, axis.results) != (1, 1, 0, axis.extent)


def _is_contiguous(nest: Nest) -> bool:
    """Whether all that a nest reads lies along the last loop."""
    loads = [value for value in nest.values if value.op == "load" and value.access is not None]
    return all(
        value.access is not None and value.access.strides[-1] in (0, value.dtype.itemsize)
        for value in loads
    )
