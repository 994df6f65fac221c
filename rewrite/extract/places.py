"""Places of a choice graph for a local search: what lies near, and what looks the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from satura.rewrite.extract.choice_graph import ChoiceGraph


def nearby(graph: ChoiceGraph, classes: Iterable[int]) -> set[int]:
    """Some classes, those that read them or are read by them, and what else reads the latter:
    where other picks for some may make others worth while."""
    found = set(classes)
    leaves = {leaf for cls in found for leaf in graph.readable[cls]}
    return found.union(leaves, *[graph.users[cls] for cls in found | leaves])


def looks(
    graph: ChoiceGraph, prices: Sequence[int], classes: Sequence[int], own: Sequence[float],
    uses: Sequence[int],
) -> dict[int, int]:  # fmt: skip
    """A number for each of some classes, the same in equal places of equal layers.

    It counts what its candidates cost, `prices`, what its pick costs, `own`, and how many read it,
    `uses`; and the same of the computed classes that could read it.
    """
    users = {cls: [user for user in graph.users[cls] if uses[user]] for cls in classes}
    # Hashes of numbers are the same in every process.
    alone = {
        cls: hash((prices[cls], own[cls], uses[cls])) for cls in {*classes}.union(*users.values())
    }
    return {cls: hash((alone[cls], *sorted([alone[u] for u in users[cls]]))) for cls in classes}


def price_lists(graph: ChoiceGraph) -> tuple[int, ...]:
    """A number for the costs of the candidates of each class."""
    costs = graph.costs
    return tuple(hash(tuple([costs[k] for k in ks])) for ks in graph.candidates)
