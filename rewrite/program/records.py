"""Nodes of a program as `satura show` prints them."""

from __future__ import annotations

from dataclasses import dataclass

from satura.rewrite.errors import CallError
from satura.rewrite.program.program import Program
from satura.rewrite.program.text import application_text, attribute_text


@dataclass(frozen=True)
class NodeRecord:
    """A node in plain values; as text it is its line of the program."""

    node: int
    op: str
    operands: tuple[int, ...]
    attributes: tuple[str, ...]
    type: str

    def concerns(self, node: int) -> bool:
        """Whether this is that node."""
        return self.node == node

    def __str__(self) -> str:
        operands = (f"%{operand}" for operand in self.operands)
        applied = application_text(self.op, operands, self.attributes)
        return f"%{self.node} = {applied} : {self.type}"


def check_node(program: Program, index: int) -> None:
    """Raise CallError for a number that no node of the program has."""
    if not 0 <= index < len(program.nodes):
        raise CallError(f"there is no node %{index}; the last is %{len(program.nodes) - 1}")


def node_record(program: Program, index: int) -> NodeRecord:
    """Node `index` of `program`."""
    node = program.nodes[index]
    attributes = tuple(map(attribute_text, node.attributes))
    return NodeRecord(index, node.op.name, node.operands, attributes, str(node.type))


def node_records(program: Program) -> tuple[NodeRecord, ...]:
    """The nodes of `program` in order."""
    return tuple(node_record(program, index) for index in range(len(program.nodes)))
