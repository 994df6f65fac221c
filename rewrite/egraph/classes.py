"""What saturation hands to extraction: e-classes and their e-nodes as plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from satura.rewrite.ops.registry import size_of
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.tensor_type import TensorType, bytes_of

_T = TypeVar("_T")


@dataclass(frozen=True)
class ENode:
    """One op over e-classes; `operands` are class indices."""

    op: str
    operands: tuple[int, ...]
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True)
class EClasses:
    """An e-graph: per class its e-nodes and its type, and the classes of inputs and outputs.

    Classes are numbered from 0 without gaps; e-nodes name operands by these numbers. The order of
    classes and of e-nodes does not depend on hash seeds. `inputs` are in call order. `known[c]`
    says whether class c has an e-node that is computed from constants alone. `sizes` are typical
    sizes of symbols, for costs; others count as 64.
    """

    nodes: tuple[tuple[ENode, ...], ...]
    types: tuple[TensorType, ...]
    known: tuple[bool, ...]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str, int], ...]
    sizes: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def sized(self) -> tuple[TensorType, ...]:
        """The type of each class at typical sizes."""
        return of_each(self.types, lambda type_: type_.typical(self.sizes))

    @cached_property
    def elements(self) -> tuple[float, ...]:
        """How many elements each class has, at typical sizes."""
        return of_each(self.sized, size_of)

    @cached_property
    def amounts(self) -> dict[tuple[object, ...], tuple[str, float]]:
        """What extraction has found out about e-nodes."""
        return {}

    @cached_property
    def homes(self) -> Mapping[ENode, int]:
        """The class of each e-node."""
        return {node: number for number, nodes in enumerate(self.nodes) for node in nodes}

    @cached_property
    def bytes(self) -> tuple[float, ...]:
        """Size of each class's tensor in bytes, at typical sizes."""
        return of_each(self.sized, bytes_of)

    @property
    def node_count(self) -> int:
        """E-nodes in use: not the hidden ones, nor those that no output reaches."""
        return sum(map(len, self.nodes))


def of_each(types: tuple[TensorType, ...], function: Callable[[TensorType], _T]) -> tuple[_T, ...]:
    """What a function says of each type; it is called once for each that there is."""
    found = {type_: function(type_) for type_ in dict.fromkeys(types)}
    return tuple(map(found.__getitem__, types))


def find_class(classes: EClasses, program: Program) -> list[int | None]:
    """For each node of `program` the class that it is in, None where it is in none.

    Nodes are looked up, never added; inputs correspond by name.
    """
    homes: list[int | None] = []
    for node in program.nodes:
        operands = [homes[operand] for operand in node.operands]
        known = tuple(operand for operand in operands if operand is not None)
        if len(known) == len(operands):
            homes.append(classes.homes.get(ENode(node.op.name, known, node.attributes)))
        else:
            homes.append(None)
    return homes
