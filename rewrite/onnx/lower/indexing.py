"""Lowerings of ops that read where other tensors say."""

from __future__ import annotations

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.broadcasting import may_be_equal
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.places import (
    Index,
    counted,
    elements_at,
    joined,
    need_beside,
    need_inside,
    up_to,
)
from satura.rewrite.onnx.lower.staying import open_along
from satura.rewrite.types.dims import product
from satura.rewrite.types.tensor_type import DType


@lowering("Gather")
def gather(node: Context) -> int:
    """Slices along an axis, chosen by indices."""
    build = node.build
    axis = node.axis(node.integer("axis"), build.rank(node[0]))
    need_inside(node, build.shape(node[0])[axis])
    return build.gather(node[0], node[1], axis)


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
        if build.for_all_sizes:
            reason = f"how many elements it takes depends on the size {extent}"
            raise open_along(node, reason, build.type(x), [axis])
        build.need_at_least(extent, least)  # shorter axes have fewer of them, in another program
    return build.gather(x, build.constant(chosen.astype(np.int64)), axis)


@lowering("GatherElements")
def gather_elements(node: Context) -> int:
    """Element (i, j, …) is x at (i, index, …): one gather from the flat tensor."""
    build, x = node.build, node[0]
    shape, target = build.shape(x), build.shape(node[1])
    axis = node.axis(node.integer("axis"), len(shape))
    if len(target) != len(shape):
        raise node.wrong(f"indices have rank {len(target)}, the data has rank {len(shape)}")
    need_beside(node, shape, target, axis)
    return elements_at(build, x, counted(node, shape[axis]), axis)


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
    axes = []
    for position in range(batch):
        if shape[position] != lead[position]:
            if not may_be_equal(shape[position], lead[position]):
                raise node.wrong(f"batches of {lead[position]} and {shape[position]} do not fit")
            build.need_equal(shape[position], lead[position])
        axes.append(Index(build.iota(lead, position, DType.I64), shape[position]))
    axes += [counted(node, shape[batch + at], at) for at in range(depth)]
    rows = (product(shape[: batch + depth]), *shape[batch + depth :])
    return build.gather(build.reshape(x, rows), joined(build, axes, lead), 0)


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
    ends = Value(build, up_to(node, 1, steps, sequences)).along(1, step)
    place = (ends - 1 - step).where(step < ends, step)
    flat = place * Value(build, build.size_of([sequences], place.index)) + sequence
    rows = build.reshape(lines, (product(shape), *rest))
    return build.transpose(build.gather(rows, flat.index, 0), order)
