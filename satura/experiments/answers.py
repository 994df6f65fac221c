"""What extractors answer on one choice graph: judged, and with the best bound that is proved."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf, isnan
from time import process_time
from typing import SupportsFloat

from satura.rewrite.errors import CallError, brief
from satura.rewrite.extract.asked import asked
from satura.rewrite.extract.choice_graph import NOISE, ChoiceGraph, Extractor, Result
from satura.rewrite.extract.exact import relax
from satura.rewrite.extract.landmarks import landmarks
from satura.rewrite.program.arguments import as_number

LARGE = 10_000
"""Candidates of a graph beyond which its linear program is not solved: it could take hours."""


@dataclass(frozen=True)
class Answer:
    """A choice at the cost that it has in the graph, and the processor seconds that it took."""

    extractor: str
    result: Result
    seconds: float


def answers(extractors: Mapping[str, Extractor], graph: ChoiceGraph) -> list[Answer]:
    """What each extractor chooses, with the best bound that any of them proved, or the relaxation;
    in a graph of more than `LARGE` candidates the landmarks.

    Raises CallError for what is not a choice, and for a bound that a choice of any of them refutes.
    """
    if len(graph.homes) > LARGE:  # even a search may take longer there than what was asked for
        least, proved = inf, landmarks(graph).bound
    else:
        relaxed = relax(graph)
        least, proved = relaxed.cost, relaxed.bound
    found = []
    for name, choose in extractors.items():
        before = process_time()
        result = asked(f"the extractor {name!r}", choose, graph)
        seconds = process_time() - before
        found.append(Answer(name, judged(name, result, graph), seconds))
    least = min([least, *(each.result.cost for each in found)])
    for each in found:
        if each.result.bound > least * (1 + NOISE):
            raise CallError(
                f"the extractor {each.extractor!r} says that no choice costs less than"
                f" {each.result.bound:.10g}, but one costs {least:.10g}: its bound is wrong"
            )
    bound = min(least, max([proved, *(each.result.bound for each in found)]))
    return [replace(each, result=replace(each.result, bound=bound)) for each in found]


def judged(name: str, result: object, graph: ChoiceGraph) -> Result:
    """What an extractor gave, at the cost that it has in the graph.

    Of a choice for further classes only the part that the goals need counts. Raises CallError for
    what is not a choice with a bound.
    """
    if not isinstance(result, Result):
        raise CallError(f"the extractor {name!r} gave a {type(result).__name__}, not a Result")
    choice = _choice(name, result.choice, graph)
    try:
        needed = graph.needed(choice)
    except KeyError as error:
        raise _no_choice(name, f": none for class {error.args[0]}") from None
    computed = graph.in_turn(needed.values())
    if circular := [cls for cls in needed if cls not in computed]:
        raise CallError(
            f"the extractor {name!r} chose candidates that read each other in a circle: class"
            f" {circular[0]} is never computed"
        )
    return Result(needed, graph.cost(needed.values()), _bound(name, result.bound))


def _choice(name: str, choice: object, graph: ChoiceGraph) -> dict[int, int]:
    """Candidates by the classes that they compute."""
    if not isinstance(choice, Mapping):
        raise CallError(
            f"the extractor {name!r} gave the choice {brief(choice)}, not candidates by class"
        )
    found = {}
    for cls, given in choice.items():
        pick = as_number(given)
        if pick is None or not 0 <= pick < len(graph.homes) or graph.homes[pick] != cls:
            raise _no_choice(name, f": {brief(given)} is not one of class {brief(cls)}")
        found[graph.homes[pick]] = pick
    return found


def _no_choice(name: str, why: str) -> CallError:
    return CallError(
        f"the extractor {name!r} did not choose a candidate for each class needed{why}"
    )


def _bound(name: str, bound: object) -> float:
    if isinstance(bound, SupportsFloat):
        with suppress(TypeError, ValueError, OverflowError):
            if not isnan(found := float(bound)):
                return found
    raise CallError(f"the extractor {name!r} gave the bound {brief(bound)}, which is not a number")
