"""The graphs inside of nodes: those that the node's op has, with as many inputs and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

from satura.rewrite.errors import ModelError
from satura.rewrite.onnx.opsets import is_standard
from satura.rewrite.onnx.order import all_nodes, label

_BODIES: Mapping[str, tuple[str, ...]] = {
    "If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",),
}  # fmt: skip


def check_bodies(model: ModelProto) -> None:
    """Raise ModelError for a node, also one inside of another, that lacks a graph, or whose graph
    has other numbers of inputs or results: where data choose a body, it is looked at only then."""
    _check_all(model.graph.node, model.opset_import)
    for function in model.functions:
        _check_all(function.node, function.opset_import or model.opset_import)


def _check_all(nodes: Iterable[NodeProto], imports: Iterable[OperatorSetIdProto]) -> None:
    versions = [each.version for each in imports if is_standard(each.domain)]
    is_batched = all(version < 9 for version in versions)
    for node in all_nodes(nodes):
        if node.op_type in _BODIES and is_standard(node.domain):
            _check(node, _BODIES[node.op_type], is_batched)


def _check(node: NodeProto, names: tuple[str, ...], is_batched: bool) -> None:
    given = {each.name: each for each in node.attribute}
    for name in names:
        if name not in given:
            raise ModelError(f"{label(node)}: {name} is missing")
        if given[name].ref_attr_name or given[name].type != AttributeProto.GRAPH:
            return  # a call of the function gives it, or ONNX's schema refuses it
        if not given[name].HasField("g"):
            raise ModelError(f"{label(node)}: {name} is not a graph")
    for name in names:
        _check_counts(node, name, given[name].g, is_batched)


def _check_counts(node: NodeProto, name: str, graph: GraphProto, is_batched: bool) -> None:
    """Raise ModelError for a graph that takes or gives another number of values than the node; one
    that is repeated may give more rows than the node has results."""
    count, takes, wanted = len(graph.output), 0, len(node.output)
    if node.op_type == "Loop":
        takes = max(len(node.input), 2)
        wanted = 1 + max(wanted, takes - 2)
    elif node.op_type == "Scan":
        takes = len(node.input) - is_batched
    if len(graph.input) != takes:
        raise ModelError(f"{label(node)}: {name} takes {len(graph.input)} inputs, not {takes}")
    if count < wanted or (node.op_type == "If" and count > wanted):
        raise ModelError(f"{label(node)}: {name} has {count} results, not {wanted}")
