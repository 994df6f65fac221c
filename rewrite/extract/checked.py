"""Choice graphs that are made by hand: is what they say a graph?"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real

from satura.rewrite.errors import CallError, brief
from satura.rewrite.extract.choice_graph import DEAREST, ChoiceGraph
from satura.rewrite.program.arguments import as_number


def check_graph(graph: ChoiceGraph, name: str = "") -> None:
    """Raise CallError for a choice graph with a part of another kind, classes outside, a candidate
    without all of its parts, or costs that cannot be added up."""
    called = f"the choice graph {name!r}" if name else "the choice graph"
    homes, leaves, costs, goals = (
        _listed(called, part, getattr(graph, part))
        for part in ("homes", "leaves", "costs", "goals")
    )
    if not len(homes) == len(leaves) == len(costs):
        raise CallError(
            f"{called} has {len(homes)} homes, {len(leaves)} leaves and {len(costs)} costs: each"
            " candidate has one of all"
        )
    size = as_number(graph.size)
    if size is None:
        raise CallError(f"{called} has the size {brief(graph.size)}, which is no number of classes")
    for candidate, (home, own, cost) in enumerate(zip(homes, leaves, costs, strict=True)):
        of = f"candidate {candidate} of {called}"
        _check_classes(f"{of} computes", [home], size)
        _check_classes(f"{of} reads", _listed(of, f"leaves[{candidate}]", own), size)
        is_number = isinstance(cost, Real) and not isinstance(cost, bool)
        # Types of `Real` say nothing of >=, which 0 <= asks, though all of its kinds have it.
        if not is_number or not 0 <= cost <= DEAREST:  # type: ignore[operator]
            raise CallError(f"{of} costs {brief(cost)}: costs are numbers from 0 to {DEAREST:g}")
    _check_classes(f"{called} has the goal", goals, size)


def _listed(called: str, part: str, value: object) -> list[object]:
    if not isinstance(value, Iterable):
        raise CallError(f"{part} of {called} are a tuple, not {brief(value)}")
    return list(value)


def _check_classes(which: str, classes: Iterable[object], size: int) -> None:
    for each in classes:
        number = as_number(each)
        if number is None or not 0 <= number < size:
            raise CallError(f"{which} {brief(each)}: classes are numbers below its size, {size}")
