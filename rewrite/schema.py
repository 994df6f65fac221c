"""The tables of the e-graph, as egglog text.

Per op one constructor `n_op(operands…, attributes…)`, whose attributes are interned numbers. Facts
about classes: `type_of`, `known` (computed from constants alone, of static shape), `varying`
(depends on an input, on another source or on a symbolic size), `scalar_of` (a 0-d constant). What
has to be computed in Python stands in pairs of tables: matches put their arguments into `want_…`,
Python answers with rows of `ok_…`, or does not answer.

Provenance: `born_op` says which run of which rule made a node first (the class that `(now_…)`
has during that run), `cause_op` for which matched class, where that is not the node's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from satura.rewrite.ops import REGISTRY
from satura.rewrite.ops.registry import Op


@dataclass(frozen=True)
class NodeTable:
    """The constructor of an op; ops of any arity have one per arity that occurs."""

    op: Op
    arity: int

    @property
    def name(self) -> str:
        return f"{self.op.name}_{self.arity}" if self.op.arity is None else self.op.name

    @property
    def operands(self) -> list[str]:
        return [f"x{index}" for index in range(self.arity)]

    @property
    def attributes(self) -> list[str]:
        return [f"a{index}" for index in range(len(self.op.attributes))]

    @property
    def arguments(self) -> str:
        return " ".join([*self.operands, *self.attributes])

    @property
    def columns(self) -> str:
        return " ".join(["T"] * self.arity + ["i64"] * len(self.op.attributes))

    @property
    def width(self) -> int:
        """Columns of a table of type demands: an operand's type or an attribute each."""
        return self.arity + len(self.op.attributes)


def node_tables(host_arities: Iterable[int]) -> dict[str, NodeTable]:
    """Node tables by name: every op, and host nodes of the given arities."""
    tables = [NodeTable(op, op.arity) for op in REGISTRY.values() if op.arity is not None]
    tables += [NodeTable(REGISTRY["host"], arity) for arity in sorted(set(host_arities))]
    return {table.name: table for table in tables}


BASE = """
(sort T)
(constructor now_load () T)
(function node (i64) T :merge old)
(relation type_of (T i64))
(relation conflict (i64 i64))
(relation known (T))
(relation varying (T))
(relation static_type (i64))
(relation symbolic_type (i64))
(function scalar_of (T) i64 :merge (min old new))
(relation scalar_value (i64 i64))
(ruleset load)
(ruleset facts)
(ruleset match)
(ruleset demand)
(rule ((type_of x a) (type_of x b) (< a b)) ((conflict a b)) :ruleset facts)
(rule ((type_of x t) (symbolic_type t)) ((varying x)) :ruleset facts)
"""


def schema(tables: Iterable[NodeTable]) -> str:
    """Text that declares all tables and the rules for facts."""
    return BASE + "".join(map(_declare, tables))


def _declare(table: NodeTable) -> str:
    name, columns, arguments = table.name, table.columns, table.arguments
    match = f"(= e (n_{name} {arguments}))"
    text = f"""
(constructor n_{name} ({columns}) T)
(function born_{name} ({columns}) T :merge old)
(function cause_{name} ({columns}) T :merge old)
"""
    if table.arity == 0 and table.op.name != "constant":
        text += f"(rule ({match}) ((varying e)) :ruleset facts)\n"
    for x in table.operands:
        text += f"(rule ({match} (varying {x})) ((varying e)) :ruleset facts)\n"
    if table.op.name == "item":
        # The type of a result stands in the host call, not in the type of its first result.
        return text + _typing("item", "i64 i64", "")
    types = " ".join(f"(type_of {x} t{index})" for index, x in enumerate(table.operands))
    wanted = " ".join([f"t{index}" for index in range(table.arity)] + table.attributes)
    sorts = " ".join(["i64"] * table.width)
    text += _typing(
        name, sorts, f"(rule ({match} {types}) ((typing_{name} e {wanted})) :ruleset facts)"
    )
    if table.op.name == "host":
        return text + (
            f"(rule ((= e (n_item h i)) (= h (n_{name} {arguments}))) ((typing_item e a0 i))"
            " :ruleset facts)\n"
        )
    if table.op.name == "constant":
        return text + (
            f"(rule ({match}) ((known e)) :ruleset facts)\n"
            f"(rule ({match} (scalar_value a0 s)) ((set (scalar_of e) s)) :ruleset facts)\n"
        )
    if table.arity:
        known = " ".join(f"(known {x})" for x in table.operands)
        return text + (
            f"(rule ({known} {match} (type_of e t) (static_type t)) ((known e)) :ruleset facts)\n"
        )
    return text


def clearing(want: str, width: int) -> str:
    """A ruleset `clear_…` that empties a table of demands."""
    columns = " ".join(f"c{index}" for index in range(width))
    return (
        f"(ruleset clear_{want})\n"
        f"(rule (({want} {columns})) ((delete ({want} {columns}))) :ruleset clear_{want})"
    )


def _typing(name: str, sorts: str, rule: str) -> str:
    """Demand tables for the types of an op's nodes.

    `typing_…` has a node's class and what its type follows from. Without it, the join of node,
    operands' types and answer would be a ring, see joins.
    """
    columns = " ".join(f"c{index}" for index in range(len(sorts.split())))
    return f"""
(relation typing_{name} (T {sorts}))
(relation want_type_{name} ({sorts}))
(relation ok_type_{name} ({sorts} i64))
{clearing(f"want_type_{name}", len(sorts.split()))}
{rule}
(rule ((typing_{name} e {columns})) ((want_type_{name} {columns})) :ruleset facts)
(rule ((typing_{name} e {columns}) (ok_type_{name} {columns} t)) ((type_of e t)) :ruleset facts)
"""
