"""Trials: extractors × models × rule sets × cost models × limits, in turn or in parallel."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import process_time
from typing import TypeAlias

from satura.distributed import Client, each_on_workers
from satura.experiments.parallel import RulesOfFiles, beside, in_turn, pack_rules, unpack_rules
from satura.pipeline.models import Model, load
from satura.pipeline.rates import cost_model
from satura.pipeline.rule_sets import Rules, check
from satura.pipeline.stages import saturate
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.errors import CallError
from satura.rewrite.extract.choice_graph import ChoiceGraph, Extractor, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.exact import relax
from satura.rewrite.extract.extract import EXTRACTORS, choices, schedule
from satura.rewrite.extract.statistics import statistics

GIVEN = "-"  # what does not apply to a choice graph


@dataclass(frozen=True)
class Trial:
    """One extractor on the e-graph of one model, rule set, cost model and limits.

    `cost` is that of the choice, in seconds; no choice of the same candidates costs less than
    `bound`, and `gap` is the share by which the cost may lie above the best of them. `predicted`
    has the copies, too, that the schedule turned out to need. Processor seconds are those of
    saturation, of the candidates and of the extractor.
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

    @property
    def graph(self) -> object:
        """What tells its e-graph from others."""
        return self.key[:-1], self.enodes, self.candidates


Key: TypeAlias = tuple[str, str, str, str, str]


@dataclass(frozen=True, eq=False)
class _Cell:
    """One e-graph to be, or a choice graph, and the extractors that are tried on it."""

    names: tuple[str, str, str, str]
    model: Model | ChoiceGraph
    rules: Rules | RulesOfFiles
    cost: CostModel
    limits: Limits
    extractors: Mapping[str, Extractor]

    @property
    def keys(self) -> list[Key]:
        return [(*self.names, extractor) for extractor in self.extractors]

    def run(self) -> list[Trial]:
        """Make the e-graph, and try all extractors on it."""
        if isinstance(self.model, ChoiceGraph):
            return with_best_bounds(list(_on_graph(self, self.model)))
        return with_best_bounds(list(_on_model(self, self.model)))

    def to_send(self) -> _Cell:
        """The same for another process: rules by their files, the model's path from the root."""
        assert not isinstance(self.rules, RulesOfFiles)
        is_path = isinstance(self.model, str | Path)
        model = Path(self.model).resolve() if is_path else self.model  # type: ignore[arg-type]
        return replace(self, rules=pack_rules(self.rules), model=model)


def trials(
    models: Mapping[str, Model | ChoiceGraph],
    rules: Sequence[str] | Mapping[str, Rules] = ("default",),
    extractors: Sequence[str] | Mapping[str, Extractor] = ("search",),
    costs: Sequence[str] | Mapping[str, CostModel] = ("reference",),
    limits: Mapping[str, Limits] | None = None,
    jobs: int = 1,
    done: Collection[Trial] = (),
    client: Client | None = None,
) -> Iterator[Trial]:
    """Every extractor on every e-graph, in this order as they are asked for.

    `rules`, `extractors` and `costs` ("reference", "default", "calibrated") are names of satura's
    own, or rule sets, functions and cost models by a name. A model may be a choice graph, for which
    rules, costs and limits say nothing. `jobs` e-graphs are made at a time, in processes, or with a
    `client` (a `distributed.Client`) as many as its Dask cluster has threads. There, models and
    rules that are in files must be so on each worker, under the same path. An e-graph whose trials
    are all among those `done` is not made again: these are given back.

    The bound is the best that the landmarks of a graph, its integer program's relaxation (with
    scipy) or any extractor on it have proved. Raises CallError for an unknown name.
    """
    cells = _cells(models, rules, extractors, costs, limits or {"default": Limits()})
    if jobs < 1:
        raise CallError(f"jobs is {jobs}, but must be at least 1")
    known = {trial.key: trial for trial in done}
    missing = [cell for cell in cells if not known.keys() >= set(cell.keys)]
    if client is not None:
        made = each_on_workers(_Cell.run, [cell.to_send() for cell in missing], client)
    else:
        work = [cell.run for cell in missing]
        made = in_turn(work) if jobs == 1 else beside(work, jobs)
    for cell in cells:
        if cell in missing:
            yield from next(made)
        else:
            yield from (known[key] for key in cell.keys)


def with_best_bounds(found: Sequence[Trial]) -> list[Trial]:
    """Some trials, each with the best bound that any of them on the same e-graph has."""
    best: dict[object, float] = {}
    for each in found:
        best[each.graph] = max(each.bound, best.get(each.graph, 0.0))
    bounds = [best[each.graph] for each in found]
    return [
        replace(each, bound=bound, gap=_gap(each.cost, bound))
        for each, bound in zip(found, bounds, strict=True)
    ]


def _cells(
    models: Mapping[str, Model | ChoiceGraph],
    rules: Sequence[str] | Mapping[str, Rules],
    extractors: Sequence[str] | Mapping[str, Extractor],
    costs: Sequence[str] | Mapping[str, CostModel],
    limits: Mapping[str, Limits],
) -> list[_Cell]:
    chosen = _extractors(extractors)
    named = rules if isinstance(rules, Mapping) else {name: name for name in rules}
    for each in named.values():
        check(each)
    if not isinstance(costs, Mapping):
        costs = {name: cost_model(name) for name in costs}
    found = []
    for name, model in models.items():
        if isinstance(model, ChoiceGraph):
            names = name, GIVEN, GIVEN, GIVEN
            found.append(_Cell(names, model, "none", CostModel(), Limits(), chosen))
            continue
        found += [
            _Cell(
                (name, label, cost, limit), model, chosen_rules, costs[cost], limits[limit], chosen
            )
            for label, chosen_rules in named.items()
            for cost in costs
            for limit in limits
        ]
    return found


def _on_model(cell: _Cell, model: Model) -> Iterator[Trial]:
    program = load(model)
    started = process_time()
    classes = saturate(program, unpack_rules(cell.rules), cell.limits, cost=cell.cost).classes
    saturated = process_time()
    found = choices(classes, cell.cost)
    listed = process_time()
    bound = relax(found.graph).bound
    for extractor, choose in cell.extractors.items():
        before = process_time()
        result = _chosen(extractor, choose, found.graph)
        seconds = process_time() - before
        best = max(bound, result.bound)
        made = schedule(found, result)
        counts = statistics(made)
        yield Trial(
            *cell.names, extractor, classes.node_count, len(found.found), result.cost, best,
            _gap(result.cost, best), made.seconds, counts["dispatch-count"], counts["copy-count"],
            saturated - started, listed - saturated, seconds,
        )  # fmt: skip


def _on_graph(cell: _Cell, graph: ChoiceGraph) -> Iterator[Trial]:
    bound, count = relax(graph).bound, len(graph.homes)
    for extractor, choose in cell.extractors.items():
        before = process_time()
        result = _chosen(extractor, choose, graph)
        seconds = process_time() - before
        best = max(bound, result.bound)
        yield Trial(
            *cell.names, extractor, count, count, result.cost, best, _gap(result.cost, best),
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
