"""Where the nodes of a dispatch have the elements that its anchor computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Node
from satura.rewrite.types.index_map import Index, Ranges, push


def index_paths(
    nodes: Sequence[Node],
    inside: Iterable[int],
    start: Mapping[int, Index],
    ranges: Ranges,
    full: Index | None = None,
) -> dict[int, Index]:
    """The index at which every node `inside` that depends on the anchor has its element.

    `start` says it for the anchors. A broadcast leads back to the space's own index, `full`. A node
    that loses elements has no index.
    """
    paths = dict(start)
    for index in inside:
        node = nodes[index]
        before = next((operand for operand in node.operands if operand in paths), None)
        if index in paths or before is None:
            continue
        if node.op.kind is Kind.ELEMENTWISE:
            paths[index] = paths[before]
        elif node.op.name == "broadcast" and full is not None:
            paths[index] = full
        elif node.op.name in ("transpose", "reshape"):
            source = nodes[before].type.shape
            paths[index] = push(
                node.op.name, node.attributes, paths[before], node.type.shape, source, ranges
            )
    return paths
