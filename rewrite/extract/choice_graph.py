"""The choice graph: what could be dispatched, as plain arrays.

A *candidate* computes one class from the classes that it reads, its leaves, at a cost. To extract
is to choose one candidate for every class that is needed, so that the costs of all add up to
little: what several candidates read is paid once. Extractors know nothing else of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

DEAREST = 1e250
"""The most that a candidate may cost: those of a graph can be added up, and with repetitions."""


@dataclass(frozen=True)
class ChoiceGraph:
    """Candidate k computes class `homes[k]` from the classes `leaves[k]`, at `costs[k]` >= 0, which
    is at most `DEAREST`.

    Classes are numbered below `size`. What is there from the beginning, as inputs are, is not
    among the leaves. `goals` are the classes that have to be computed.
    """

    size: int
    homes: tuple[int, ...]
    leaves: tuple[tuple[int, ...], ...]
    costs: tuple[float, ...]
    goals: tuple[int, ...]

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

    def nearby(self, classes: Iterable[int]) -> set[int]:
        """Some classes, those that read them or are read by them, and what else reads the latter:
        where other picks for some may make others worth while."""
        found: set[int] = set()
        for cls in classes:
            found.add(cls)
            found.update(self.users[cls])
            for leaf in self.readable[cls]:
                found.add(leaf)
                found.update(self.users[leaf])
        return found

    def looks(
        self, classes: Sequence[int], own: Sequence[float], uses: Sequence[int]
    ) -> dict[int, int]:
        """A number for each of some classes, the same in equal places of equal layers.

        It counts what its candidates cost, what its pick costs, `own`, and how many read it,
        `uses`; and the same of the computed classes that could read it.
        """
        prices = self._prices
        users = {cls: [user for user in self.users[cls] if uses[user]] for cls in classes}
        # Hashes of numbers are the same in every process.
        alone = {
            cls: hash((prices[cls], own[cls], uses[cls]))
            for cls in {*classes}.union(*users.values())
        }
        return {cls: hash((alone[cls], *sorted([alone[u] for u in users[cls]]))) for cls in classes}

    @cached_property
    def _prices(self) -> tuple[int, ...]:
        """A number for the costs of the candidates of each class."""
        costs = self.costs
        return tuple(hash(tuple([costs[k] for k in ks])) for ks in self.candidates)

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

    def cost(self, chosen: Iterable[int]) -> float:
        """The cost of some candidates together."""
        return sum(self.costs[candidate] for candidate in chosen)


@dataclass(frozen=True)
class Result:
    """What an extractor chose: a candidate for every class that is needed, and the cost of all.

    No choice costs less than `bound`.
    """

    choice: Mapping[int, int]
    cost: float
    bound: float = 0.0

    @property
    def gap(self) -> float:
        """By which share of the bound the cost lies above it at most."""
        return self.cost / self.bound - 1 if self.bound > 0 else float(self.cost > 0)


Extractor: TypeAlias = Callable[[ChoiceGraph], Result]
"""Chooses; raises ProgramError where a goal cannot be computed."""
