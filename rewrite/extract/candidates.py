"""Candidates: the choice graph of an e-graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from satura.rewrite.egraph.classes import EClasses
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.enumeration import Enumeration, Found
from satura.rewrite.extract.folding import Folding, fold
from satura.rewrite.extract.fragments import Fragment
from satura.rewrite.extract.greedy import cheapest_dags, chosen
from satura.rewrite.extract.local_search import LARGE, improve
from satura.rewrite.extract.templates import Instance, Templates
from satura.rewrite.extract.variants import Change, look, variants

MAX_ROUNDS = 2
_ALL = -1  # the bit set of all classes
SMALL = 600  # e-nodes of an e-graph that is searched more widely, at a tenth of a second or so
HUGE = 50_000  # candidates: a round of variants takes a second or two, and gains a percent
WIDTH = 8  # options that a wide search keeps; unrolled recurrences gain a tenth by more than 4


@dataclass(frozen=True)
class Candidates:
    """A choice graph, what its candidates are, and how its constants are folded.

    Candidate k of `graph` is `found[k]`; `start` is the choice that was met on the way. `picks`
    are the candidates of all classes among which it was made.
    """

    enumeration: Enumeration
    graph: ChoiceGraph
    found: tuple[Found, ...]
    folding: Folding
    start: Result
    picks: Mapping[int, int]

    @property
    def classes(self) -> EClasses:
        return self.enumeration.classes

    @property
    def model(self) -> CostModel:
        return self.enumeration.model

    def fragment(self, candidate: int) -> Fragment:
        """What a candidate dispatches."""
        return self.enumeration.fragment(self.found[candidate])


def candidates(
    classes: EClasses, model: CostModel, rounds: int = MAX_ROUNDS, is_wide: bool = False
) -> Candidates:
    """All fragments worth having.

    Those that an enumeration finds, and the variants of those that a local search would choose: in
    so many `rounds`, where the search `is_wide`, as in small e-graphs it always is, in more while
    they are not HUGE, or until it chooses none that is new. Raises ProgramError where an output
    cannot be computed.
    """
    width = _width(classes) if rounds and (is_wide or is_small(classes)) else 1
    templates = Templates(model)
    stored = 0
    if width > 1:  # what several read counts in full for each of them, unless it is there
        narrow = enumerate_fragments(classes, templates)
        stored = sum([1 << cls for cls in narrow.start.choice])
    return add_variants(enumerate_fragments(classes, templates, width, stored), rounds * width)


def _width(classes: EClasses) -> int:
    """How many options a wide search keeps: in large e-graphs more were not seen to gain."""
    return WIDTH if classes.node_count <= 4 * SMALL else 2


def is_small(classes: EClasses) -> bool:
    """Whether an e-graph can be searched widely: that takes less than half a second."""
    return classes.node_count <= SMALL


def enumerate_fragments(
    classes: EClasses, templates: Templates, width: int = 1, stored: int = 0
) -> Candidates:
    """The fragments that an enumeration of some `width` finds, without variants; a wide one reads
    what is `stored`, a bit set of classes, at no price.

    Raises ProgramError where an output cannot be computed.
    """
    folding = fold(classes, templates.model)
    enumeration = Enumeration(classes, folding, templates, width, stored)
    for name, cls in classes.outputs:
        if not enumeration.is_computable(cls):
            raise ProgramError(f"output '{name}' cannot be computed from any e-node of its class")
    made = _Made(enumeration)
    picks: dict[int, int] = {}
    for cls in range(len(classes.nodes)):
        for leaves, (cost, found) in sorted(enumeration.dispatchable(cls), key=_cost):
            candidate = made.add(leaves, cost, found)
            if leaves == enumeration.best[cls]:
                picks.setdefault(cls, candidate)
    graph = made.graph()
    start = improve(graph, chosen(graph, picks), picks, is_short=True)
    return Candidates(enumeration, graph, tuple(made.found), folding, start, picks)


def add_variants(before: Candidates, rounds: int = MAX_ROUNDS) -> Candidates:
    """Some candidates with the variants of those that a local search would choose.

    In all but large graphs from two starts, whose variants are others, and of all kinds.
    """
    enumeration, graph, picks = before.enumeration, before.graph, before.picks
    results = [before.start]
    if rounds and len(graph.homes) <= LARGE:
        cheapest = cheapest_dags(graph)
        results.append(improve(graph, chosen(graph, cheapest), picks, is_short=True))
    made = _Made(enumeration)
    for leaves, cost, found in zip(graph.leaves, graph.costs, before.found, strict=True):
        made.append(sum([1 << leaf for leaf in leaves]), cost, found)
    seen: set[int] = set()
    gained: dict[object, set[Change]] = {}  # at the first of the places that look the same
    for round_ in range(rounds):
        if round_ >= MAX_ROUNDS and len(graph.homes) > HUGE:
            break
        shared = made.shared(results) if len(graph.homes) > LARGE else _ALL
        for candidate in [each for result in results for each in result.choice.values()]:
            found = made.found[candidate]
            if candidate not in seen and isinstance(found, Instance):
                seen.add(candidate)
                place = look(enumeration, found, shared), made.prices(found.cls)
                added = {
                    change
                    for change, variant in variants(enumeration, found, shared, gained.get(place))
                    if made.found[made.add(variant.leaves, variant.seconds, variant)] is variant
                }
                gained.setdefault(place, added)
        if len(made.found) == len(graph.homes):
            break
        known = len(graph.homes)
        graph = made.graph()
        new = graph.homes[known:]
        results = [improve(graph, each, picks, True, near=new) for each in results]
    result = min(results, key=lambda each: each.cost)
    return Candidates(enumeration, graph, tuple(made.found), before.folding, result, picks)


def _cost(dispatch: tuple[int, tuple[float, Found]]) -> float:
    return dispatch[1][0]


class _Made:
    """The arrays of a choice graph, to which candidates are added."""

    def __init__(self, enumeration: Enumeration) -> None:
        self.enumeration = enumeration
        self.found: list[Found] = []
        self.costs: list[float] = []
        self.leaves: list[int] = []  # bit sets
        self.read: list[tuple[int, ...]] = []  # their members
        self.of: list[list[int]] = [[] for _ in enumeration.classes.nodes]

    def prices(self, cls: int) -> tuple[float, ...]:
        """The costs of the candidates of a class."""
        return tuple([self.costs[candidate] for candidate in self.of[cls]])

    def shared(self, results: Iterable[Result]) -> int:
        """The bit set of the classes that several dispatches of one choice read or compute."""
        shared = 0
        for result in results:
            once = 0
            for candidate in result.choice.values():
                found, bits = self.found[candidate], self.leaves[candidate]
                if isinstance(found, Instance):
                    bits |= found.inner
                shared |= once & bits
                once |= bits
        return shared

    def add(self, leaves: int, cost: float, found: Found) -> int:
        """Add a candidate; its number, or that of one that costs no more and reads no others. This
        may be a placement only of another one: what it copies is known when all is chosen."""
        costs, read, others = self.costs, self.leaves, ~leaves
        is_placement = not isinstance(found, Instance)
        for other in self.of[found.cls]:
            is_alike = is_placement or isinstance(self.found[other], Instance)
            if costs[other] <= cost and not read[other] & others and is_alike:
                return other
        self.append(leaves, cost, found)
        return len(self.found) - 1

    def append(self, leaves: int, cost: float, found: Found) -> None:
        """Add a candidate."""
        self.of[found.cls].append(len(self.found))
        self.found.append(found)
        self.costs.append(cost)
        self.leaves.append(leaves)
        self.read.append(self.enumeration.members(leaves))

    def graph(self) -> ChoiceGraph:
        classes = self.enumeration.classes
        goals = dict.fromkeys(cls for _, cls in classes.outputs if self.of[cls])
        return ChoiceGraph.unchecked(
            len(classes.nodes),
            tuple([found.cls for found in self.found]),
            tuple(self.read),
            tuple(self.costs),
            tuple(goals),
        )
