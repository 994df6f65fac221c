"""Operands that are computed otherwise than the loaded program does, by classes that merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from satura.rewrite.egraph.classes import ENode
from satura.rewrite.program.program import Program

Homes = Sequence[int | None]
"""The class of each node of a program; None where it is in none."""


class Loaded:
    """The nodes of a loaded program by what they are in the e-graph.

    Those that differ only in operands of one class are one e-node there.
    """

    def __init__(self, program: Program, homes: Homes) -> None:
        self.program = program
        self._nodes: dict[ENode, list[int]] = {}
        for index in range(len(program.nodes)):
            node = enode_of(program, homes, index)
            if node is not None and homes[index] is not None:
                self._nodes.setdefault(node, []).append(index)

    def otherwise(self, rewritten: Program, homes: Homes, index: int) -> list[tuple[int, int]]:
        """Operands of a node of `rewritten` that the loaded node has otherwise: as the positions of
        nodes, that in the loaded program behind that in `rewritten`.

        None are where a loaded node has all of them alike, and none that a rule made: what is said
        of these tells it.
        """
        operands = rewritten.nodes[index].operands
        alike = [self._same(rewritten, homes, operand) for operand in operands]
        found = [
            [
                (here, there)
                for here, same, there in zip(
                    operands, alike, self.program.nodes[each].operands, strict=True
                )
                if same and there not in same
            ]
            for each in self._same(rewritten, homes, index)
        ]
        return min(found, key=len, default=[])

    def _same(self, rewritten: Program, homes: Homes, index: int) -> Iterable[int]:
        node = enode_of(rewritten, homes, index)
        return [] if node is None else self._nodes.get(node, [])


def enode_of(program: Program, homes: Homes, index: int) -> ENode | None:
    """What a node is in the e-graph; None where an operand is in no class."""
    node = program.nodes[index]
    known = tuple(home for each in node.operands if (home := homes[each]) is not None)
    if len(known) < len(node.operands):
        return None
    return ENode(node.op.name, known, node.attributes)
