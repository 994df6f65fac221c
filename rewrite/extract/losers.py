"""Losers: the candidates that an extractor did not choose for a class, and what decided.

Each loser is forced in its turn: the rest of the program is chosen again beside it. By how much the
whole gets dearer is split into the terms of the cost model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.candidates import Candidates
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.features import copy_features
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.fragments import Fragment
from satura.rewrite.extract.greedy import cheapest_dags, chosen
from satura.rewrite.extract.local_search import improve

MOST = 8  # losers of which the rest is chosen again: each takes a search
LEAST = 1e-12  # seconds of a term that says nothing
OTHER = "constants and ties"
COPIES = "copies"  # of parts of a concat, which the choice turned out to need


@dataclass(frozen=True)
class Contender:
    """A candidate for a class: its fragment, its own seconds, and those of the whole with it.

    `terms` are by what rates the whole costs more, or less, than the choice; the first weighs most.
    """

    fragment: Fragment
    seconds: float
    whole: float
    terms: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Contest:
    """The candidate that was chosen, the nearest losers in order, and how many were not tried.

    With `useless` others the class was not computed at all: what reads it chose something else.
    """

    chosen: Contender
    losers: tuple[Contender, ...]
    useless: int
    left_out: int


def contest(found: Candidates, result: Result, cls: int, most: int = MOST) -> Contest:
    """Why `cls` is computed as it is in `result`."""
    graph = found.graph
    winner = result.choice[cls]
    ranked = sorted(
        (each for each in graph.candidates[cls] if each != winner),
        key=lambda each: graph.costs[each] + _unpaid(graph, result.choice, each),
    )
    before = _terms(found, result.choice)
    losers, useless = [], 0
    for candidate in ranked[:most]:
        forced = _force(graph, result, cls, candidate)
        if forced is not None and cls not in forced.choice:
            useless += 1
        elif forced is not None:
            after = _terms(found, forced.choice)
            shifts = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in before | after}
            terms = sorted(shifts.items(), key=lambda term: -abs(term[1]))
            kept = tuple(term for term in terms if abs(term[1]) > LEAST)
            fragment, own = found.fragment(candidate), graph.costs[candidate]
            losers.append(Contender(fragment, own, forced.cost, kept))
    losers.sort(key=lambda loser: loser.whole)
    chosen = Contender(found.fragment(winner), graph.costs[winner], result.cost)
    return Contest(chosen, tuple(losers), useless, max(0, len(ranked) - most))


def _unpaid(graph: ChoiceGraph, choice: Mapping[int, int], candidate: int) -> float:
    """The cost of the leaves that no chosen candidate computes, each computed alone."""
    cheapest = (graph.candidates[leaf][:1] for leaf in graph.leaves[candidate])
    return sum(graph.costs[first] for (first,) in cheapest if graph.homes[first] not in choice)


def _force(graph: ChoiceGraph, result: Result, cls: int, candidate: int) -> Result | None:
    """The best choice found in which nothing but `candidate` computes `cls`, if anything does; None
    where there is none."""
    kept = [k for k, home in enumerate(graph.homes) if home != cls or k == candidate]
    number = {k: position for position, k in enumerate(kept)}
    less = ChoiceGraph(
        graph.size,
        tuple(graph.homes[k] for k in kept),
        tuple(graph.leaves[k] for k in kept),
        tuple(graph.costs[k] for k in kept),
        graph.goals,
    )
    others = cheapest_dags(less)
    try:
        start = chosen(less, others)
    except ProgramError:
        return None
    starts = [start]
    picks = {**start.choice, **{c: number[k] for c, k in result.choice.items() if c != cls}}
    picks[cls] = number[candidate]
    if less.in_turn(picks.values()).keys() >= set(less.goals):
        choice = less.needed(picks)
        starts.append(Result(choice, less.cost(choice.values())))
    found = min((improve(less, each, others) for each in starts), key=lambda each: each.cost)
    return replace(found, choice={c: kept[k] for c, k in found.choice.items()})


def _terms(found: Candidates, choice: Mapping[int, int]) -> dict[str, float]:
    """Seconds of a whole choice by rate; they add up to its cost."""
    total: dict[str, float] = {}
    for candidate in choice.values():
        fragment = found.fragment(candidate)
        features = [fragment.features(found.classes)]
        is_placement = fragment.form is Fused.PLACEMENT
        if is_placement:
            features = [copy_features("", size) for size in fragment.copied]
        left = found.graph.costs[candidate]
        for each in features:
            for name, seconds in found.model.terms(each).items():
                total[name] = total.get(name, 0.0) + seconds
                left -= seconds
        rest = COPIES if is_placement and left > 2 * found.model.constant else OTHER
        total[rest] = total.get(rest, 0.0) + left
    return total
