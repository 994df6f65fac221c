"""Queries are written as chains of joins of two tables, which egglog gets right."""

from __future__ import annotations

import random

import pytest

from satura.rewrite.egraph.engine import EGraph
from satura.rewrite.egraph.queries import Atom, relation, rule_text, split_query
from tests.tiers import deep_but


def test_no_query_joins_more_than_two_tables() -> None:
    atoms = [Atom(f"r{k}", (f"a{k}", f"a{(k + 1) % 6}", f"b{k}")) for k in range(6)]
    stages, query = split_query(atoms, frozenset({"a0", "b5"}), "stage")
    assert all(len(stage.atoms) == 2 for stage in stages) and len(query) == 2
    assert [stage.table.arguments for stage in stages] == [("a0", f"a{k}") for k in (2, 3, 4, 5)]
    assert split_query(atoms[:2], frozenset({"a0"}), "stage") == ([], atoms[:2])


Tables = dict[str, list[tuple[int, ...]]]


def rows_found(egraph: EGraph, atoms: list[Atom]) -> list[tuple[int, ...]]:
    """What the e-graph finds for a split query, over all variables in alphabetical order."""
    variables = tuple(sorted(frozenset().union(*(atom.variables for atom in atoms))))
    stages, query = split_query(atoms, frozenset(variables), "stage")
    egraph.define("(ruleset join)")
    steps = [(stage.table, stage.atoms) for stage in stages]
    for table, body in [*steps, (Atom("out", variables), tuple(query))]:
        egraph.define(relation(table.table, ["i64"] * len(table.arguments)))
        egraph.define(rule_text(body, table.stated, "join", table.table))
    egraph.saturate("join")
    return list(egraph.numbers("out"))


def nested_loops(atoms: list[Atom], rows: Tables) -> list[tuple[int, ...]]:
    found: list[dict[str, int]] = [{}]
    for atom in atoms:
        columns = atom.arguments if atom.output is None else (*atom.arguments, atom.output)
        found = [
            {**one, **dict(pairs)}
            for one in found
            for row in rows[atom.table]
            for pairs in [list(zip(columns, row, strict=True))]
            if all(int(k) == v if k.isdigit() else one.get(k, v) == v for k, v in pairs)
        ]
    variables = sorted(frozenset().union(*(atom.variables for atom in atoms)))
    return sorted({tuple(one[name] for name in variables) for one in found})


def egraph_of(rows: Tables) -> EGraph:
    egraph = EGraph()
    for table, entries in rows.items():
        egraph.define(relation(table, ["i64"] * len(entries[0])))
        egraph.insert({table: entries})
    return egraph


@pytest.mark.parametrize("trials", deep_but([15], [15, 60]))
def test_staged_queries_find_what_nested_loops_find(trials: int) -> None:
    """Rings of several lengths, with trees hanging from them, over random tables."""
    rng = random.Random(0)
    for trial in range(trials):
        size, extent = rng.randint(3, 8), rng.randint(2, 5)
        atoms = [Atom(f"r{k}", (f"a{k}", f"a{(k + 1) % size}")) for k in range(size)]
        atoms += [Atom(f"t{k}", (f"a{rng.randrange(size)}", f"b{k}")) for k in range(2)]
        rng.shuffle(atoms)
        rows: Tables = {
            atom.table: sorted({(rng.randrange(extent), rng.randrange(extent)) for _ in range(6)})
            for atom in atoms
        }
        assert rows_found(egraph_of(rows), atoms) == nested_loops(atoms, rows), f"trial {trial}"


def test_a_ring_that_egglog_joins_wrongly() -> None:
    """Unstaged, egglog 13.2 also gives the row with the other `answer`."""
    atoms = [
        Atom("binary", ("e1", "e4", "38", "e0")),
        Atom("conv", ("x", "w", "window", "e1")),
        Atom("known", ("w",)),
        Atom("broadcast", ("c", "shape", "e4")),
        Atom("known", ("c",)),
        Atom("type_of", ("c", "yc")),
        Atom("type_of", ("w", "yw")),
        Atom("answer", ("yc", "yw", "out0")),
    ]
    rows: Tables = {
        "broadcast": [(964, 107, 976)],
        "binary": [(2460, 976, 38, 2587)],
        "conv": [(2619, 252, 43, 2460)],
        "known": [(252,), (964,)],
        "type_of": [(248, 6), (252, 20), (964, 110)],
        "answer": [(110, 6, 120), (110, 20, 121)],
    }
    assert rows_found(egraph_of(rows), atoms) == nested_loops(atoms, rows)
