"""The choice graph: what could be dispatched, as plain arrays.

A *candidate* computes one class from the classes that it reads, its leaves, at a cost. To extract
is to choose one candidate for every class that is needed, so that the costs of all add up to
little: what several candidates read is paid once. Extractors know nothing else of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TypeAlias

from satura.rewrite.extract.checked import check_parts

NOISE = 1e-9
"""The share of a cost below which a gain is noise of floating point."""


def gap(cost: float, bound: float) -> float:
    """By which share of a bound a cost lies above it: 0 where that is noise, infinite above 0."""
    if cost <= bound * (1 + NOISE):
        return 0.0
    return cost / bound - 1 if bound > 0 else inf


@dataclass(frozen=True)
class ChoiceGraph:
    """Candidate k computes class `homes[k]` from the classes `leaves[k]`, at `costs[k]` >= 0, which
    is at most `checked.DEAREST`.

    Classes are numbered below `size`. What is there from the beginning, as inputs are, is not
    among the leaves. `goals` are the classes that have to be computed. Raises CallError for parts
    that are no such graph.
    """

    size: int
    homes: tuple[int, ...]
    leaves: tuple[tuple[int, ...], ...]
    costs: tuple[float, ...]
    goals: tuple[int, ...]

    def __post_init__(self) -> None:
        check_parts(self.size, self.homes, self.leaves, self.costs, self.goals)

    @classmethod
    def unchecked(
        cls, size: int, homes: tuple[int, ...], leaves: tuple[tuple[int, ...], ...],
        costs: tuple[float, ...], goals: tuple[int, ...],
    ) -> ChoiceGraph:  # fmt: skip
        """The graph of parts that a search has made: checking them would be a hundredth of it."""
        graph = object.__new__(cls)
        graph.__dict__.update(size=size, homes=homes, leaves=leaves, costs=costs, goals=goals)
        return graph

    @cached_property
    def candidates(self) -> tuple[tuple[int, ...], ...]:
        """The candidates of each class, cheapest first."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for candidate in sorted(range(len(self.homes)), key=self.costs.__getitem__):
            found[self.homes[candidate]].append(candidate)
        return tuple(map(tuple, found))

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The candidates that read each class."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for candidate, leaves in enumerate(self.leaves):
            for leaf in leaves:
                found[leaf].append(candidate)
        return tuple(map(tuple, found))

    def reading(self, cls: int, leaf: int) -> Sequence[int]:
        """The candidates of a class that read another one, cheapest first."""
        found = self._by_leaf.get(cls)
        if found is None:
            found = self._by_leaf[cls] = {}
            for candidate in self.candidates[cls]:
                for read in self.leaves[candidate]:
                    found.setdefault(read, []).append(candidate)
        return found.get(leaf, ())

    @cached_property
    def _by_leaf(self) -> dict[int, dict[int, list[int]]]:
        """What `reading` has found out, by class."""
        return {}

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """The classes with a candidate that reads each class."""
        homes = self.homes
        return tuple(tuple(dict.fromkeys([homes[k] for k in ks])) for ks in self.readers)

    @cached_property
    def readable(self) -> tuple[tuple[int, ...], ...]:
        """The classes that some candidate of each class reads."""
        leaves = self.leaves
        return tuple(
            tuple(dict.fromkeys([leaf for k in candidates for leaf in leaves[k]]))
            for candidates in self.candidates
        )

    def needed(self, picks: Mapping[int, int]) -> dict[int, int]:
        """The part of `picks`, candidates by class, that the goals need; in depth-first order."""
        found: dict[int, int] = {}
        stack = list(reversed(self.goals))
        while stack:
            cls = stack.pop()
            if cls not in found:
                found[cls] = picks[cls]
                stack.extend(reversed(self.leaves[picks[cls]]))
        return found

    def in_turn(self, chosen: Iterable[int]) -> dict[int, int]:
        """The classes that some candidates compute one after another, each with the first."""
        missing = {candidate: len(self.leaves[candidate]) for candidate in chosen}
        ready = [candidate for candidate, count in missing.items() if not count]
        picks: dict[int, int] = {}
        for candidate in ready:
            cls = self.homes[candidate]
            if cls not in picks:
                picks[cls] = candidate
                for reader in self.readers[cls]:
                    if reader in missing:
                        missing[reader] -= 1
                        if not missing[reader]:
                            ready.append(reader)
        return picks

    def cost(self, chosen: Iterable[int]) -> float:
        """The cost of some candidates together."""
        return sum(self.costs[candidate] for candidate in chosen)


@dataclass(frozen=True)
class Result:
    """What an extractor chose: a candidate for every class that is needed, and the cost of all.

    No choice costs less than `bound`. Trials compute the cost again from the part of the choice
    that the goals need, so an extractor may choose for further classes and give any cost.
    """

    choice: Mapping[int, int]
    cost: float
    bound: float = 0.0

    @property
    def gap(self) -> float:
        """By which share of the bound the cost lies above it at most."""
        return gap(self.cost, self.bound)


Extractor: TypeAlias = Callable[[ChoiceGraph], Result]
"""Chooses a candidate for at least every class that the goals need, see `Result`.

Raises ProgramError where a goal cannot be computed.
"""
