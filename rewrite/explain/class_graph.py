"""E-classes with what patterns ask about them: e-nodes by op, facts, scalars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.explain import facts
from satura.rewrite.language.terms import (
    Approximate,
    Known,
    Movable,
    Tensor,
    Unpadded,
    Untransposed,
)
from satura.rewrite.program.program import Program, varies
from satura.rewrite.types.attributes import BinaryFn, ReduceFn, UnaryFn
from satura.rewrite.types.constant import Constant, Scalar

FUNCTIONS = UnaryFn | BinaryFn | ReduceFn


class Graph:
    """E-classes with what patterns ask about them."""

    def __init__(self, classes: EClasses) -> None:
        self.classes = classes
        self._ops: dict[int, tuple[str, ...]] = {}
        self._standing: dict[type, frozenset[int]] = {}

    @staticmethod
    def of_program(program: Program) -> Graph:
        """The program itself: each node alone in its class."""
        nodes = ((ENode(n.op.name, n.operands, n.attributes),) for n in program.nodes)
        types = tuple(node.type for node in program.nodes)
        outputs = program.outputs
        return Graph(EClasses(tuple(nodes), types, program.known, program.inputs, outputs))

    @cached_property
    def by_op(self) -> dict[str, list[tuple[int, ENode]]]:
        """The e-nodes with their classes, by op and by op with its scalar function."""
        found: dict[str, list[tuple[int, ENode]]] = {}
        for number, nodes in enumerate(self.classes.nodes):
            for node in nodes:
                for name in {node.op, op_text(node)}:
                    found.setdefault(name, []).append((number, node))
        return found

    @cached_property
    def varying(self) -> list[bool]:
        """For each class whether it depends on an input, another source or a size."""
        varying = [False] * len(self.classes.nodes)
        changed = True
        while changed:
            changed = False
            for number, nodes in enumerate(self.classes.nodes):
                if not varying[number] and any(_varies(node, varying) for node in nodes):
                    varying[number] = changed = True
        return varying

    @cached_property
    def scalars(self) -> list[Scalar | None]:
        """The value of each class that is a 0-d constant."""
        return [next(_scalars(nodes), None) for nodes in self.classes.nodes]

    def standing_for(self, sort: type[Tensor]) -> frozenset[int]:
        """The classes that a variable of `sort`, which is one of facts, stands for."""
        if sort not in self._standing:
            self._standing[sort] = self._having(sort)
        return self._standing[sort]

    def _having(self, sort: type[Tensor]) -> frozenset[int]:
        if sort is Movable:
            return facts.movable_classes(self.classes, self.varying)
        if sort is Untransposed:
            return facts.untransposed_classes(self.classes, self.varying)
        if sort is Unpadded:
            return facts.unpadded_classes(self.classes, self.scalars)
        if sort is Approximate:
            return facts.approximate_classes(self.classes, self.varying)
        flags = self.classes.known if sort is Known else self.varying
        return frozenset(number for number, flag in enumerate(flags) if flag)

    def ops(self, number: int) -> tuple[str, ...]:
        """The ops of a class, each once."""
        if number not in self._ops:
            self._ops[number] = tuple(dict.fromkeys(map(op_text, self.classes.nodes[number])))
        return self._ops[number]

    def text_of(self, number: int) -> str:
        """The ops of a class, as a text."""
        return " or ".join(self.ops(number))


def _varies(node: ENode, varying: list[bool]) -> bool:
    behind = any(varying[operand] for operand in node.operands)
    return behind or varies(facts.op_of(node), node.attributes)


def _scalars(nodes: Iterable[ENode]) -> Iterator[Scalar]:
    for node in nodes:
        value = node.attributes[0] if node.op == "constant" else None
        if isinstance(value, Constant) and (scalar := value.scalar) is not None:
            yield scalar


def op_text(node: ENode) -> str:
    """The op of an e-node, with its scalar function."""
    functions = [value for value in node.attributes if isinstance(value, FUNCTIONS)]
    return " ".join([node.op, *map(str, functions)])
