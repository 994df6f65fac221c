"""Extraction: from an e-graph to the cheapest schedule that a method finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from satura.rewrite.egraph.classes import EClasses
from satura.rewrite.errors import CallError
from satura.rewrite.extract.assemble import Assembly, assemble
from satura.rewrite.extract.candidates import MAX_ROUNDS, Candidates, candidates
from satura.rewrite.extract.choice_graph import Extractor, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.exact import exact
from satura.rewrite.extract.greedy import dag_greedy, tree_greedy
from satura.rewrite.extract.local_search import local_search
from satura.rewrite.extract.placement import place
from satura.rewrite.extract.schedule import Schedule

Method = Literal["search", "exact", "dag", "tree"]

EXTRACTORS: Mapping[str, Extractor] = {
    "search": local_search,
    "exact": exact,
    "dag": dag_greedy,
    "tree": tree_greedy,
}


def extract(
    classes: EClasses,
    model: CostModel | None = None,
    method: Method | Extractor | None = None,
) -> Schedule:
    """The schedule that an extractor finds under a cost model.

    `method` is "search" (local search from both greedy choices), "exact" (an integer program,
    needs scipy), "dag" (greedy, shared work is paid once), "tree" (greedy, shared work is paid once
    per use), or an extractor. Without it, the search also starts from the choice that the
    candidates were made for. Raises ProgramError where an output cannot be computed, CallError for
    an unknown method.
    """
    extractor = EXTRACTORS.get(method) if isinstance(method, str) else method
    if isinstance(method, str) and extractor is None:
        raise CallError(f"there is no method {method!r}; choose from {list(EXTRACTORS)}")
    found = choices(classes, model)
    graph = found.graph
    return schedule(found, extractor(graph) if extractor else local_search(graph, found.start))


def appraise(classes: EClasses, model: CostModel | None = None) -> Schedule:
    """A good schedule at a third of the time, for an e-graph that may still grow."""
    found = choices(classes, model, rounds=0)
    return schedule(found, found.start)


def choices(
    classes: EClasses, model: CostModel | None = None, rounds: int = MAX_ROUNDS
) -> Candidates:
    """The candidates of an e-graph. Raises ProgramError where an output cannot be computed."""
    static = zip(classes.known, classes.types, strict=True)
    known = tuple(known and not type_.symbols for known, type_ in static)
    chosen = model or CostModel()
    return candidates(replace(classes, known=known, sizes=chosen.sizes), chosen, rounds)


def schedule(found: Candidates, result: Result) -> Schedule:
    """The schedule that an extractor chose."""
    return place(assembly(found, result), found.model)


def assembly(found: Candidates, result: Result) -> Assembly:
    """The program and the groups that an extractor chose."""
    chosen = {cls: found.fragments[candidate] for cls, candidate in result.choice.items()}
    return assemble(found.classes, chosen, found.folding, found.model)
