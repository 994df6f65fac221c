"""Facts about e-classes for which the e-graph has tables, see `rewrite/egraph/tables.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from satura.rewrite.egraph.approximate import (
    FRACTIONAL,
    IRRATIONAL,
    LASTING,
    SCALING,
    copies_constants,
    is_relation_asked,
    lasting_operands,
    relations_of,
    sums_products,
)
from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.egraph.tables import keeps_axes
from satura.rewrite.ops import REGISTRY, USER_OPS, Kind
from satura.rewrite.ops.registry import Op
from satura.rewrite.types.constant import Scalar

Edge = tuple[int, int]


def op_of(node: ENode) -> Op:
    """The op of an e-node."""
    return (REGISTRY if node.op in REGISTRY else USER_OPS)[node.op]


def movable_classes(classes: EClasses, varying: Sequence[bool]) -> frozenset[int]:
    """The classes that are worth transposing, see `Movable`."""
    turned = _reachable(
        (node.operands[0] for _, node in _entries(classes) if node.op == "transpose"),
        (
            (home, operand)
            for home, node in _entries(classes)
            if keeps_axes(op_of(node))
            for operand in node.operands
        ),
    )
    return frozenset(home for home in turned if varying[home]) | {
        home
        for home, node in _entries(classes)
        if node.op in ("constant", "reshape", "transpose")
        and all(classes.known[operand] for operand in node.operands)
    }


def untransposed_classes(classes: EClasses, varying: Sequence[bool]) -> frozenset[int]:
    """The classes that vary and are not only transposes, see `Untransposed`."""
    start, edges = [], []
    for home, node in _entries(classes):
        if op_of(node).kind is Kind.ELEMENTWISE:
            edges += [(operand, home) for operand in node.operands]
        elif node.op != "transpose" and varying[home]:
            start.append(home)
    return _reachable(start, edges)


def unpadded_classes(classes: EClasses, scalars: Sequence[Scalar | None]) -> frozenset[int]:
    """The classes that are not only pads, see `Unpadded`."""
    start, edges = [], []
    pads = [(home, node.operands) for home, node in _entries(classes) if node.op == "pad"]
    values: dict[int, set[Scalar | None]] = {}
    for home, (_, value) in pads:
        values.setdefault(home, set()).add(scalars[value])
    for _, (inner, value) in pads:
        if scalars[value] is not None and values.get(inner, set()) - {scalars[value], None}:
            start.append(inner)
    for home, node in _entries(classes):
        if op_of(node).kind is Kind.ELEMENTWISE and len(node.operands) == 1:
            edges.append((node.operands[0], home))
        elif node.op != "pad":
            start.append(home)
    return _reachable(start, edges)


def approximate_classes(classes: EClasses, varying: Sequence[bool]) -> frozenset[int]:
    """The classes of rounded numbers, see `Approximate`."""
    nodes = list(_entries(classes))
    fractions = _reachable(
        (home for home, node in nodes if node.op == "constant" and _has(node, FRACTIONAL)),
        (
            (operand, home)
            for home, node in nodes
            if copies_constants(node.op)
            for operand in node.operands
        ),
    )
    start, edges = [], []
    for home, node in nodes:
        is_start = node.op == "unary" and _has(node, IRRATIONAL)
        is_start |= sums_products(node.op) and classes.types[home].dtype.is_float
        if node.op == "binary" and _has(node, SCALING):
            is_start |= not fractions.isdisjoint(node.operands)
        if is_start and varying[home]:
            start.append(home)
        if not is_relation_asked(node.op) or _has(node, LASTING):
            among = lasting_operands(node.op, len(node.operands))
            edges += [(node.operands[position], home) for position in among]
    return _reachable(start, edges)


def _has(node: ENode, relation: str) -> bool:
    return relation in relations_of(node.attributes[0])


def _entries(classes: EClasses) -> Iterable[tuple[int, ENode]]:
    return ((home, node) for home, nodes in enumerate(classes.nodes) for node in nodes)


def _reachable(start: Iterable[int], edges: Iterable[Edge]) -> frozenset[int]:
    """The classes of `start`, and all to which edges lead from them."""
    following: dict[int, list[int]] = {}
    for first, then in edges:
        following.setdefault(first, []).append(then)
    stack = list(start)
    reached = set(stack)
    while stack:
        for home in following.get(stack.pop(), ()):
            if home not in reached:
                reached.add(home)
                stack.append(home)
    return frozenset(reached)
