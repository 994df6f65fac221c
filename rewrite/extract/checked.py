"""The parts of a choice graph, which may be made by hand: do they make a graph?"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from numbers import Real
from typing import cast

from satura.rewrite.errors import CallError, brief
from satura.rewrite.program.arguments import as_number

DEAREST = 1e250
"""The most that a candidate may cost: those of a graph can be added up, and with repetitions."""


def check_parts(size: object, homes: object, leaves: object, costs: object, goals: object) -> None:
    """Raise CallError for a part of another kind, classes outside, a candidate without all of its
    parts, or costs that cannot be added up."""
    computed, computing = _listed("homes", homes), _listed("leaves", leaves)
    priced, wanted = _listed("costs", costs), _listed("goals", goals)
    if not len(computed) == len(computing) == len(priced):
        raise CallError(
            f"the choice graph has {len(computed)} homes, {len(computing)} leaves and"
            f" {len(priced)} costs: each candidate has one of all"
        )
    count = as_number(size)
    if count is None or count < 0:
        raise CallError(
            f"the choice graph has the size {brief(size)}, which is no number of classes"
        )
    read = [_listed(f"leaves[{k}]", each) for k, each in enumerate(computing)]
    if not _are_classes(chain(computed, wanted, chain.from_iterable(read)), count):
        for candidate, (home, own) in enumerate(zip(computed, read, strict=True)):
            _check_classes(f"candidate {candidate} of the choice graph computes", [home], count)
            _check_classes(f"candidate {candidate} of the choice graph reads", own, count)
        _check_classes("the choice graph has the goal", wanted, count)
    for candidate, cost in enumerate(priced):
        if not _is_cost(cost):
            raise CallError(
                f"candidate {candidate} of the choice graph costs {brief(cost)}: costs are numbers"
                f" from 0 to {DEAREST:g}"
            )


def _listed(part: str, value: object) -> Collection[object]:
    if not isinstance(value, Collection):
        raise CallError(f"{part} of the choice graph are a tuple, not {brief(value)}")
    return value


def _are_classes(values: Iterable[object], size: int) -> bool:
    """Whether all are Python's integers below `size`: most graphs are large, and such."""
    found = list(values)
    if not set(map(type, found)) <= {int}:
        return False
    numbers = cast("list[int]", found)
    return min(numbers, default=0) >= 0 and max(numbers, default=-1) < size


def _check_classes(which: str, classes: Iterable[object], size: int) -> None:
    for each in classes:
        number = as_number(each)
        if number is None or not 0 <= number < size:
            raise CallError(f"{which} {brief(each)}: classes are numbers below its size, {size}")


def _is_cost(cost: object) -> bool:
    if type(cost) is float:
        return 0 <= cost <= DEAREST
    # Types of `Real` say nothing of >=, which 0 <= asks, though all of its kinds have it.
    return isinstance(cost, Real) and not isinstance(cost, bool) and 0 <= cost <= DEAREST  # type: ignore[operator]
