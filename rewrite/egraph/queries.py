"""Queries over tables, as chains of joins of two tables each.

egglog 13.2 gives wrong rows for some queries whose atoms form a ring of shared variables, and
plans queries of many atoms badly. So a rule on the e-graph joins two tables at most: where a query
has more, what is joined so far becomes a table of its own.

Variables that begin with `t` or `e` are classes, all others numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    @property
    def call(self) -> str:
        """The row itself, without its output."""
        return f"({self.table} {' '.join(self.arguments)})"

    @property
    def stated(self) -> str:
        """The action that adds the row to a relation."""
        return f"(set {self.call} ())"

    def __str__(self) -> str:
        return self.call if self.output is None else f"(= {self.output} {self.call})"


@dataclass(frozen=True)
class Stage:
    """A table that holds the join of some atoms, as far as later atoms need it."""

    atoms: tuple[Atom, ...]
    table: Atom

    def text(self, ruleset: str) -> str:
        """The table's declaration and the rule that fills it."""
        name = self.table.table
        sorts = ["T" if column[0] in "te" else "i64" for column in self.table.arguments]
        return relation(name, sorts) + rule_text(self.atoms, self.table.stated, ruleset, name)


def relation(name: str, sorts: Sequence[str]) -> str:
    """The declaration of a table of rows alone; egglog's `relation` would give each row a class."""
    return f"(function {name} ({' '.join(sorts)}) Unit :no-merge)\n"


def rule_text(atoms: Sequence[Atom], actions: str, ruleset: str, name: str) -> str:
    """An egglog rule."""
    body = " ".join(map(str, atoms))
    return f'(rule ({body}) ({actions}) :ruleset {ruleset} :name "{name}")\n'


def split_query(
    atoms: Sequence[Atom], needed: frozenset[str], name: str, most: int = 2
) -> tuple[list[Stage], list[Atom]]:
    """Tables to fill first, in order, and the query of at most `most` atoms that remains.

    `needed` are the variables that the query must bind; `name` starts the tables' names.
    """
    stages: list[Stage] = []
    current = list(atoms[:2])
    for number in range(2, len(atoms)):
        later = needed.union(*(atom.variables for atom in atoms[number:]))
        bound = frozenset().union(*(atom.variables for atom in current))
        table = Atom(f"{name}_{len(stages)}", tuple(sorted(bound & later)))
        stages.append(Stage(tuple(current), table))
        current = [table, atoms[number]]
    if len(current) > most:
        bound = frozenset().union(*(atom.variables for atom in current))
        table = Atom(f"{name}_{len(stages)}", tuple(sorted(bound & needed)))
        stages.append(Stage(tuple(current), table))
        current = [table]
    return stages, current
