"""Classes of an e-graph as `satura show` prints them."""

from __future__ import annotations

from dataclasses import dataclass

from satura.rewrite.egraph.saturate import Saturation
from satura.rewrite.program.text import application_text, attribute_text, quote


@dataclass(frozen=True)
class ENodeRecord:
    """An e-node over classes, and where it comes from.

    `rule` made it in `round`, having matched class `cause`; a node of the program has neither.
    """

    op: str
    operands: tuple[int, ...]
    attributes: tuple[str, ...]
    rule: str | None
    round: int
    cause: int | None

    def __str__(self) -> str:
        operands = (f"c{operand}" for operand in self.operands)
        applied = application_text(self.op, operands, self.attributes)
        if self.rule is None:
            return f"{applied}  # of the program"
        matched = "" if self.cause is None else f", matched c{self.cause}"
        return f"{applied}  # {self.rule}, round {self.round}{matched}"


@dataclass(frozen=True)
class ClassRecord:
    """A class with its e-nodes; `program` are the nodes of the program that stand in it."""

    number: int
    type: str
    program: tuple[int, ...]
    outputs: tuple[str, ...]
    nodes: tuple[ENodeRecord, ...]

    def concerns(self, node: int) -> bool:
        """Whether that node of the program stands in this class."""
        return node in self.program

    def __str__(self) -> str:
        names = [f"%{node}" for node in self.program]
        names += [f"output {quote(name)}" for name in self.outputs]
        equal = "".join(f" = {name}" for name in names)
        return "\n".join([f"c{self.number}{equal} : {self.type}", *(f"  {n}" for n in self.nodes)])


def class_records(saturation: Saturation) -> tuple[ClassRecord, ...]:
    """The classes that inputs and outputs reach, by number."""
    classes = saturation.classes
    program: list[list[int]] = [[] for _ in classes.nodes]
    for index, home in enumerate(saturation.program_classes):
        if home is not None:
            program[home].append(index)
    outputs: list[list[str]] = [[] for _ in classes.nodes]
    for name, home in classes.outputs:
        outputs[home].append(name)
    return tuple(
        ClassRecord(
            number,
            str(classes.types[number]),
            tuple(program[number]),
            tuple(outputs[number]),
            tuple(
                ENodeRecord(
                    node.op,
                    node.operands,
                    tuple(map(attribute_text, node.attributes)),
                    origin.rule,
                    origin.round,
                    origin.cause,
                )
                for node, origin in zip(nodes, saturation.origins[number], strict=True)
            ),
        )
        for number, nodes in enumerate(classes.nodes)
    )
