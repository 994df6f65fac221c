"""Names of e-classes and e-nodes for people: the program's nodes, and what was made from them."""

from __future__ import annotations

from collections.abc import Mapping

from satura.rewrite.egraph.classes import ENode
from satura.rewrite.egraph.decode import Origin
from satura.rewrite.egraph.saturate import Saturation
from satura.rewrite.program.program import Program
from satura.rewrite.program.text import application_text, attribute_text

_DEPTH = 2  # of terms that stand for classes without a node of the program


class Names:
    """Texts for the classes and e-nodes of a saturated program.

    `%12` is node 12 of the program; `elsewhere` names nodes of the program as another form of it
    does, such as the ONNX file that it was loaded from.
    """

    def __init__(
        self, program: Program, saturation: Saturation, elsewhere: Mapping[int, str]
    ) -> None:
        self.program = program
        self.saturation = saturation
        self.elsewhere = elsewhere
        self._homes: dict[int, int] = {}
        for index, number in enumerate(saturation.program_classes):
            if number is not None:
                self._homes.setdefault(number, index)
        self._nodes: dict[ENode, int] = {}
        for index, node in enumerate(program.nodes):
            number = saturation.program_classes[index]
            operands = [saturation.program_classes[operand] for operand in node.operands]
            reached = tuple(operand for operand in operands if operand is not None)
            if number is not None and len(reached) == len(operands):  # else it is hidden, or gone
                self._nodes.setdefault(ENode(node.op.name, reached, node.attributes), index)

    def line(self, number: int) -> int:
        """The number of the program's first node in a class; one past all where none is in it."""
        return self._homes.get(number, len(self.program.nodes))

    def origin(self, number: int, node: ENode) -> Origin:
        """Where an e-node of a class comes from."""
        place = self.saturation.classes.nodes[number].index(node)
        return self.saturation.origins[number][place]

    def maker(self, number: int, node: ENode) -> str | None:
        """The rule that made an e-node, None for a node of the program."""
        if node in self._nodes:
            return None
        return self.origin(number, node).rule

    def of_class(self, number: int) -> str:
        """A class: a node of the program in it, or the first e-node that was made in it."""
        if number in self._homes:
            return self.of_node(self._homes[number])
        return self.text(number, self._eldest(number))

    def of_node(self, index: int) -> str:
        """A node of the program, as it stands there."""
        node = self.program.nodes[index]
        named = f"  ({self.elsewhere[index]})" if index in self.elsewhere else ""
        return f"%{index} = {node} : {node.type}{named}"

    def text(self, number: int, node: ENode) -> str:
        """An e-node: the program's node, or its term with the rule and the round that made it."""
        if node in self._nodes:
            return self.of_node(self._nodes[node])
        origin = self.origin(number, node)
        return f"{self.term(number, node)}  (made by {origin.rule} in round {origin.round})"

    def term(self, number: int, node: ENode) -> str:
        """An e-node as a term over the program's nodes, with the node that it is equal to."""
        equal = f" = %{self._homes[number]}" if number in self._homes else ""
        return f"{self._term(node, _DEPTH)}{equal} : {self.saturation.classes.types[number]}"

    def _term(self, node: ENode, depth: int) -> str:
        operands = (self._operand(operand, depth - 1) for operand in node.operands)
        return application_text(node.op, operands, map(attribute_text, node.attributes))

    def _operand(self, number: int, depth: int) -> str:
        if number in self._homes:
            return f"%{self._homes[number]}"
        return self._term(self._eldest(number), depth) if depth else "…"

    def _eldest(self, number: int) -> ENode:
        """The e-node of a class that was made first."""
        nodes, origins = self.saturation.classes.nodes[number], self.saturation.origins[number]
        rounds = [origin.round for origin in origins]
        return nodes[rounds.index(min(rounds))]
