"""Lowerings of ops that read where other tensors say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.tensors import Tensors, may_be_equal
from satura.rewrite.types.dims import Dim, SymbolicDim, product
from satura.rewrite.types.tensor_type import DType


@lowering("Gather")
def gather(node: Context) -> int:
    """Slices along an axis, chosen by indices."""
    build = node.build
    axis = node.axis(node.integer("axis"), build.rank(node[0]))
    need_inside(node, build.shape(node[0])[axis])
    return build.gather(node[0], node[1], axis)


def need_inside(node: Context, extent: Dim, part: int | None = None) -> None:
    """Let calls be refused by name in which constant indices, or a part of each, leave an axis.

    Raises ModelError where they leave it in all calls.
    """
    indices = node.build.nodes[node[1]]
    is_constant = indices.op.name == "constant" and indices.type.size
    if not is_constant or not node.build.is_run:
        return
    array = indices.constant.array if part is None else indices.constant.array[..., part]
    least = max(int(array.max()) + 1, -int(array.min()))
    if isinstance(extent, SymbolicDim):
        node.build.need_elements(extent, least)
    elif extent < least:
        raise node.wrong(f"an index is for {least} elements, and the axis has {extent}")


@lowering("Compress")
def compress(node: Context) -> int:
    """The slices where a constant condition holds, of those that there are."""
    build, x = node.build, node[0]
    chosen = np.flatnonzero(node.array(1).astype(np.bool_))
    if not node.has("axis"):
        x, axis = build.reshape(x, (build.type(x).size,)), 0
    else:
        axis = node.axis(node.integer("axis"), build.rank(x))
    extent = build.shape(x)[axis]
    if isinstance(extent, int):
        chosen = chosen[chosen < extent]
    elif chosen.size and not build.is_at_least(extent, least := int(chosen[-1]) + 1):
        build.need_at_least(extent, least)  # shorter axes have fewer of them, in another program
    return build.gather(x, build.constant(chosen.astype(np.int64)), axis)


@lowering("GatherElements")
def gather_elements(node: Context) -> int:
    """Element (i, j, …) is x at (i, index, …): one gather from the flat tensor."""
    build, x = node.build, node[0]
    shape = build.shape(x)
    axis = node.axis(node.integer("axis"), len(shape))
    need_inside(node, shape[axis])
    indices = wrap_negative(node, node[1], shape[axis])
    target = build.shape(indices)
    if len(target) != len(shape):
        raise node.wrong(f"indices have rank {len(target)}, the data has rank {len(shape)}")
    return elements_at(build, x, indices, axis)


def elements_at(build: Tensors, x: int, indices: int, axis: int) -> int:
    """Element (i, j, …) is x at (i, index, …), for i64 indices that are not negative."""
    flat = flat_places(build, build.shape(x), indices, axis)
    return build.gather(build.reshape(x, (build.type(x).size,)), flat, 0)


def flat_places(build: Tensors, shape: Sequence[Dim], indices: int, axis: int) -> int:
    """The place of (i, index, …) among all elements of `shape`."""
    target = build.shape(indices)
    flat = build.number(0, indices)
    for position in range(len(shape)):
        at = indices if position == axis else build.iota(target, position, DType.I64)
        stride = build.size_of(shape[position + 1 :], flat)
        flat = build.binary("add", flat, build.binary("mul", at, stride))
    return flat


@lowering("GatherND")
def gather_nd(node: Context) -> int:
    """Slices at index tuples: one gather from x with the indexed axes joined."""
    build, x = node.build, node[0]
    shape, batch = build.shape(x), node.integer("batch_dims")
    tuples = build.shape(node[1])
    (depth,) = node.static(tuples[-1:], "the length of an index")
    if batch + depth > len(shape) or not 0 <= batch < len(tuples):
        raise node.wrong(f"indices of length {depth} do not fit rank {len(shape)}")
    lead = tuples[:-1]
    flat = build.full(0, lead, DType.I64)
    for position in range(batch):
        if shape[position] != lead[position]:
            if not may_be_equal(shape[position], lead[position]):
                raise node.wrong(f"batches of {lead[position]} and {shape[position]} do not fit")
            build.need_equal(shape[position], lead[position])
        stride = build.size_of(shape[position + 1 : batch + depth], flat)
        ramp = build.iota(lead, position, DType.I64)
        flat = build.binary("add", flat, build.binary("mul", ramp, stride))
    for position in range(depth):
        need_inside(node, shape[batch + position], position)
        part = build.one_axis_slice(node[1], len(tuples) - 1, position, 1)
        at = wrap_negative(node, build.drop(part, [len(tuples) - 1]), shape[batch + position])
        stride = build.size_of(shape[batch + position + 1 : batch + depth], flat)
        flat = build.binary("add", flat, build.binary("mul", at, stride))
    rows = (product(shape[: batch + depth]), *shape[batch + depth :])
    return build.gather(build.reshape(x, rows), flat, 0)


def wrap_negative(node: Context, indices: int, extent: Dim) -> int:
    """Indices as i64, negative ones counted from the end."""
    build = node.build
    wide = build.cast(indices, DType.I64) if build.dtype(indices) is not DType.I64 else indices
    moved = build.binary("add", wide, build.size_of([extent], wide))
    return build.select(build.binary("lt", wide, build.number(0, wide)), moved, wide)


@lowering("ReverseSequence")
def reverse_sequence(node: Context) -> int:
    """The first elements of each sequence in reverse order, the others in place."""
    build, x = node.build, node[0]
    time, batch = node.integer("time_axis"), node.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or build.rank(x) < 2:
        raise node.wrong(f"its time axis is {time} and its batch axis {batch}, not 0 and 1")
    steps, sequences, *rest = (build.shape(x)[at] for at in (time, batch, *range(2, build.rank(x))))
    order = (time, batch, *range(2, build.rank(x)))
    lines = build.transpose(x, order)
    shape = (steps, sequences)
    step, sequence = (Value(build, build.iota(shape, at, DType.I64)) for at in (0, 1))
    given = build.exactly(build.cast(node[1], DType.I64), (sequences,))
    lengths = Value(build, given).along(1, step)
    place = (lengths - 1 - step).where(step < lengths, step)
    flat = place * Value(build, build.size_of([sequences], place.index)) + sequence
    rows = build.reshape(lines, (product(shape), *rest))
    return build.transpose(build.gather(rows, flat.index, 0), order)
