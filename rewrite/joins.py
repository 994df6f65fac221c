"""Queries over tables, cut into pieces that egglog joins correctly.

egglog 13.2 gives wrong rows for some *cyclic* queries (those where atoms form a ring of shared
variables; rings of six or more are known to fail). So a query is written as a chain of acyclic
ones: where the next atom would close a ring, what is joined so far becomes a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Atom:
    """One row of a table; arguments are variables or numbers. A node table has an `output`."""

    table: str
    arguments: tuple[str, ...]
    output: str | None = None

    @property
    def variables(self) -> frozenset[str]:
        everything = self.arguments if self.output is None else (*self.arguments, self.output)
        return frozenset(name for name in everything if not name.isdigit())

    def __str__(self) -> str:
        call = f"({self.table} {' '.join(self.arguments)})"
        return call if self.output is None else f"(= {self.output} {call})"


def is_acyclic(atoms: Iterable[Atom]) -> bool:
    """Whether the atoms can be taken away one by one, each sharing variables with one other only.

    Variables of one atom alone, and atoms within another, never matter and go first.
    """
    edges = [set(atom.variables) for atom in atoms]
    changed = True
    while changed:
        changed = False
        for number, edge in enumerate(edges):
            others = edges[:number] + edges[number + 1 :]
            shared = edge & set().union(*others)
            if shared != edge:
                edges[number] = shared
                changed = True
            if any(shared <= other for other in others):
                del edges[number]
                changed = True
                break
    return len(edges) <= 1


@dataclass(frozen=True)
class Stage:
    """A table that holds the join of some atoms, as far as later atoms need it."""

    atoms: tuple[Atom, ...]
    table: Atom


def staged(
    atoms: Sequence[Atom], needed: frozenset[str], name: str
) -> tuple[list[Stage], list[Atom]]:
    """Tables to fill first, in order, and the acyclic query that remains over them.

    `needed` are the variables that the query must bind; `name` starts the tables' names.
    """
    stages: list[Stage] = []
    current: list[Atom] = []
    for number, atom in enumerate(atoms):
        if not is_acyclic([*current, atom]):
            later = needed.union(*(rest.variables for rest in atoms[number:]))
            stage = close(current, later, f"{name}_{len(stages)}")
            stages.append(stage)
            current = [stage.table]
        current.append(atom)
    return stages, current


def close(atoms: Sequence[Atom], needed: frozenset[str], table: str) -> Stage:
    """A stage that joins `atoms` and keeps the variables in `needed`."""
    bound = frozenset().union(*(atom.variables for atom in atoms))
    return Stage(tuple(atoms), Atom(table, tuple(sorted(bound & needed))))
