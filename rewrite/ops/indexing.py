"""Ops whose reads depend on data, and ops that run on the host."""

from __future__ import annotations

import numpy as np

from satura.rewrite.errors import CallError
from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import (
    Axis,
    Count,
    HostCall,
    refuse_unless,
)
from satura.rewrite.types.tensor_type import Array, DType, TensorType


def _gather(x: Array, indices: Array, axis: Axis) -> Array:
    extent = x.shape[axis.index]
    wrapped = np.where(np.less(indices, 0), np.add(indices, extent), indices)
    if wrapped.size and (wrapped.min() < 0 or wrapped.max() >= extent):
        raise CallError(f"gather: an index lies outside [-{extent}, {extent})")
    return np.take(x, wrapped, axis.index)


@op(kind=Kind.INDEXING, reference=_gather, flops=lambda result, *_: size_of(result))
def gather(x: TensorType, indices: TensorType, axis: Axis) -> TensorType:
    """Slices of x along `axis`, chosen by integer `indices`, whose axes take the place of `axis`.

    A negative index counts from the end; one outside the axis is an error of the call.
    """
    refuse_unless(0 <= axis.index < x.rank, f"axis {axis} is out of range for {x}")
    refuse_unless(indices.dtype in (DType.I32, DType.I64), f"indices are {indices.dtype.value}")
    before, after = x.shape[: axis.index], x.shape[axis.index + 1 :]
    return x.with_shape((*before, *indices.shape, *after))


def _host(*arguments: object) -> Array:
    raise AssertionError("the interpreter runs host calls itself")


@op(kind=Kind.HOST, reference=_host)
def host(*operands: TensorType, call: HostCall) -> tuple[TensorType, ...]:
    """An ONNX node without a lowering, run by the reference implementation of the onnx package."""
    return call.outputs


@op(kind=Kind.HOST, reference=lambda results, index: results[index.value])
def item(results: TensorType, index: Count) -> TensorType:
    """Result number `index` of a node with several results."""
    raise AssertionError("Program.add types items from their node")
