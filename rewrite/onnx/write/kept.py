"""Nodes as a model has them, with the graphs inside them, in the opset that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from onnx import NodeProto

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.checks import opset_versions
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.opsets import is_one_of, is_standard, means_the_same, translated
from satura.rewrite.onnx.order import all_nodes, inner_graphs
from satura.rewrite.onnx.upgrade import upgrade
from satura.rewrite.types.constant import Constant

_CONVERTED = {
    "BatchNormalization", "Clip", "Dropout", "LogSoftmax", "Pad", "RoiAlign", "Scatter", "Slice",
    "Softmax", "TopK",
}  # fmt: skip
"""Ops that are others in newer opsets, and that the onnx package converts to what they mean: of
others, as Hardmax and Resize, it does not."""


def changes(
    node: NodeProto, old: int, new: int, types: Callable[[str], Set[str]] = lambda name: set()
) -> Iterator[NodeProto]:
    """The nodes that are other ops in the `new` opset, of `node` and those inside it.

    `types` are the element types of tensors, by their names: they count in an older one.
    """
    if new < old:
        yield from [] if is_one_of(node, new, old, types) else [node]
        return
    for each in all_nodes([node]):
        if is_standard(each.domain) and not means_the_same(each.op_type, old, new):
            yield each


def moved(node: NodeProto, old: int, new: int, store: Callable[[Constant], str]) -> NodeProto:
    """`node` as the `new` opset has it, where it and what is inside it mean the same.

    Lists that are inputs there are stored as constants, by their names.
    """
    result = NodeProto()
    result.CopyFrom(node)
    for each in all_nodes([result]) if new > old else ():
        if not is_standard(each.domain):
            continue
        attributes, operands = translated(each, new)
        for at, value in operands.items():
            each.input.extend([""] * (at + 1 - len(each.input)))
            each.input[at] = store(value)
        del each.attribute[:]  # before what is inside is looked at, as that is copied
        each.attribute.extend(attributes)
    return result


def with_lasting_graphs(model: ModelApart, newer: int) -> ModelApart:
    """The model, of a newer opset where nodes in graphs inside of others are other ops there: what
    has such graphs could not stay as it is."""
    opset, nodes = opset_versions(model.proto.opset_import).get("", newer), model.proto.graph.node
    if opset >= newer:
        return model
    found = [(node, each.op_type) for node in nodes for each in changes(node, opset, newer)]
    is_inside = any(any(inner_graphs(node)) for node, _ in found)
    if not is_inside or not {op_type for _, op_type in found} <= _CONVERTED:
        return model
    try:
        return upgrade(model, newer)
    except UnsupportedError:
        return model  # a node that is not converted and stays is named when the model is saved
