"""Axes of a contraction's result: how both operands step along them, and which are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from satura.backend.contraction.spec import RowAxis
from satura.backend.contraction.views import View
from satura.backend.lower.body import Nest
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.dims import is_one


@dataclass(frozen=True)
class Axis:
    """One axis of the result but its columns: how far both operands step along it.

    `variable` is its place among the axes of the result; several merged axes have the last one's.
    """

    row: RowAxis
    right: int
    variable: int


NO_ROWS = Axis(RowAxis(1, 0), 0, -1)


def window_axis(window: Window, axis: int, shape: tuple[int, ...], left: View) -> Axis:
    """A spatial axis; without border and with one tap it is a plain one with a larger stride."""
    stride, place = left.strides[axis + 1], axis + 1
    if window.sizes[axis] == 1 and not window.lo[axis] and not window.hi[axis]:
        return Axis(RowAxis(shape[place], stride * window.strides[axis]), 0, place)
    row = RowAxis(
        shape[place], stride, window.strides[axis], window.lo[axis], left.shape[place],
        window.sizes[axis], window.dilations[axis],
    )  # fmt: skip
    return Axis(row, 0, place)


def merge(axes: Sequence[Axis], nest: Nest) -> tuple[Axis, ...]:
    """Neighbours made one where all operands step evenly, and without axes of one element."""
    result: list[Axis] = []
    for axis in reversed(axes):
        if is_one(axis.row.extent) and not axis.row.is_windowed:
            continue
        if result and not axis.row.is_windowed and not result[0].row.is_windowed:
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


def over_axes(nest: Nest, axes: Sequence[Axis], column: int = -1, columns: int = 0) -> Nest:
    """The epilogue over the contraction's own axes and, innermost, the columns: the loop `column`,
    of `columns` iterations where others are merged into it."""

    def restride(strides: tuple[int, ...]) -> tuple[int, ...]:
        moved = (strides[axis.variable] if axis.variable >= 0 else 0 for axis in axes)
        return (*moved, strides[column])

    extents = [*(axis.row.extent for axis in axes), columns or nest.extents[column]]
    return nest.with_loops(extents, restride, ())
