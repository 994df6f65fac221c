"""What nodes of constants alone are, where that takes little memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from satura.rewrite.ops.registry import Kind
from satura.rewrite.program.memory import tensor_bytes
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import is_open
from satura.rewrite.types.tensor_type import Array

MOST_BYTES = 1 << 24
"""What they and all behind them may take together."""


def known_arrays(nodes: Sequence[Node], wanted: Sequence[int]) -> list[Array] | None:
    """The values of the `wanted` nodes; None where one is not of constants alone, or is computed
    by code of a user, or more bytes than are worth it are behind them."""
    behind: set[int] = set()
    pending, size = [*wanted], 0
    while pending:
        index = pending.pop()
        if index in behind:
            continue
        node = nodes[index]
        if not _is_known(node):
            return None
        size += tensor_bytes(node.type)
        if size > MOST_BYTES:
            return None
        behind.add(index)
        pending += node.operands
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for index in sorted(behind):
            node = nodes[index]
            operands = [values[x] for x in node.operands]
            made = node.op.name != "constant"
            array = node.op.reference(*operands, *node.attributes) if made else node.constant.array
            values[index] = np.asarray(array)
    return [values[index] for index in wanted]


def _is_known(node: Node) -> bool:
    """Whether the node is a constant, or what the operands of a node without sizes decide."""
    if node.op.kind is Kind.SOURCE:
        return node.op.name == "constant"
    is_plain = node.op.kind is not Kind.HOST and node.op.user is None
    return is_plain and not node.type.symbols and not is_open(node.attributes)
