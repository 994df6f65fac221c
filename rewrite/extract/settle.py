"""Settling: extraction that knows what the copies of its own choice cost.

A candidate that makes a concat a placement costs as if its parts could be written in place. Whether
they can depends on what else is chosen: a part lies in one concat only, and some kernels cannot
step through it there. Where a choice copies such a part, the candidate is charged for that, and the
extractor chooses again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from satura.rewrite.extract.assemble import Assembly, assemble
from satura.rewrite.extract.candidates import Candidates
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.placement import find_homes, place, placed, uncharged_copies
from satura.rewrite.extract.schedule import Schedule

_TRIES = 4  # each charges what the one before did not know


@dataclass(frozen=True)
class Settled:
    """A choice among some candidates, charged for its copies, and the schedule made from it."""

    candidates: Candidates
    result: Result
    schedule: Schedule


def settle(found: Candidates, search: Callable[[Candidates], Result]) -> Settled:
    """The cheapest schedule of what a search chooses and, where that copies what its candidates
    were not charged for, chooses again."""
    best: Settled | None = None
    for _ in range(_TRIES):
        result = search(found)
        parts = assembly(found, result)
        homes = find_homes(parts, found.model)
        made = Settled(found, result, placed(parts, homes))
        if best is None or made.schedule.seconds < best.schedule.seconds:
            best = made
        copies = uncharged_copies(parts, homes)
        if not copies:
            break
        class_of = parts.class_of
        found = _charged(found, {result.choice[class_of[n]]: copies[n] for n in copies})
    assert best is not None
    return best


def _charged(found: Candidates, seconds: dict[int, float]) -> Candidates:
    """The candidates, of which some cost so many more `seconds`."""
    graph, start = found.graph, found.start
    costs = tuple([cost + seconds.get(k, 0.0) for k, cost in enumerate(graph.costs)])
    dearer = ChoiceGraph.unchecked(graph.size, graph.homes, graph.leaves, costs, graph.goals)
    again = Result(start.choice, dearer.cost(start.choice.values()))
    return replace(found, graph=dearer, start=again)


def assembly(found: Candidates, result: Result) -> Assembly:
    """The program and the groups that an extractor chose."""
    chosen = {cls: found.fragment(candidate) for cls, candidate in result.choice.items()}
    return assemble(found.classes, chosen, found.folding, found.model)


def schedule(found: Candidates, result: Result) -> Schedule:
    """The schedule that an extractor chose."""
    return place(assembly(found, result), found.model)
