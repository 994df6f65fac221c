"""Queries are cut so that egglog joins them correctly."""

from __future__ import annotations

import random

from satura.rewrite.egraph import EGraph
from satura.rewrite.joins import Atom, is_acyclic, staged


def test_rings_are_cyclic_and_trees_are_not() -> None:
    ring = [Atom("r", (f"a{k}", f"a{(k + 1) % 6}")) for k in range(6)]
    assert not is_acyclic(ring)
    assert is_acyclic(ring[:-1])
    assert is_acyclic([*ring[:2], Atom("r", ("a0", "a1", "a2"))])
    assert is_acyclic([Atom("r", ("a", "b")), Atom("s", ("b", "a", "7"), "c")])
    stages, query = staged(ring, frozenset({"a0"}), "stage")
    assert all(is_acyclic(stage.atoms) for stage in stages) and is_acyclic(query)


Tables = dict[str, list[tuple[int, ...]]]


def joined(egraph: EGraph, atoms: list[Atom]) -> list[tuple[int, ...]]:
    """What the e-graph finds for a staged query, over all variables in alphabetical order."""
    variables = tuple(sorted(frozenset().union(*(atom.variables for atom in atoms))))
    stages, query = staged(atoms, frozenset(variables), "stage")
    steps = [(stage.table, stage.atoms) for stage in stages]
    for table, body in [*steps, (Atom("out", variables), query)]:
        sorts = " ".join(["i64"] * len(table.arguments))
        egraph.define(f"(relation {table.table} ({sorts}))")
        egraph.define(f"(rule ({' '.join(map(str, body))}) ({table}))")
    egraph.define("(run 20)")
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


def loaded(rows: Tables) -> EGraph:
    egraph = EGraph()
    for table, entries in rows.items():
        egraph.define(f"(relation {table} ({' '.join(['i64'] * len(entries[0]))}))")
        egraph.insert(table, entries)
    return egraph


def test_staged_queries_find_what_nested_loops_find() -> None:
    """Rings of several lengths, with trees hanging from them, over random tables."""
    rng = random.Random(0)
    for trial in range(60):
        size, extent = rng.randint(3, 8), rng.randint(2, 5)
        atoms = [Atom(f"r{k}", (f"a{k}", f"a{(k + 1) % size}")) for k in range(size)]
        atoms += [Atom(f"t{k}", (f"a{rng.randrange(size)}", f"b{k}")) for k in range(2)]
        rng.shuffle(atoms)
        rows: Tables = {
            atom.table: sorted({(rng.randrange(extent), rng.randrange(extent)) for _ in range(6)})
            for atom in atoms
        }
        assert joined(loaded(rows), atoms) == nested_loops(atoms, rows), f"trial {trial}"


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
    assert joined(loaded(rows), atoms) == nested_loops(atoms, rows)
