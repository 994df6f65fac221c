"""Candidates: the choice graph of an e-graph."""

from __future__ import annotations

from dataclasses import dataclass

from satura.rewrite.egraph.classes import EClasses
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.enumeration import Enumeration
from satura.rewrite.extract.folding import Folding, fold
from satura.rewrite.extract.fragments import Fragment
from satura.rewrite.extract.greedy import dag_greedy
from satura.rewrite.extract.local_search import improve
from satura.rewrite.extract.variants import variants

MAX_ROUNDS = 2
SMALL = 600  # e-nodes of an e-graph that is searched more widely, at a tenth of a second or so
WIDTH = 4  # options that are kept there; more was never seen to gain more than 0.1 %


@dataclass(frozen=True)
class Candidates:
    """A choice graph, what its candidates are, and how its constants are folded.

    Candidate k of `graph` is `fragments[k]`; `start` is the choice that was met on the way.
    """

    classes: EClasses
    model: CostModel
    graph: ChoiceGraph
    fragments: tuple[Fragment, ...]
    folding: Folding
    start: Result


def candidates(classes: EClasses, model: CostModel, rounds: int = MAX_ROUNDS) -> Candidates:
    """All fragments worth having.

    Those that an enumeration finds, and the variants of those that a local search would choose: in
    so many `rounds`, in a small e-graph in more, or until it chooses none that is new. Raises
    ProgramError where an output cannot be computed.
    """
    folding = fold(classes, model)
    is_small = rounds > 0 and classes.node_count <= SMALL
    found = Enumeration(classes, model, folding, WIDTH if is_small else 1)
    for name, cls in classes.outputs:
        if not found.is_computable(cls):
            raise ProgramError(f"output '{name}' cannot be computed from any e-node of its class")
    made = _Made(classes)
    for dispatches in found.dispatches:
        for leaves, (cost, fragment) in sorted(dispatches.items(), key=_cost):
            made.add(leaves, cost, fragment)
    graph = made.graph()
    result = improve(graph, dag_greedy(graph), 0)
    varied: set[int] = set()
    for _ in range(rounds * (WIDTH if is_small else 1)):
        for candidate in result.choice.values():
            if candidate not in varied:
                varied.add(candidate)
                for variant in variants(found, made.fragments[candidate]):
                    made.add(*found.priced(variant), variant)
        if len(made.fragments) == len(graph.homes):
            break
        graph = made.graph()
        result = improve(graph, result, 0)
    return Candidates(classes, model, graph, tuple(made.fragments), folding, result)


def _cost(dispatch: tuple[frozenset[int], tuple[float, Fragment]]) -> float:
    return dispatch[1][0]


class _Made:
    """The arrays of a choice graph, to which candidates are added."""

    def __init__(self, classes: EClasses) -> None:
        self.classes = classes
        self.fragments: list[Fragment] = []
        self.costs: list[float] = []
        self.leaves: list[frozenset[int]] = []
        self.of: list[list[int]] = [[] for _ in classes.nodes]

    def add(self, leaves: frozenset[int], cost: float, fragment: Fragment) -> None:
        """Add a candidate, unless one that costs no more reads no other classes."""
        cls = fragment.cls
        for other in self.of[cls]:
            if self.costs[other] <= cost and self.leaves[other] <= leaves:
                return
        self.of[cls].append(len(self.fragments))
        self.fragments.append(fragment)
        self.costs.append(cost)
        self.leaves.append(leaves)

    def graph(self) -> ChoiceGraph:
        goals = dict.fromkeys(cls for _, cls in self.classes.outputs if self.of[cls])
        return ChoiceGraph(
            len(self.classes.nodes),
            tuple(fragment.cls for fragment in self.fragments),
            tuple(tuple(sorted(leaves)) for leaves in self.leaves),
            tuple(self.costs),
            tuple(goals),
        )
