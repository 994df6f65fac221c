"""A program into the e-graph: rows of numbers go in as tables, rules build the nodes from them.

Nodes are never written as nested terms, so depth does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping

from satura.rewrite.egraph.engine import EGraph, Row
from satura.rewrite.egraph.interner import Interner
from satura.rewrite.egraph.tables import KNOWN, VARYING, NodeTable, answers_table
from satura.rewrite.program.program import Node, Program


def table_name(node: Node) -> str:
    """Name of the node table that `node` belongs to."""
    return node.op.name if node.op.arity is not None else f"{node.op.name}_{len(node.operands)}"


def load(
    program: Program, egraph: EGraph, tables: Mapping[str, NodeTable], interner: Interner
) -> dict[str, set[Row]]:
    """Add every node of `program`; afterwards `(node i)` is the class of node i.

    Types and known facts go in along with the nodes. Returns the rows of type demands that this
    answers: per node table the demand's columns and the type's number.
    """
    types = [interner.number(node.type) for node in program.nodes]
    rows: dict[str, list[Row]] = {
        answers_table(1): [
            (fact, index)
            for fact, holds in ((KNOWN, program.known), (VARYING, program.varying))
            for index, each in enumerate(holds)
            if each
        ]
    }
    answered: dict[str, set[Row]] = {}
    for index, node in enumerate(program.nodes):
        name = table_name(node)
        attributes = tuple(interner.number(value) for value in node.attributes)
        row = (tables[name].loading, index, *node.operands, *attributes, types[index])
        rows.setdefault(answers_table(tables[name].width + 2), []).append(row)
        if node.op.name != "item":
            inputs = tuple(types[operand] for operand in node.operands)
            answered.setdefault(name, set()).add((*inputs, *attributes, types[index]))
    egraph.insert(rows)
    egraph.run("load")
    return answered
