"""Nodes without the empty inputs at their ends and without the outputs that nobody reads.

They mean nothing, and fusions of runtimes look at how many there are: that of onnxruntime which
adds what is before a LayerNormalization reads a third input wherever there is a name for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from onnx import NodeProto
from onnx.defs import OpSchema, SchemaError, get_schema

from satura.rewrite.onnx.order import uses

_COUNTED = {"BatchNormalization"}
"""Ops of which the number of outputs says what they compute."""


def without_unread(
    nodes: Sequence[NodeProto], outputs: Iterable[str], opset: int
) -> list[NodeProto]:
    """The nodes of a graph of these outputs, each with what it needs and what is read of it."""
    read = {*outputs, *(name for node in nodes for name in uses(node))}
    return [_short(node, read, opset) for node in nodes]


def _short(node: NodeProto, read: Set[str], opset: int) -> NodeProto:
    schema = _schema(node, opset)
    if schema is None:
        return node
    inputs = _cut(node.input, schema.min_input)
    results = list(node.output)
    if node.op_type not in _COUNTED:
        may_miss = [
            each.option == OpSchema.FormalParameterOption.Optional for each in schema.outputs
        ]
        results = [
            "" if name not in read and at < len(may_miss) and may_miss[at] else name
            for at, name in enumerate(results)
        ]
        results = _cut(results, schema.min_output)
    if [*node.input] == inputs and [*node.output] == results:
        return node
    short = NodeProto()
    short.CopyFrom(node)
    short.input[:] = inputs
    short.output[:] = results
    return short


def _schema(node: NodeProto, opset: int) -> OpSchema | None:
    """What onnx says of an op of its own."""
    try:
        return get_schema(node.op_type, opset, node.domain)
    except SchemaError:
        return None


def _cut(names: Sequence[str], least: int) -> list[str]:
    """The names up to the last that is not empty, and at least so many."""
    named = [at + 1 for at, name in enumerate(names) if name]
    return list(names[: max([least, *named])])
