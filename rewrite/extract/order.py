"""Order: which e-nodes read a class, and which classes come after which."""

from __future__ import annotations

from satura.rewrite.egraph.classes import EClasses


def users_of(classes: EClasses) -> list[list[tuple[int, int]]]:
    """The e-nodes that have each other class as an operand: their classes, and positions there."""
    users: list[list[tuple[int, int]]] = [[] for _ in classes.nodes]
    for cls, nodes in enumerate(classes.nodes):
        for position, node in enumerate(nodes):
            if cls not in node.operands:
                for operand in dict.fromkeys(node.operands):
                    users[operand].append((cls, position))
    return users


def by_depth(classes: EClasses) -> list[int]:
    """Classes so that each comes after the operands of its shallowest e-node."""
    waiting: list[list[tuple[int, int]]] = [[] for _ in classes.nodes]
    missing: dict[tuple[int, int], int] = {}
    ready: list[int] = []
    placed = [False] * len(classes.nodes)
    for cls, nodes in enumerate(classes.nodes):
        for position, node in enumerate(nodes):
            operands = dict.fromkeys(node.operands)
            missing[cls, position] = len(operands)
            for operand in operands:
                waiting[operand].append((cls, position))
            if not operands and not placed[cls]:
                placed[cls] = True
                ready.append(cls)
    for cls in ready:
        for key in waiting[cls]:
            missing[key] -= 1
            if not missing[key] and not placed[key[0]]:
                placed[key[0]] = True
                ready.append(key[0])
    return ready
