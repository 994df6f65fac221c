"""Folding: which classes are computed at compile time, how, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.choice_graph import NOISE
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.types.attributes import is_open

_MADE = 0.3  # what computing a byte costs of keeping it: what it is computed from is not kept
_MOVEMENTS = ("reshape", "transpose")


@dataclass(frozen=True)
class Folding:
    """Per class the e-node that computes it at compile time, None where it is not constant.

    `given[c]` is what a class costs for which nothing is dispatched: 0 for an input, the cost of
    folding and of keeping it for a constant; None for others.
    """

    nodes: tuple[ENode | None, ...]
    given: tuple[float | None, ...]


def fold(classes: EClasses, model: CostModel) -> Folding:
    """The cheapest way to compute each constant class, priced as a tree."""
    known = classes.known
    prices = [inf] * len(classes.nodes)
    nodes: list[ENode | None] = [None] * len(classes.nodes)
    users: list[dict[int, None]] = [{} for _ in classes.nodes]
    foldable: list[list[ENode]] = [[] for _ in classes.nodes]
    for cls, alternatives in enumerate(classes.nodes):
        for node in alternatives if known[cls] else ():
            for operand in node.operands:
                users[operand][cls] = None
            if all(map(known.__getitem__, node.operands)) and _is_foldable(node):
                foldable[cls].append(node)
    queue = [cls for cls, is_known in enumerate(known) if is_known]
    while queue:
        waiting: dict[int, None] = {}
        for cls in queue:
            kept = _MADE * classes.bytes[cls] * model.constant_byte
            for node in foldable[cls]:
                price = 0.0
                if node.operands:
                    price = model.constant + sum([prices[operand] for operand in node.operands])
                    if not _is_moved_on(node, nodes):
                        price += kept
                if price < prices[cls] * (1 - NOISE):
                    prices[cls], nodes[cls] = price, node
                    waiting.update(users[cls])
        queue = list(waiting)
    sizes = zip(prices, classes.bytes, strict=True)
    given = [None if price == inf else price + size * model.constant_byte for price, size in sizes]
    for cls in classes.inputs:
        given[cls] = 0.0
    return Folding(tuple(nodes), tuple(given))


def _is_foldable(node: ENode) -> bool:
    """Whether it can be computed from constants, whatever the sizes."""
    if not node.operands:
        return node.op == "constant"
    return node.op not in ("host", "item") and not is_open(node.attributes)


def _is_moved_on(node: ENode, nodes: Sequence[ENode | None]) -> bool:
    """Whether it moves what was just moved: a chain of movements is one copy."""
    before = nodes[node.operands[0]]
    return node.op in _MOVEMENTS and before is not None and before.op in _MOVEMENTS
