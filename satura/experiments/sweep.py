"""Trials: extractors × models × rule sets × cost models × limits, in turn or in parallel."""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from math import inf
from time import process_time
from typing import TypeAlias

from satura.pipeline.models import Model, load
from satura.pipeline.rates import COSTS, cost_model
from satura.pipeline.rule_sets import Rules, rule_set
from satura.pipeline.stages import saturate
from satura.rewrite.egraph.saturate import Limits
from satura.rewrite.errors import CallError, SaturaError
from satura.rewrite.extract.choice_graph import ChoiceGraph, Extractor, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.exact import relaxed
from satura.rewrite.extract.extract import EXTRACTORS, choices, schedule
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.language.dsl import RuleSet

REFERENCE = "reference"
GIVEN = "-"  # what does not apply to a choice graph


@dataclass(frozen=True)
class Trial:
    """One extractor on the e-graph of one model, rule set, cost model and limits.

    `cost` is that of the choice, in seconds; no choice costs less than `bound`, and `gap` is the
    share by which the cost may lie above the best. `predicted` has the copies, too, that the
    schedule turned out to need. Processor seconds are those of saturation, of the candidates and
    of the extractor.
    """

    model: str
    rules: str
    cost_model: str
    limits: str
    extractor: str
    enodes: int
    candidates: int
    cost: float
    bound: float
    gap: float
    predicted: float
    dispatches: int
    copies: int
    saturation_seconds: float
    candidates_seconds: float
    extractor_seconds: float

    @property
    def key(self) -> Key:
        """What was tried on what."""
        return self.model, self.rules, self.cost_model, self.limits, self.extractor


Key: TypeAlias = tuple[str, str, str, str, str]


@dataclass(frozen=True, eq=False)
class _Cell:
    """One e-graph to be, or a choice graph, and the extractors that are tried on it."""

    names: tuple[str, str, str, str]
    model: Model | ChoiceGraph
    rules: RuleSet
    cost: CostModel
    limits: Limits
    extractors: Mapping[str, Extractor]

    @property
    def keys(self) -> list[Key]:
        return [(*self.names, extractor) for extractor in self.extractors]

    def run(self) -> list[Trial]:
        """Make the e-graph, and try all extractors on it."""
        if isinstance(self.model, ChoiceGraph):
            return list(_on_graph(self, self.model))
        return list(_on_model(self, self.model))


def trials(
    models: Mapping[str, Model | ChoiceGraph],
    rules: Sequence[str] | Mapping[str, Rules] = ("default",),
    extractors: Sequence[str] | Mapping[str, Extractor] = ("search",),
    costs: Sequence[str] | Mapping[str, CostModel] = (REFERENCE,),
    limits: Mapping[str, Limits] | None = None,
    jobs: int = 1,
    done: Collection[Trial] = (),
) -> Iterator[Trial]:
    """Every extractor on every e-graph, in this order as they are asked for.

    `rules`, `extractors` and `costs` ("reference", "default", "calibrated") are names of satura's
    own, or rule sets, functions and cost models by a name. A model may be a choice graph, for which
    rules, costs and limits say nothing. `jobs` e-graphs are made at a time, in processes. An
    e-graph whose trials are all among those `done` is not made again: these are given back.

    The bound is the best that the landmarks of a graph, its integer program's relaxation (with
    scipy) or any extractor on it have proved. Raises CallError for an unknown name.
    """
    cells = _cells(models, rules, extractors, costs, limits or {"default": Limits()})
    if jobs < 1:
        raise CallError(f"jobs is {jobs}, but must be at least 1")
    known = {trial.key: trial for trial in done}
    missing = [cell for cell in cells if not known.keys() >= set(cell.keys)]
    made = _in_turn(missing) if jobs == 1 else _beside(missing, jobs)
    for cell in cells:
        if cell in missing:
            yield from next(made)
        else:
            yield from (known[key] for key in cell.keys)


