"""Which indices are those of elements whatever data says, so that a kernel need not ask."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.ops import Kind
from satura.rewrite.program.integer_bounds import are_inside
from satura.rewrite.program.program import Node

_PARTS = ("binary", "cast")


def is_within(nodes: Sequence[Node], indices: int, extent: int) -> bool:
    """Whether indices are known to be those of elements, counted from the start.

    They are where they are constants, or places that are made of indices that were checked; of
    others nothing is asked, as the answer would make a class of sizes.
    """
    is_constant = nodes[indices].op.name == "constant"
    if not is_constant and not _are_made_of_checked(nodes, indices):
        return False
    return are_inside(nodes, indices, extent)


def _are_made_of_checked(nodes: Sequence[Node], indices: int) -> bool:
    stack, seen = [indices], set[int]()
    while stack:
        index = stack.pop()
        node = nodes[index]
        if node.op.name == "gather":
            if nodes[node.operands[0]].op.name in ("iota", "constant"):
                return True
        elif index not in seen and (node.op.name in _PARTS or node.op.kind is Kind.LAYOUT):
            seen.add(index)
            stack += node.operands
    return False
