"""Which indices are those of elements whatever data says, so that a kernel need not ask."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Axis, BinaryFn, Shape
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType

_DEPTH = 64  # nodes behind one another that are looked at


def is_within(nodes: Sequence[Node], indices: int, extent: int) -> bool:
    """Whether indices are known to be those of elements, counted from the start.

    They are where they are constants, or places that are made of indices that were checked; of
    others nothing is asked, as the answer would make a class of sizes.
    """
    node = nodes[indices]
    if node.op.name != "constant" and not _is_made_of_checked(nodes, indices, _DEPTH):
        return False
    top = _top(nodes, indices, _DEPTH)
    return top is not None and top < extent


def _is_made_of_checked(nodes: Sequence[Node], index: int, depth: int) -> bool:
    node = nodes[index]
    if node.op.name == "gather":
        return nodes[node.operands[0]].op.name in ("iota", "constant")
    is_part = node.op.name in ("binary", "cast") or node.op.kind is Kind.LAYOUT
    return bool(depth and is_part) and any(
        _is_made_of_checked(nodes, operand, depth - 1) for operand in node.operands
    )


def _top(nodes: Sequence[Node], index: int, depth: int) -> int | None:
    """The largest that an integer may be which is not negative, if that is known."""
    node = nodes[index]
    name = node.op.name
    if node.type.dtype not in (DType.I32, DType.I64) or not depth:
        return None
    if name == "constant" and node.constant.size:
        array = node.constant.array
        return int(array.max()) if array.min() >= 0 else None
    if name == "iota":
        axis = node.attributes[1]
        assert isinstance(axis, Axis)
        return static(node.type.shape[axis.index]) - 1
    if name == "extent":
        dim = node.attributes[0]
        assert isinstance(dim, Shape)
        return static(dim.dims[0])
    if name == "binary" and node.type.dtype is DType.I64:
        function = node.attributes[0]
        assert isinstance(function, BinaryFn)
        first, second = (_top(nodes, operand, depth - 1) for operand in node.operands)
        if first is None or second is None or function.name not in ("add", "mul"):
            return None
        return first + second if function.name == "add" else first * second
    is_moved = name in ("reshape", "transpose", "broadcast", "slice", "gather")
    is_wider = name == "cast" and node.type.dtype is DType.I64
    return _top(nodes, node.operands[0], depth - 1) if is_moved or is_wider else None
