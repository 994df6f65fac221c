"""Landmarks: a lower bound on what any choice costs.

A *landmark* is a set of candidates of which every choice has at least one. Extraction is planning
without deletes: classes are facts, a candidate is an action that reads facts and adds one. So the
landmark-cut heuristic of planning bounds it (Helmert, Domshlak, ICAPS 2009): as long as the goals
have a price, take a landmark, charge it the cost of its cheapest candidate, and make all of its
candidates cheaper by as much. What was charged is the bound.

Each of these landmarks takes up to the time that all of a graph does. So those that are seen at
once are charged first, all together: the candidates of a class that every choice computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf

from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.choice_graph import ChoiceGraph

STEPS = 4_000_000  # after which no landmark is looked for: some seconds; time is not the same again
NOTHING = 1e-12  # of what the dearest goal costs at least: a cost that rounding leaves


@dataclass(frozen=True)
class Landmarks:
    """Landmarks, the bound that they give, and what is left of each candidate's cost.

    A choice that has a candidate with something left costs at least `bound` and what is left.
    """

    bound: float
    cuts: tuple[tuple[int, ...], ...]
    left: tuple[float, ...]


def landmarks(graph: ChoiceGraph) -> Landmarks:
    """The landmarks of a choice graph, of a large one those that are found in `STEPS`.

    Raises ProgramError where a goal cannot be computed.
    """
    prices = _Prices(graph)
    cuts = _of_needed(graph, prices)
    charges = [min([prices.left[candidate] for candidate in cut]) for cut in cuts]
    prices.charge(cuts, charges)
    bound = sum(charges)
    while prices.steps < STEPS and (cut := prices.cut()) is not None:
        charge = min([prices.left[candidate] for candidate in cut])
        bound += charge
        prices.charge([cut], [charge])
        cuts.append(cut)
    return Landmarks(bound, tuple(cuts), tuple(prices.left))


def _of_needed(graph: ChoiceGraph, prices: _Prices) -> list[tuple[int, ...]]:
    """The candidates of each class that every choice computes, as far as that is seen at once: the
    goals, and what all candidates of such a class read."""
    cuts = []
    seen = set(graph.goals)
    stack = list(graph.goals)
    while stack:
        cls = stack.pop()
        usable = [k for k in graph.candidates[cls] if prices.is_usable(k)]
        if min([prices.left[k] for k in usable]) > 0.0:
            cuts.append(tuple(usable))
        first, *others = [graph.leaves[k] for k in usable]
        new = set(first).intersection(*others) - seen
        seen |= new
        stack += sorted(new)
    return cuts


class _Prices:
    """The price of each class where of several leaves only the dearest is paid for.

    `dearest[k]` is that leaf of candidate k, None where it reads nothing. `left[k]` is what its
    cost has not been charged yet, 0 where that is `nothing` beside the goals. `steps` counts what
    has been done, by classes that were visited.
    """

    def __init__(self, graph: ChoiceGraph) -> None:
        self.graph = graph
        self.left = list(graph.costs)
        self.price = [inf] * graph.size
        self.dearest: list[int | None] = [None] * len(graph.homes)
        self.steps = 0
        heap = [
            (self.left[k], graph.homes[k]) for k, leaves in enumerate(graph.leaves) if not leaves
        ]
        heapify(heap)
        self._settle(heap)
        for goal in graph.goals:
            if self.price[goal] == inf:
                raise ProgramError(f"class {goal} cannot be computed by any of its candidates")
        self.nothing = NOTHING * max([self.price[goal] for goal in graph.goals], default=0.0)
        small = tuple(k for k, cost in enumerate(graph.costs) if 0 < cost <= self.nothing)
        self.charge([small], [0.0])

    def is_usable(self, candidate: int) -> bool:
        """Whether all that a candidate reads can be computed."""
        return all(self.price[leaf] < inf for leaf in self.graph.leaves[candidate])

    def cut(self) -> tuple[int, ...] | None:
        """The candidates by which the dearest goal's price comes about; None where all are free.

        They lead into the classes from which the goal follows for nothing.
        """
        goal = max(self.graph.goals, key=self.price.__getitem__, default=None)
        if goal is None or self.price[goal] == 0.0:
            return None
        zone = {goal}
        stack = [goal]
        paid = []
        while stack:
            for candidate in self.graph.candidates[stack.pop()]:
                dearest = self.dearest[candidate]
                if self.left[candidate] > 0.0:
                    paid.append(candidate)
                elif dearest is not None and dearest not in zone:
                    zone.add(dearest)
                    stack.append(dearest)
        self.steps += len(zone)
        cut = (k for k in paid if self._is_reached(self.dearest[k], zone, self.price[goal]))
        return tuple(cut) or None  # none where rounding hides what is paid

    def _is_reached(self, start: int | None, zone: set[int], price: float) -> bool:
        """Whether a class follows without any of the zone, which all cost at least `price`."""
        if start in zone:
            return False
        seen = {start}
        stack = [start]
        while stack:
            cls = stack.pop()
            if cls is None or self.price[cls] < price:
                return True
            for candidate in self.graph.candidates[cls]:
                dearest = self.dearest[candidate]
                if dearest not in seen and dearest not in zone:
                    self.steps += 1
                    seen.add(dearest)
                    stack.append(dearest)
        return False

    def charge(self, cuts: Sequence[tuple[int, ...]], amounts: Sequence[float]) -> None:
        """Make all candidates of each landmark cheaper by an amount, and what follows from them."""
        heap = []
        for cut, amount in zip(cuts, amounts, strict=True):
            for candidate in cut:
                self.left[candidate] -= amount
                if self.left[candidate] <= self.nothing:
                    self.left[candidate] = 0.0
                heap.append((self._price_of(candidate), self.graph.homes[candidate]))
        heapify(heap)
        self._settle(heap)

    def _price_of(self, candidate: int) -> float:
        """What a candidate costs with its dearest leaf, which is noted."""
        leaves = self.graph.leaves[candidate]
        if not leaves:
            return self.left[candidate]
        dearest = max(leaves, key=self.price.__getitem__)
        self.dearest[candidate] = dearest
        return self.left[candidate] + self.price[dearest]

    def _settle(self, heap: list[tuple[float, int]]) -> None:
        """Lower prices by those in the heap, and by what follows."""
        graph = self.graph
        while heap:
            price, cls = heappop(heap)
            self.steps += 1
            if price >= self.price[cls]:
                continue
            self.price[cls] = price
            for reader in graph.readers[cls]:
                dearest = self.dearest[reader]
                if dearest is None or dearest == cls:
                    below = self._price_of(reader)
                    if below < self.price[graph.homes[reader]]:
                        heappush(heap, (below, graph.homes[reader]))
