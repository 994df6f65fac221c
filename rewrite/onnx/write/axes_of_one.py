"""Transposes of a saved program stand before the reshapes that only insert axes of extent 1.

There they meet their inverses, and what is behind the reshapes is what the loader made.
"""

from __future__ import annotations

from satura.rewrite.ops import REGISTRY
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.attributes import Perm, Shape
from satura.rewrite.types.tensor_type import TensorType


def with_early_transposes(program: Program) -> Program:
    """The program in which transposes of axes that were inserted move the others before that."""
    nodes: list[Node] = []
    places: list[int] = []
    for node in program.nodes:
        operands = tuple(places[at] for at in node.operands)
        before = nodes[operands[0]] if operands else node
        order = _order_before(node, before, nodes)
        if order is not None:
            (x,) = before.operands
            type_ = nodes[x].type
            moved = TensorType(type_.dtype, tuple(type_.shape[axis] for axis in order))
            nodes.append(Node(node.op, (x,), (Perm(order),), moved))
            shape = (Shape(node.type.shape),)
            nodes.append(Node(REGISTRY["reshape"], (len(nodes) - 1,), shape, node.type))
        else:
            nodes.append(Node(node.op, operands, node.attributes, node.type))
        places.append(len(nodes) - 1)
    outputs = tuple((name, places[index]) for name, index in program.outputs)
    return Program(tuple(nodes), tuple(places[index] for index in program.inputs), outputs)


def _order_before(node: Node, before: Node, nodes: list[Node]) -> tuple[int, ...] | None:
    """The order of the axes of what `before` reshapes; None where `node` cannot be moved there."""
    if node.op.name != "transpose" or before.op.name != "reshape":
        return None
    (perm,) = node.attributes
    assert isinstance(perm, Perm)
    inner = nodes[before.operands[0]].type.shape
    kept = [axis for axis, dim in enumerate(before.type.shape) if dim != 1]
    long = [axis for axis, dim in enumerate(inner) if dim != 1]
    if [before.type.shape[axis] for axis in kept] != [inner[axis] for axis in long]:
        return None
    places = dict(zip(kept, long, strict=True))
    ones = [axis for axis, dim in enumerate(inner) if dim == 1]
    return (*ones, *(places[axis] for axis in perm.order if axis in places))
