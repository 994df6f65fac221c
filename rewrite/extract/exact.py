"""Exact extraction: an integer program over the candidates, solved by HiGHS through scipy.

Unknowns are which candidates are chosen and which classes are needed. A class that is needed has a
candidate, and what that reads is needed. Two kinds of rows make the relaxation tight enough to be
solved: every landmark has a candidate that is chosen; and of any classes that read each other,
where one is needed, one has a candidate that reads none of the others, so that nothing is computed
from itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from math import isfinite

from satura.rewrite.errors import CallError
from satura.rewrite.extract.choice_graph import NOISE, ChoiceGraph, Result
from satura.rewrite.extract.landmarks import Landmarks, landmarks
from satura.rewrite.extract.local_search import local_search

NODES = 10_000  # of branch and bound; a limit of time would make results depend on the machine
SMALL = 5  # classes that read each other of which all subsets get a row
TOLERANCE = 1e-6  # of a linear program's optimum, relative
UNITS = 1e6  # that the first choice costs: HiGHS takes costs that differ by 1e-6 for equal


def exact(graph: ChoiceGraph) -> Result:
    """The cheapest choice, or where `NODES` do not suffice the best one found and a bound.

    Raises CallError without scipy, ProgramError where a goal cannot be computed.
    """
    found, best = _begun(graph)
    if not best.gap:
        return replace(best, bound=best.cost)
    if not find_spec("scipy"):
        raise CallError("exact extraction needs scipy: pip install 'satura[exact]'")
    return _Model(graph, found, best).solved()


def relax(graph: ChoiceGraph) -> Result:
    """What a local search chooses, with the bound that the integer program's relaxation gives.

    It takes seconds where the integer program may take hours. Without scipy the bound is that of
    the landmarks. Raises ProgramError where a goal cannot be computed.
    """
    found, best = _begun(graph)
    if not best.gap or not find_spec("scipy"):
        return best
    relaxed = _Model(graph, found, best).relaxation()
    return replace(best, bound=max(best.bound, min(relaxed, best.cost)))


def _begun(graph: ChoiceGraph) -> tuple[Landmarks, Result]:
    """The landmarks, and what a local search chooses with the bound that they give."""
    start, found = local_search(graph), landmarks(graph)
    return found, replace(start, bound=min(found.bound, start.cost))


class _Model:
    """The integer program: columns are candidates, then classes."""

    def __init__(self, graph: ChoiceGraph, found: Landmarks, start: Result) -> None:
        self.graph = graph
        self.start = start
        # What makes even the bound dearer than the start is not in a cheaper choice.
        limit = start.cost * (1 + NOISE) - found.bound
        usable = [k for k in range(len(graph.homes)) if found.left[k] <= limit]
        self.candidates = _reachable(graph, usable)
        self.column = {k: number for number, k in enumerate(self.candidates)}
        classes = dict.fromkeys(graph.homes[k] for k in self.candidates)
        self.needed = {c: len(self.candidates) + number for number, c in enumerate(classes)}
        self.of: dict[int, list[int]] = {cls: [] for cls in classes}
        for candidate in self.candidates:
            self.of[graph.homes[candidate]].append(candidate)
        # Per row its columns with coefficients, and the least that they may add up to.
        self.rows: list[tuple[dict[int, float], float]] = [*self._choices(), *self._reads()]
        for cut in found.cuts:
            kept = [self.column[k] for k in cut if k in self.column]
            self.rows.append((dict.fromkeys(kept, 1.0), 1.0))
        for classes_ in _circles(graph, self.of):
            self.forbid_circle(classes_)

    def _choices(self) -> Iterator[tuple[dict[int, float], float]]:
        for cls, candidates in self.of.items():
            yield {**{self.column[k]: 1.0 for k in candidates}, self.needed[cls]: -1.0}, 0.0

    def _reads(self) -> Iterator[tuple[dict[int, float], float]]:
        readers: dict[tuple[int, int], list[int]] = {}
        for candidate in self.candidates:
            for leaf in self.graph.leaves[candidate]:
                readers.setdefault((self.graph.homes[candidate], leaf), []).append(candidate)
        for (_, leaf), candidates in readers.items():
            yield {**{self.column[k]: -1.0 for k in candidates}, self.needed[leaf]: 1.0}, 0.0

    def forbid_circle(self, classes: frozenset[int]) -> None:
        """Demand that if any of these classes is needed, one is computed without the others."""
        graph = self.graph
        inside = [k for cls in classes for k in self.of[cls]]
        entries = [k for k in inside if classes.isdisjoint(graph.leaves[k])]
        if len(entries) < len(inside):
            for cls in classes:
                row = {self.column[k]: 1.0 for k in entries}
                self.rows.append(({**row, self.needed[cls]: -1.0}, 0.0))

    def solved(self) -> Result:
        """Solve; as long as chosen candidates read each other in a circle, forbid it and go on."""
        graph = self.graph
        while True:
            chosen, bound = self._solve()
            if chosen is None:
                return self._start_above(bound)
            picks = graph.in_turn(chosen)
            if all(goal in picks for goal in graph.goals):
                break
            self.forbid_circle(frozenset(graph.homes[k] for k in chosen) - picks.keys())
        choice = graph.needed(picks)
        cost = graph.cost(choice.values())
        if cost >= self.start.cost:
            return self._start_above(bound)
        return Result(choice, cost, min(max(bound, self.start.bound), cost))

    def _start_above(self, bound: float) -> Result:
        """The first choice, with the better of its bound and another."""
        return replace(self.start, bound=max(self.start.bound, min(bound, self.start.cost)))

    def relaxation(self) -> float:
        """A bound: the least cost where candidates may be chosen by parts."""
        return self._solve(False)[1] * (1 - TOLERANCE)

    def _solve(self, in_whole: bool = True) -> tuple[list[int] | None, float]:
        """The chosen candidates, None where no choice was found; and the bound."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        width = len(self.candidates) + len(self.needed)
        entries = [
            (n, column, v) for n, (row, _) in enumerate(self.rows) for column, v in row.items()
        ]
        numbers, columns, values = zip(*entries, strict=True)
        matrix = coo_array((values, (numbers, columns)), shape=(len(self.rows), width)).tocsr()
        unit = self.start.cost
        costs = [self.graph.costs[k] / unit * UNITS for k in self.candidates]
        least = [0.0] * width
        for goal in self.graph.goals:
            least[self.needed[goal]] = 1.0
        result = milp(
            costs + [0.0] * len(self.needed),
            integrality=[int(in_whole)] * len(self.candidates) + [0] * len(self.needed),
            bounds=Bounds(least, [1.0] * width),
            constraints=LinearConstraint(matrix, [least for _, least in self.rows]),
            options={"node_limit": NODES, "mip_rel_gap": NOISE},
        )
        found = result.mip_dual_bound if in_whole else result.fun
        bound = float(found) / UNITS * unit if found is not None and isfinite(found) else 0.0
        if result.x is None:
            return None, bound
        chosen = [k for k, x in zip(self.candidates, result.x, strict=False) if x > 0.5]
        return chosen, bound