def _cells(
    models: Mapping[str, Model | ChoiceGraph],
    rules: Sequence[str] | Mapping[str, Rules],
    extractors: Sequence[str] | Mapping[str, Extractor],
    costs: Sequence[str] | Mapping[str, CostModel],
    limits: Mapping[str, Limits],
) -> list[_Cell]:
    chosen = _extractors(extractors)
    named = rules if isinstance(rules, Mapping) else {name: name for name in rules}
    sets = {label: rule_set(each) for label, each in named.items()}
    if not isinstance(costs, Mapping):
        for name in costs:
            if name not in (REFERENCE, *COSTS):
                known = [REFERENCE, *COSTS]
                raise CallError(f"there is no cost model {name!r}; choose from {known}")
        costs = {name: CostModel() if name == REFERENCE else cost_model(name) for name in costs}
    found = []
    for name, model in models.items():
        if isinstance(model, ChoiceGraph):
            names = name, GIVEN, GIVEN, GIVEN
            found.append(_Cell(names, model, RuleSet(), CostModel(), Limits(), chosen))
            continue
        found += [
            _Cell(
                (name, label, cost, limit), model, sets[label], costs[cost], limits[limit], chosen
            )
            for label in sets
            for cost in costs
            for limit in limits
        ]
    return found


def _in_turn(cells: Sequence[_Cell]) -> Iterator[list[Trial]]:
    for cell in cells:
        yield cell.run()


_beside_now: Sequence[_Cell] = ()
"""The cells of a parallel run: processes inherit them, as a user's functions cannot be sent."""


def _beside(cells: Sequence[_Cell], jobs: int) -> Iterator[list[Trial]]:
    global _beside_now
    _beside_now = cells
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"))
    try:
        yield from pool.map(_run_one, range(len(cells)))
    except BrokenProcessPool:
        raise SaturaError(
            "a process that ran trials ended without a word, perhaps for want of memory:"
            " take fewer jobs"
        ) from None
    finally:
        _beside_now = ()
        pool.shutdown(cancel_futures=True)


def _run_one(number: int) -> list[Trial]:
    return _beside_now[number].run()


def _on_model(cell: _Cell, model: Model) -> Iterator[Trial]:
    program = load(model)
    started = process_time()
    classes = saturate(program, cell.rules, cell.limits, cost=cell.cost).classes
    saturated = process_time()
    found = choices(classes, cell.cost)
    listed = process_time()
    bound = relaxed(found.graph).bound
    for extractor, choose in cell.extractors.items():
        before = process_time()
        result = _chosen(extractor, choose, found.graph)
        seconds = process_time() - before
        bound = max(bound, result.bound)
        made = schedule(found, result)
        counts = statistics(made)
        yield Trial(
            *cell.names, extractor, classes.node_count, len(found.found), result.cost, bound,
            _gap(result.cost, bound), made.seconds, counts["dispatch-count"], counts["copy-count"],
            saturated - started, listed - saturated, seconds,
        )  # fmt: skip


def _on_graph(cell: _Cell, graph: ChoiceGraph) -> Iterator[Trial]:
    bound, count = relaxed(graph).bound, len(graph.homes)
    for extractor, choose in cell.extractors.items():
        before = process_time()
        result = _chosen(extractor, choose, graph)
        seconds = process_time() - before
        bound = max(bound, result.bound)
        yield Trial(
            *cell.names, extractor, count, count, result.cost, bound, _gap(result.cost, bound),
            result.cost, len(result.choice), 0, 0.0, 0.0, seconds,
        )  # fmt: skip


def _chosen(name: str, choose: Extractor, graph: ChoiceGraph) -> Result:
    """What an extractor chooses, at the cost that it has in the graph.

    Raises CallError for what is not a choice.
    """
    result = choose(graph)
    if not isinstance(result, Result):
        raise CallError(f"the extractor {name!r} gave a {type(result).__name__}, not a Result")
    try:
        graph.needed(result.choice)
        is_of_its_class = all(graph.homes[pick] == cls for cls, pick in result.choice.items())
    except (KeyError, IndexError):
        is_of_its_class = False
    if not is_of_its_class:
        raise CallError(f"the extractor {name!r} did not choose a candidate for each class needed")
    return replace(result, cost=graph.cost(result.choice.values()))


def _extractors(wanted: Sequence[str] | Mapping[str, Extractor]) -> Mapping[str, Extractor]:
    if isinstance(wanted, Mapping):
        return wanted
    for name in wanted:
        if name not in EXTRACTORS:
            raise CallError(f"there is no extractor {name!r}; choose from {list(EXTRACTORS)}")
    return {name: EXTRACTORS[name] for name in wanted}


def _gap(cost: float, bound: float) -> float:
    """By which share a cost lies above a bound."""
    if bound > 0:
        return max(0.0, cost / bound - 1)
    return 0.0 if cost <= 0 else inf
