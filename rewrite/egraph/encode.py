"""A program into the e-graph: rows of numbers go in as tables, joins build the nodes from them.

Nodes are never written as nested terms, so depth does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping

from satura.rewrite.egraph.engine import EGraph, Row
from satura.rewrite.egraph.interner import Interner
from satura.rewrite.egraph.tables import NodeTable
from satura.rewrite.program.program import Node, Program


def table_name(node: Node) -> str:
    """Name of the node table that `node` belongs to."""
    return NodeTable(node.op, len(node.operands)).name


def load(
    program: Program, egraph: EGraph, tables: Mapping[str, NodeTable], interner: Interner
) -> dict[str, set[Row]]:
    """Add every node of `program`; afterwards `(node i)` is the class of node i.

    Types and known facts go in along with the nodes. Returns the rows of type demands that this
    answers: per node table the demand's columns and the type's number.
    """
    types = [interner.number(node.type) for node in program.nodes]
    rows: dict[str, list[Row]] = {}
    answered: dict[str, set[Row]] = {}
    for index, node in enumerate(program.nodes):
        name = table_name(node)
        attributes = tuple(interner.number(value) for value in node.attributes)
        rows.setdefault(name, []).append((index, *node.operands, *attributes, types[index]))
        if node.op.name != "item":
            inputs = tuple(types[operand] for operand in node.operands)
            answered.setdefault(name, set()).add((*inputs, *attributes, types[index]))
    egraph.define(_KNOWN + "".join(_loader(tables[name]) for name in rows))
    egraph.insert("row_known", [(i,) for i, known in enumerate(program.known) if known])
    egraph.insert("row_varying", [(i,) for i, known in enumerate(program.known) if not known])
    for name, entries in rows.items():
        egraph.insert(f"row_{name}", entries)
    egraph.run("load", saturate=True)
    return answered


_KNOWN = """
(relation row_known (i64))
(relation row_varying (i64))
(rule ((row_known n) (= e (node n))) ((known e)) :ruleset load)
(rule ((row_varying n) (= e (node n))) ((varying e)) :ruleset load)
"""


def _loader(table: NodeTable) -> str:
    name, width = table.name, table.width + 2
    columns = " ".join([f"i{index}" for index in range(table.arity)] + table.attributes)
    operands = " ".join(f"(= {x} (node i{index}))" for index, x in enumerate(table.operands))
    return f"""
(relation row_{name} ({" ".join(["i64"] * width)}))
(rule ((row_{name} n {columns} t) {operands})
      ((let e (n_{name} {table.arguments})) (set (node n) e) (type_of e t)
       (set (born_{name} {table.arguments}) (now_load))) :ruleset load)
"""
