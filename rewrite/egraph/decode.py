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
Raw = tuple[str, Row, Row]  # table name; operand classes; attribute numbers
Entry = tuple[tuple[str, Row, Row], Raw]  # what it is ordered by, classes renumbered; the e-node


class Decoding:
    """What `egraph` has by now, with the classes that outputs and inputs reach in order."""

    def __init__(
        self,
        program: Program,
        egraph: EGraph,
        tables: Mapping[str, NodeTable],
        interner: Interner,
    ) -> None:
        self.program = program
        self.tables = tables
        names = [f"{kind}_{name}" for kind in ("n", "born", "cause") for name in tables]
        rows, hidden_rows = egraph.tables([*names, "node", "type_of", "known"])
        self.rows = rows
        self.hidden = _by_class(hidden_rows, tables)
        self.homes = {row[0]: row[1] for row in rows["node"]}
        nodes = _by_class(rows, tables)
        outputs = [self.homes[index] for index in program.output_nodes]
        inputs = [self.homes[index] for index in program.inputs]
        self.order = _order(nodes, self.hidden, {*outputs, *inputs})
        self.numbers = {old: new for new, old in enumerate(self.order)}
        self.values = _Values(interner)
        self.entries = [self.in_order(nodes[old]) for old in self.order]
        types = {row[0]: interner[row[1]] for row in rows["type_of"]}
        known = {row[0] for row in rows["known"]}
        self.classes = EClasses(
            nodes=tuple(tuple(map(self.node, entries)) for entries in self.entries),
            types=tuple(_type(types[old]) for old in self.order),
            known=tuple(old in known for old in self.order),
            inputs=tuple(self.numbers[old] for old in inputs),
            outputs=tuple(
                (name, self.numbers[old])
                for (name, _), old in zip(program.outputs, outputs, strict=True)
            ),
        )

    def in_order(self, raws: list[Raw]) -> list[Entry]:
        """The e-nodes of one class in order."""
        number, tables = self.numbers.__getitem__, self.tables
        return sorted(
            [((tables[raw[0]].op.name, tuple(map(number, raw[1])), raw[2]), raw) for raw in raws]
        )

    def node(self, entry: Entry) -> ENode:
        op, operands, attributes = entry[0]
        return ENode(op, operands, self.values[attributes])

    def decoded(self, runs: Runs) -> Decoded:
        """The classes and all about them; `runs` says what the classes of `born` rows stand for."""
        born, cause = self.by_node("born"), self.by_node("cause")
        numbers, homes = self.numbers, self.homes

        def origin(old: int, entry: Entry) -> Origin:
            rule, round_ = runs[born[entry[1]]]
            caused = None if rule is None else numbers.get(cause.get(entry[1], old))
            return Origin(rule, round_, caused)

        def hidden(old: int) -> tuple[tuple[ENode, Origin], ...]:
            if old not in self.hidden:
                return ()
            raws = [raw for raw in self.hidden.get(old, ()) if numbers.keys() >= set(raw[1])]
            return tuple((self.node(entry), origin(old, entry)) for entry in self.in_order(raws))

        return Decoded(
            self.classes,
            origins=tuple(
                tuple(origin(old, entry) for entry in entries)
                for old, entries in zip(self.order, self.entries, strict=True)
            ),
            hidden=tuple(map(hidden, self.order)),
            program_classes=tuple(
                numbers.get(homes[index]) for index in range(len(self.program.nodes))
            ),
            made=Counter(runs[run][0] for run in born.values()),
        )

    def by_node(self, kind: str) -> dict[Raw, int]:
        """What the tables of this kind say of e-nodes."""
        return {
            (name, row[: table.arity], row[table.arity : -1]): row[-1]
            for name, table in self.tables.items()
            for row in self.rows[f"{kind}_{name}"]
        }


def _by_class(
    rows: Mapping[str, list[Row]], tables: Mapping[str, NodeTable]
) -> dict[int, list[Raw]]:
    """The rows of node tables by the class of the node."""
    nodes: dict[int, list[Raw]] = {}
    for name, table in tables.items():
        arity = table.arity
        for row in rows[f"n_{name}"]:
            nodes.setdefault(row[-1], []).append((name, row[:arity], row[arity:-1]))
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


def _order(nodes: dict[int, list[Raw]], hidden: dict[int, list[Raw]], roots: set[int]) -> list[int]:
    """The classes that `roots` reach, so that each has a node over earlier ones.

    What hid the nodes of a class may be made from that class alone, as a slice of its pad is. Then
    no term is left of it, and they move from `hidden` back to `nodes`.
    """
    while True:
        reached, order = _finite(nodes, roots)
        endless = reached - set(order)
        if not endless:
            return order
        back = {home: hidden.pop(home) for home in endless if home in hidden}
        assert back, "a class of the e-graph has no finite term"
        for home, raws in back.items():
            nodes[home] = [*nodes.get(home, ()), *raws]


def _finite(nodes: Mapping[int, list[Raw]], roots: set[int]) -> tuple[set[int], list[int]]:
    """The classes that `roots` reach, and those of them that have a finite term, in order.

    A class comes at the depth of its shallowest term; within a depth by the least such node. Two
    classes never have a node in common, so the order depends on nothing but the e-graph.
    """
    reached = set(roots)
    stack = list(roots)
    entries: list[tuple[int, Raw]] = []
    users: dict[int, list[int]] = {}
    missing: list[int] = []
    while stack:
        home = stack.pop()
        for raw in nodes.get(home, ()):
            operands = raw[1] if len(raw[1]) < 2 else tuple(set(raw[1]))
            for operand in operands:
                users.setdefault(operand, []).append(len(entries))
                if operand not in reached:
                    reached.add(operand)
                    stack.append(operand)
            entries.append((home, raw))
            missing.append(len(operands))
    ready = [index for index, count in enumerate(missing) if count == 0]
    numbers: dict[int, int] = {}
    while ready:
        least: dict[int, Raw] = {}
        for index in ready:
            home, (name, row, attributes) = entries[index]
            if home not in numbers:
                key = (name, tuple(map(numbers.__getitem__, row)), attributes)
                if home not in least or key < least[home]:
                    least[home] = key
        ready = []
        for home in sorted(least, key=least.__getitem__):
            numbers[home] = len(numbers)
            for index in users.get(home, ()):
                missing[index] -= 1
                if missing[index] == 0:
                    ready.append(index)
    return reached, list(numbers)
