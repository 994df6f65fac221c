"""The graphs inside of nodes: those that the node's op has, and of two as many results."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, NodeProto

from satura.rewrite.errors import ModelError
from satura.rewrite.onnx.opsets import is_standard
from satura.rewrite.onnx.order import all_nodes, label

_BODIES: Mapping[str, tuple[str, ...]] = {
    "If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",),
}  # fmt: skip


def check_bodies(model: ModelProto) -> None:
    """Raise ModelError for a node, also one inside of another, that lacks a graph, or whose
    branches have other numbers of results: where data choose a body, it is looked at only then."""
    of_functions = (node for function in model.functions for node in function.node)
    for node in all_nodes([*model.graph.node, *of_functions]):
        if node.op_type in _BODIES and is_standard(node.domain):
            _check(node, _BODIES[node.op_type])


def _check(node: NodeProto, names: tuple[str, ...]) -> None:
    given = {each.name: each for each in node.attribute}
    for name in names:
        if name not in given:
            raise ModelError(f"{label(node)}: {name} is missing")
    if node.op_type != "If" or not all(given[name].HasField("g") for name in names):
        return
    for name in names:
        count, wanted = len(given[name].g.output), len(node.output)
        if count != wanted:
            raise ModelError(f"{label(node)}: {name} has {count} results, not {wanted}")
