"""Ops that run on the host: calls of ONNX nodes, and their results."""

from __future__ import annotations

from satura.rewrite.ops.registry import Kind, op
from satura.rewrite.types.attributes import Count, HostCall
from satura.rewrite.types.tensor_type import Array, TensorType


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