def _reachable(graph: ChoiceGraph, usable: list[int]) -> list[int]:
    """The usable candidates that the goals reach and that read nothing that none computes."""
    kept, left = set(usable), [0] * graph.size
    for candidate in usable:
        left[graph.homes[candidate]] += 1
    lost = [cls for cls, count in enumerate(left) if not count]
    while lost:
        for reader in kept.intersection(graph.readers[lost.pop()]):
            kept.remove(reader)
            home = graph.homes[reader]
            left[home] -= 1
            if not left[home]:
                lost.append(home)
    seen = set(graph.goals)
    stack = list(graph.goals)
    while stack:
        for candidate in kept.intersection(graph.candidates[stack.pop()]):
            new = [leaf for leaf in graph.leaves[candidate] if leaf not in seen]
            seen.update(new)
            stack.extend(new)
    return sorted(k for k in kept if graph.homes[k] in seen)


def _circles(graph: ChoiceGraph, of: dict[int, list[int]]) -> Iterator[frozenset[int]]:
    """Classes that read each other, and of few all subsets, of more the pairs of which one reads
    the other: for other pairs their rows follow from the rest."""
    for component in _components(graph, of):
        if len(component) > SMALL:
            whole = frozenset(component)
            yield from dict.fromkeys(
                frozenset((cls, leaf))
                for cls in component
                for k in of[cls]
                for leaf in graph.leaves[k]
                if leaf != cls and leaf in whole
            )
            yield whole
            continue
        for size in range(2, len(component) + 1):
            yield from map(frozenset, combinations(component, size))


def _components(graph: ChoiceGraph, of: dict[int, list[int]]) -> Iterator[list[int]]:
    """Strongly connected components of two or more classes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number = {cls: position for position, cls in enumerate(of)}
    pairs = {(graph.homes[k], leaf) for ks in of.values() for k in ks for leaf in graph.leaves[k]}
    ends = [(number[home], number[leaf]) for home, leaf in sorted(pairs)]
    if not ends:
        return
    starts, targets = zip(*ends, strict=True)
    shape = (len(number), len(number))
    matrix = coo_array(([1.0] * len(ends), (starts, targets)), shape=shape).tocsr()
    _, labels = connected_components(matrix, directed=True, connection="strong")
    members: dict[int, list[int]] = {}
    for cls, label in zip(of, labels, strict=True):
        members.setdefault(int(label), []).append(cls)
    yield from (sorted(classes) for classes in members.values() if len(classes) > 1)
