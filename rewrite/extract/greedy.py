"""Greedy extractors: class by class, each takes the candidate that is cheapest with all below it.

Classes are visited in order of that price, as in Knuth's generalisation of Dijkstra's algorithm
(Information Processing Letters 6, 1977): a candidate costs at least as much as what it reads, so a
class that is visited has its final price, and no two classes read each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result

MOST = 1e300  # seconds: sums of trees stay below infinity


def tree_greedy(graph: ChoiceGraph) -> Result:
    """Choose by trees: what is read twice counts twice. Exact where nothing is shared."""
    return chosen(graph, cheapest_trees(graph))


def dag_greedy(graph: ChoiceGraph) -> Result:
    """Choose by DAGs: the price of a candidate has everything below it once."""
    return chosen(graph, cheapest_dags(graph))


def cheapest_trees(graph: ChoiceGraph) -> dict[int, int]:
    """The candidate of every class whose tree is cheapest."""
    totals = [0.0] * graph.size

    def price(candidate: int) -> float:
        below = sum(totals[leaf] for leaf in graph.leaves[candidate])
        return min(MOST, graph.costs[candidate] + below)

    def settle(cls: int, candidate: int, total: float) -> None:
        totals[cls] = total

    return _visit(graph, price, settle)


def cheapest_dags(graph: ChoiceGraph, is_last: bool = False) -> dict[int, int]:
    """The candidate of every class that is cheapest together with all classes below it.

    Of equal ones the first, or the last.
    """
    totals = [0.0] * graph.size
    own = [0.0] * graph.size
    below = [0] * graph.size  # bit set of the classes that are computed for this one, itself too

    def union(candidate: int) -> tuple[float, int]:
        """Cost and bit set of the classes below a candidate."""
        total, bits = 0.0, 0
        for leaf in sorted(graph.leaves[candidate], key=totals.__getitem__, reverse=True):
            if bits:
                total += sum(own[cls] for cls in members(below[leaf] & ~bits))
            else:
                total = totals[leaf]
            bits |= below[leaf]
        return total, bits

    def price(candidate: int) -> float:
        return graph.costs[candidate] + union(candidate)[0]

    def settle(cls: int, candidate: int, total: float) -> None:
        totals[cls], own[cls] = total, graph.costs[candidate]
        below[cls] = union(candidate)[1] | 1 << cls

    return _visit(graph, price, settle, -1 if is_last else 1)


def _visit(
    graph: ChoiceGraph,
    price: Callable[[int], float],
    settle: Callable[[int, int, float], None],
    order: int = 1,
) -> dict[int, int]:
    """The cheapest candidate of each class, classes in order of price.

    `price` is asked for candidates whose leaves are settled; `settle` is told class, candidate and
    price. `order` turns round which of equal ones comes first.
    """
    missing = list(map(len, graph.leaves))
    heap = [(price(k), order * k) for k, count in enumerate(missing) if not count]
    heapify(heap)
    picks: dict[int, int] = {}
    while heap:
        total, number = heappop(heap)
        candidate = order * number
        cls = graph.homes[candidate]
        if cls in picks:
            continue
        picks[cls] = candidate
        settle(cls, candidate, total)
        for reader in graph.readers[cls]:
            missing[reader] -= 1
            if not missing[reader] and graph.homes[reader] not in picks:
                heappush(heap, (price(reader), order * reader))
    return picks


def chosen(graph: ChoiceGraph, picks: Mapping[int, int]) -> Result:
    """The part of some picks that the goals need. Raises ProgramError where one has none."""
    for goal in graph.goals:
        if goal not in picks:
            raise ProgramError(f"class {goal} cannot be computed by any of its candidates")
    choice = graph.needed(picks)
    return Result(choice, graph.cost(choice.values()))


def members(bits: int) -> list[int]:
    """Positions of the set bits, from the lowest on."""
    found = []
    while bits:
        highest = bits.bit_length() - 1
        found.append(highest)
        bits ^= 1 << highest
    found.reverse()
    return found
