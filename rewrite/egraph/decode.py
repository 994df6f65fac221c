"""The e-graph back as plain Python values, numbered the same way in every process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.egraph.engine import EGraph, Row
from satura.rewrite.egraph.interner import Interner
from satura.rewrite.egraph.tables import NodeTable
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.tensor_type import TensorType


@dataclass(frozen=True)
class Origin:
    """Which rule made an e-node first, in which round, and the class that its left side matched.

    `rule` is None for a node of the program.
    """

    rule: str | None
    round: int
    cause: int | None


@dataclass(frozen=True)
class Decoded:
    """The classes that outputs and inputs reach, and the origin of each of their e-nodes.

    `hidden` has per class the hidden e-nodes whose operands are such classes.
    `program_classes[i]` is the class of the program's node i, None where outputs do not reach it.
    `made` counts the e-nodes that each rule made first, reachable or not.
    """

    classes: EClasses
    origins: tuple[tuple[Origin, ...], ...]
    hidden: tuple[tuple[tuple[ENode, Origin], ...], ...]
    program_classes: tuple[int | None, ...]
    made: Mapping[str | None, int]


Runs = Mapping[int, tuple[str | None, int]]
Raw = tuple[str, Row]  # table name; operand classes, then attribute numbers


def decode(
    program: Program,
    egraph: EGraph,
    tables: Mapping[str, NodeTable],
    interner: Interner,
    runs: Runs,
) -> Decoded:
    """Everything that `egraph` has; `runs` says what the classes of `born` rows stand for."""
    names = [f"{kind}_{name}" for kind in ("n", "born", "cause") for name in tables]
    rows, hidden_rows = egraph.tables([*names, "node", "type_of", "known"])
    nodes = _by_class(rows, tables)
    hidden = _by_class(hidden_rows, tables)
    homes = {row[0]: row[1] for row in rows["node"]}
    outputs = [homes[index] for index in program.output_nodes]
    inputs = [homes[index] for index in program.inputs]
    order = _order(nodes, tables, {*outputs, *inputs})
    numbers = {old: new for new, old in enumerate(order)}
    types = {row[0]: interner[row[1]] for row in rows["type_of"]}
    known = {row[0] for row in rows["known"]}
    born = {(name, row[:-1]): row[-1] for name in tables for row in rows[f"born_{name}"]}
    cause = {(name, row[:-1]): row[-1] for name in tables for row in rows[f"cause_{name}"]}

    values = _Values(interner)

    def entries_of(old: int, raws: list[Raw]) -> tuple[tuple[ENode, Origin], ...]:
        """E-nodes of one class in order, with their origins."""
        entries = []
        for raw in raws:
            name, row = raw
            arity = tables[name].arity
            operands = tuple(numbers[operand] for operand in row[:arity])
            rule, round_ = runs[born[raw]]
            entries.append((tables[name].op.name, operands, row[arity:], rule, round_, raw))
        entries.sort(key=lambda entry: entry[:3])
        return tuple(
            (
                ENode(op, operands, values[row]),
                Origin(rule, round_, None if rule is None else numbers.get(cause.get(raw, old))),
            )
            for op, operands, row, rule, round_, raw in entries
        )

    def is_reached(raw: Raw) -> bool:
        name, row = raw
        return all(operand in numbers for operand in row[: tables[name].arity])

    found = [entries_of(old, nodes[old]) for old in order]
    classes = EClasses(
        nodes=tuple(tuple(node for node, _ in entries) for entries in found),
        types=tuple(_type(types[old]) for old in order),
        known=tuple(old in known for old in order),
        inputs=tuple(numbers[old] for old in inputs),
        outputs=tuple(
            (name, numbers[old]) for (name, _), old in zip(program.outputs, outputs, strict=True)
        ),
    )
    program_classes = tuple(numbers.get(homes[index]) for index in range(len(program.nodes)))
    made = Counter(runs[run][0] for run in born.values())
    return Decoded(
        classes,
        origins=tuple(tuple(origin for _, origin in entries) for entries in found),
        hidden=tuple(entries_of(old, [*filter(is_reached, hidden.get(old, []))]) for old in order),
        program_classes=program_classes,
        made=made,
    )


def _by_class(
    rows: Mapping[str, list[Row]], tables: Mapping[str, NodeTable]
) -> dict[int, list[Raw]]:
    """The rows of node tables by the class of the node."""
    nodes: dict[int, list[Raw]] = {}
    for name in tables:
        for row in rows[f"n_{name}"]:
            nodes.setdefault(row[-1], []).append((name, row[:-1]))
    return nodes


class _Values(dict[Row, tuple[Attribute, ...]]):
    """Attribute values by their numbers."""

    def __init__(self, interner: Interner) -> None:
        super().__init__()
        self._interner = interner

    def __missing__(self, row: Row) -> tuple[Attribute, ...]:
        found = (self._interner[number] for number in row)
        self[row] = values = tuple(value for value in found if isinstance(value, Attribute))
        return values


def _type(value: object) -> TensorType:
    assert isinstance(value, TensorType)
    return value


def _order(
    nodes: Mapping[int, list[Raw]], tables: Mapping[str, NodeTable], roots: set[int]
) -> list[int]:
    """The classes that `roots` reach, so that each has a node over earlier ones.

    A class comes at the depth of its shallowest term; within a depth by the least such node. Two
    classes never have a node in common, so the order depends on nothing but the e-graph.
    """
    reached = set(roots)
    stack = list(roots)
    while stack:
        for name, row in nodes[stack.pop()]:
            for operand in row[: tables[name].arity]:
                if operand not in reached:
                    reached.add(operand)
                    stack.append(operand)
    entries = [(home, raw) for home in reached for raw in nodes[home]]
    users: dict[int, list[int]] = {}
    missing: list[int] = []
    for index, (_, (name, row)) in enumerate(entries):
        operands = set(row[: tables[name].arity])
        missing.append(len(operands))
        for operand in operands:
            users.setdefault(operand, []).append(index)
    ready = [index for index, count in enumerate(missing) if count == 0]
    numbers: dict[int, int] = {}
    while ready:
        least: dict[int, tuple[str, Row, Row]] = {}
        for index in ready:
            home, (name, row) = entries[index]
            if home not in numbers:
                arity = tables[name].arity
                terms = tuple(numbers[operand] for operand in row[:arity])
                key = (name, terms, row[arity:])
                least[home] = min(key, least.get(home, key))
        ready = []
        for home in sorted(least, key=least.__getitem__):
            numbers[home] = len(numbers)
            for index in users.get(home, ()):
                missing[index] -= 1
                if missing[index] == 0:
                    ready.append(index)
    return list(numbers)
