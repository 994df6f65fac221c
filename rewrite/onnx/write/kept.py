"""Nodes as a model has them, with the graphs inside them, in the opset that is written."""

from __future__ import annotations

from collections.abc import Callable, Set

from onnx import NodeProto

from satura.rewrite.onnx.opsets import is_one_of, is_standard, means_the_same, translated
from satura.rewrite.onnx.order import all_nodes
from satura.rewrite.types.constant import Constant


def changed(node: NodeProto, old: int, new: int, types: Set[str]) -> NodeProto | None:
    """The node that is another op in the `new` opset: `node` or one inside it; None where none is.

    `types` are the element types that are in use.
    """
    if new < old:
        return None if is_one_of(node, new, old, types) else node
    for each in all_nodes([node]):
        if is_standard(each.domain) and not means_the_same(each.op_type, old, new):
            return each
    return None


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
