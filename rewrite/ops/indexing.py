"""The op that reads where data say."""

from __future__ import annotations

import numpy as np

from satura.rewrite.errors import CallError
from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import Axis, refuse_unless
from satura.rewrite.types.outside import outside
from satura.rewrite.types.tensor_type import Array, DType, TensorType


def refuse_outside(name: str, indices: Array, places: Array, extent: int, least: int) -> None:
    """Raise CallError for the first index whose place is not in [0, extent)."""
    wrong = np.logical_or(np.less(places, 0), np.greater_equal(places, extent))
    if wrong.any():
        reason, index = outside(int(indices[wrong].item(0)), least, extent)
        raise CallError(f"{name}: {reason}: it is {index}")


def _gather(x: Array, indices: Array, axis: Axis) -> Array:
    extent = x.shape[axis.index]
    wrapped = np.where(np.less(indices, 0), np.add(indices, extent), indices)
    refuse_outside("gather", indices, wrapped, extent, -extent)
    return np.take(x, wrapped, axis.index)


@op(kind=Kind.INDEXING, reference=_gather, flops=lambda result, *_: size_of(result))
def gather(x: TensorType, indices: TensorType, axis: Axis) -> TensorType:
    """Slices of x along `axis`, chosen by `indices` (i32 or i64), whose axes take its place.

    x is of any element type. A negative index counts from the end; one outside the axis is an error
    of the call where its slice is used.
    """
    refuse_unless(0 <= axis.index < x.rank, f"axis {axis} is out of range for {x}")
    refuse_unless(indices.dtype in (DType.I32, DType.I64), f"indices are {indices.dtype.value}")
    before, after = x.shape[: axis.index], x.shape[axis.index + 1 :]
    return x.with_shape((*before, *indices.shape, *after))
