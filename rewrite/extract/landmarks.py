"""Landmarks: a lower bound on what any choice costs.

A *landmark* is a set of candidates of which every choice has at least one. Extraction is planning
without deletes: classes are facts, a candidate is an action that reads facts and adds one. So the
landmark-cut heuristic of planning bounds it (Helmert, Domshlak, ICAPS 2009): as long as the goals
have a price, take a landmark, charge it the cost of its cheapest candidate, and make all of its
candidates cheaper by as much. What was charged is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf

from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.choice_graph import ChoiceGraph

NOTHING = 1e-15  # seconds: a cost that rounding leaves


@dataclass(frozen=True)
class Landmarks:
    """Landmarks, the bound that they give, and what is left of each candidate's cost.

    A choice that has a candidate with something left costs at least `bound` and what is left.
    """

    bound: float
    cuts: tuple[tuple[int, ...], ...]
    left: tuple[float, ...]


def landmarks(graph: ChoiceGraph) -> Landmarks:
    """The landmarks of a choice graph. Raises ProgramError where a goal cannot be computed."""
    prices = _Prices(graph)
    bound = 0.0
    cuts = []
    while (cut := prices.cut()) is not None:
        charge = min(prices.left[candidate] for candidate in cut)
        bound += charge
        prices.charge(cut, charge)
        cuts.append(cut)
    return Landmarks(bound, tuple(cuts), tuple(prices.left))


class _Prices:
    """The price of each class where of several leaves only the dearest is paid for.

    `dearest[k]` is that leaf of candidate k, None where it reads nothing. `left[k]` is what its
    cost has not been charged yet.
    """

    def __init__(self, graph: ChoiceGraph) -> None:
        self.graph = graph
        self.left = list(graph.costs)
        self.price = [inf] * graph.size
        self.dearest: list[int | None] = [None] * len(graph.homes)
        heap = [
            (self.left[k], graph.homes[k]) for k, leaves in enumerate(graph.leaves) if not leaves
        ]
        heapify(heap)
        self._settle(heap)
        for goal in graph.goals:
            if self.price[goal] == inf:
                raise ProgramError(f"class {goal} cannot be computed by any of its candidates")

    def cut(self) -> tuple[int, ...] | None:
        """The candidates by which the dearest goal's price comes about; None where all are free.

        They lead into the classes from which the goal follows for nothing.
        """
        goal = max(self.graph.goals, key=self.price.__getitem__, default=None)
        if goal is None or self.price[goal] <= NOTHING:
            return None
        zone = {goal}
        stack = [goal]
        paid = []
        while stack:
            for candidate in self.graph.candidates[stack.pop()]:
                dearest = self.dearest[candidate]
                if self.left[candidate] > NOTHING:
                    paid.append(candidate)
                elif dearest is not None and dearest not in zone:
                    zone.add(dearest)
                    stack.append(dearest)
        cut = (k for k in paid if self._is_reached(self.dearest[k], zone, self.price[goal]))
        return tuple(cut) or None  # none where a price is but the sum of costs that are nothing

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
                    seen.add(dearest)
                    stack.append(dearest)
        return False

    def charge(self, cut: tuple[int, ...], amount: float) -> None:
        """Make all candidates of a landmark cheaper, and what follows from them."""
        heap = []
        for candidate in cut:
            self.left[candidate] -= amount
            if self.left[candidate] <= NOTHING:
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
            if price >= self.price[cls]:
                continue
            self.price[cls] = price
            for reader in graph.readers[cls]:
                dearest = self.dearest[reader]
                if dearest is None or dearest == cls:
                    below = self._price_of(reader)
                    if below < self.price[graph.homes[reader]]:
                        heappush(heap, (below, graph.homes[reader]))
