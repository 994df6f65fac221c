"""Indices along several axes as the places of one: what gathers read and scatters write at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.program.integer_bounds import are_inside
from satura.rewrite.types.dims import Dim, SymbolicDim, known_at_least
from satura.rewrite.types.outside import FAR, NEAR
from satura.rewrite.types.tensor_type import DType


@dataclass(frozen=True)
class Index:
    """Where along an axis of so many elements, counted from its start."""

    place: int
    extent: Dim


def need_inside(node: Context, extent: Dim, part: int | None = None) -> None:
    """Let calls be refused by name in which constant indices, or a part of each, leave an axis.

    Raises ModelError where they leave it in all calls.
    """
    indices = node.build.nodes[node[1]]
    is_constant = indices.op.name == "constant" and indices.type.size
    if not is_constant or not node.build.is_run:
        return
    array = indices.constant.array if part is None else indices.constant.array[..., part]
    least, greatest = int(array.min()), int(array.max())
    if isinstance(extent, SymbolicDim):
        node.build.need_elements(extent, max(greatest + 1, -least))
    elif not -extent <= least <= greatest < extent:
        wrong = greatest if greatest >= extent else least
        raise node.wrong(f"index {wrong} lies outside [{-extent}, {extent})")


def need_beside(node: Context, shape: Sequence[Dim], target: Sequence[Dim], indexed: int) -> None:
    """Let calls be refused in which indices of this shape reach beyond an axis that they do not say
    where to read.

    Raises ModelError where they do in all calls.
    """
    for axis, (extent, count) in enumerate(zip(shape, target, strict=True)):
        if axis == indexed or known_at_least(extent - count, 0):
            continue
        if not isinstance(extent - count, SymbolicDim):
            raise node.wrong(f"indices have {count} elements along axis {axis}, the data {extent}")
        node.build.need_at_least(extent, count)


def counted(node: Context, extent: Dim, part: int | None = None) -> Index:
    """The indices that are operand 1, or a part of each; negative ones count from the end."""
    need_inside(node, extent, part)
    build, indices = node.build, node[1]
    is_constant = build.nodes[indices].op.name == "constant"
    if part is not None:
        last = build.rank(indices) - 1
        indices = build.drop(build.one_axis_slice(indices, last, part, 1), [last])
    if not is_constant:
        return Index(inside(build, indices, extent), extent)
    wide = build.converted(indices, DType.I64)
    moved = build.binary("add", wide, build.size_of([extent], wide))
    return Index(build.select(build.binary("lt", wide, build.number(0, wide)), moved, wide), extent)


def inside(build: Tensors, indices: int, extent: Dim) -> int:
    """Indices as i64, counted from the start of an axis: the elements of a ramp.

    One that is outside of its axis would be another element of joined axes. The ramp has none
    there, so that it is an error of the call.
    """
    wide = build.converted(indices, DType.I64)
    if are_inside(build.nodes, wide, extent):
        return wide
    return build.gather(build.iota((extent,), 0, DType.I64), wide, 0)


def up_to(node: Context, position: int, most: Dim, count: Dim) -> int:
    """So many numbers as i64, from 0 to `most`: others are an error of the call.

    Raises ModelError where constant ones are others in all calls.
    """
    build, given = node.build, node.build.nodes[node[position]]
    exact = build.exactly(build.converted(node[position], DType.I64), (count,))
    if given.op.name == "constant" and given.type.size:
        least, greatest = int(given.constant.array.min()), int(given.constant.array.max())
        if least < 0 or (isinstance(most, int) and greatest > most):
            wrong = least if least < 0 else greatest
            raise node.wrong(f"input {position} holds {wrong}, which is not from 0 to {most}")
        build.need_elements(most, greatest)
        return exact
    numbers = Value(build, exact)
    holds = (numbers >= 0).binary("and", numbers <= Value(build, build.size_of([most], exact)))
    is_far = (numbers <= -NEAR).binary("or", numbers >= NEAR)
    stays = holds.binary("or", is_far)
    return inside(build, numbers.where(stays, numbers - FAR).index, most + 1)


def joined(build: Tensors, axes: Sequence[Index], shape: Sequence[Dim]) -> int:
    """The place of each index, which has so many dims, among all elements of the axes."""
    flat = build.full(0, shape, DType.I64)
    for at, index in enumerate(axes):
        stride = build.size_of([each.extent for each in axes[at + 1 :]], flat)
        flat = build.binary("add", flat, build.binary("mul", index.place, stride))
    return flat


def along_axis(build: Tensors, shape: Sequence[Dim], index: Index, axis: int) -> list[Index]:
    """(i, j, …) but for an axis, where it is the index."""
    target = build.shape(index.place)
    return [
        index if at == axis else Index(build.iota(target, at, DType.I64), extent)
        for at, extent in enumerate(shape)
    ]


def elements_at(build: Tensors, x: int, index: Index, axis: int) -> int:
    """Element (i, j, …) is x at (i, index, …): one gather from the flat tensor."""
    axes = along_axis(build, build.shape(x), index, axis)
    flat = joined(build, axes, build.shape(index.place))
    return build.gather(build.reshape(x, (build.type(x).size,)), flat, 0)
