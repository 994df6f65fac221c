"""Trials: extractors × models × rule sets × cost models × limits, in turn or in parallel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf, isclose
from pathlib import Path
from time import process_time
from typing import TypeAlias, TypeVar

from satura.backend.cores import usable_of
from satura.backend.target import threads_for
from satura.experiments.answers import answers
from satura.experiments.content import (
    check_kind,
    content_of,
    model_digest,
    of_graph,
    with_extractor,
)
from satura.experiments.parallel import RulesOfFiles, beside, in_turn, pack_rules, unpack_rules
from satura.experiments.typical import typical
from satura.pipeline.distributed import Client, each_on_workers
from satura.pipeline.models import Model, load
from satura.pipeline.rates import cost_model
from satura.pipeline.rule_sets import Rules, check
from satura.pipeline.sizes import Dims
from satura.pipeline.stages import saturate
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.errors import CallError, ProgramError, brief
from satura.rewrite.extract.choice_graph import NOISE, ChoiceGraph, Extractor, gap
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import EXTRACTORS, choices
from satura.rewrite.extract.greedy import tree_greedy
from satura.rewrite.extract.settle import schedule
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.program.arguments import check_named
from satura.rewrite.system.stopped import Stopped

GIVEN = "-"  # what does not apply to a choice graph
_ROUNDED = 1e-4  # how far a gap may be rounded, as by what shows six digits of a cost
OPEN = {"may be": "infinite"}  # of a field, as of the gap above a bound of 0


@dataclass(frozen=True)
class Trial:
    """One extractor on the e-graph of one model, rule set, cost model and limits.

    `cost` is that of the choice, in seconds; no choice of the same candidates costs less than
    `bound`, and `gap` is the share by which the cost may lie above the best of them. `predicted` is
    the cost of the schedule: it has the copies, too, that this turned out to need, and not what is
    computed of constants, so that it may lie below `cost` and `bound`. Processor seconds are those
    of saturation, of the candidates and of the extractor. `content` is a digest of all that the
    names stand for, with the code of functions and classes of one's own: trials with another one
    are of something that has changed.
    """

    model: str
    content: str
    rules: str
    cost_model: str
    limits: str
    extractor: str
    enodes: int
    candidates: int
    cost: float
    bound: float
    gap: float = field(metadata=OPEN)
    predicted: float
    dispatches: int
    copies: int
    saturation_seconds: float
    candidates_seconds: float
    extractor_seconds: float

    @property
    def key(self) -> Key:
        """Identifies the trial."""
        return self.model, self.rules, self.cost_model, self.limits, self.extractor

    @property
    def outcome(self) -> tuple[float, ...]:
        """The results that a deterministic extractor gives whenever the trial is repeated."""
        return self.enodes, self.candidates, self.cost, self.dispatches, self.copies

    @property
    def contradiction(self) -> str:
        """Which of its numbers are impossible, allowing for rounding; empty if none is."""
        if self.bound > self.cost * (1 + NOISE):
            return f"bound is {self.bound}, which is above cost, {self.cost}"
        found = gap(self.cost, self.bound)
        if not isclose(self.gap, found, rel_tol=_ROUNDED, abs_tol=_ROUNDED):
            return f"gap is {self.gap}, and {found} by cost and bound"
        return ""

    @property
    def graph(self) -> object:
        """Identifies its e-graph."""
        return self.key[:-1], of_graph(self.content), self.enodes, self.candidates

    @property
    def is_of_graph(self) -> bool:
        """Whether it was made on a choice graph, whose costs are not seconds."""
        return self.rules == GIVEN


Given = TypeVar("Given")
Key: TypeAlias = tuple[str, str, str, str, str]


@dataclass(frozen=True, eq=False)
class _Cell:
    """One e-graph to be, or a choice graph, and the extractors that are tried on it."""

    names: tuple[str, str, str, str]
    contents: Mapping[str, str]  # by extractor
    model: Model | ChoiceGraph
    rules: Rules | RulesOfFiles
    cost: CostModel
    limits: Limits
    extractors: Mapping[str, Extractor]

    def among(self, done: Mapping[Key, Trial]) -> dict[str, Trial]:
        """By extractor those of its trials that are done and were made on the content of now."""
        found = {extractor: done.get((*self.names, extractor)) for extractor in self.extractors}
        return {
            extractor: each
            for extractor, each in found.items()
            if each is not None and each.content == self.contents[extractor] != ""
        }

    def without(self, extractors: Collection[str]) -> _Cell | None:
        """The same for its other extractors; None where there is none."""
        left = {name: each for name, each in self.extractors.items() if name not in extractors}
        return replace(self, extractors=left) if left else None

    @property
    def name(self) -> str:
        """Its name in errors."""
        named = zip(("model", "rules", "cost model", "limits"), self.names, strict=True)
        return ", ".join(f"{what} {name!r}" for what, name in named if name != GIVEN)

    def about(self, extractor: str) -> tuple[str, str, str, str, str, str]:
        """The texts of the trial of an extractor."""
        return self.names[0], self.contents[extractor], *self.names[1:], extractor

    def run(self) -> list[Trial]:
        """Make the e-graph, and try all extractors on it. What is raised there names the cell."""
        try:
            if isinstance(self.model, ChoiceGraph):
                return list(_on_graph(self, self.model))
            return list(_on_model(self, self.model))
        except Stopped:
            raise
        except SystemExit as error:
            raise CallError(f"sys.exit({error.code!r}) was called in {self.name}") from error
        except Exception as error:
            error.add_note(f"in the trials of {self.name}")
            raise

    def to_send(self) -> _Cell:
        """The same for another process: rules by their files, the model's path from the root."""
        assert not isinstance(self.rules, RulesOfFiles)
        is_path = isinstance(self.model, str | Path)
        model = Path(self.model).resolve() if is_path else self.model  # type: ignore[arg-type]
        return replace(self, rules=pack_rules(self.rules), model=model)


def trials(
    models: Mapping[str, Model | ChoiceGraph],
    rules: Sequence[str] | Mapping[str, Rules] = ("default",),
    extractors: Sequence[str] | Mapping[str, Extractor | str] = ("search",),
    costs: Sequence[str] | Mapping[str, CostModel | str] = ("reference",),
    limits: Mapping[str, Limits] | None = None,
    jobs: int = 1,
    done: Collection[Trial] = (),
    client: Client | None = None,
    threads: int | None = None,
    dims: Dims | None = None,
) -> Iterator[Trial]:
    """Every extractor on every e-graph, in this order as they are asked for.

    `rules`, `extractors` and `costs` ("reference", "default", "calibrated") are names of satura's
    own, or rule sets, functions and cost models by a name. Costs by name are for `threads`, all
    cores by default, but for those of "reference", which are for one; and all costs for the typical
    sizes of symbols that `dims` say, as in `satura.compile`. A model may be a choice graph, for
    which rules, costs and limits say nothing. `jobs` e-graphs are made at a time, in processes, of
    which there are no more than CPUs; or with a `client` (a `distributed.Client`) as many as its
    Dask cluster has threads. There, models and rules that are in files must be so on each worker,
    under the same path. Trials that are among those `done`, with the same `content`, are not made
    again, but given back, with a better bound where one is found. The content is also code of your
    own, and what that uses but for what is installed; files that it reads do not count.

    The bound is the best that the landmarks of a graph, its integer program's relaxation (with
    scipy, of at most 10,000 candidates) or any extractor on it have proved. Raises CallError for an
    unknown name, for what is not of the kinds above, and for an extractor's choice or bound that is
    wrong. What an extractor or a cost model raises has notes that say what was tried.
    """
    count = usable_of(jobs, "jobs")
    named = _by_name("costs", costs)
    priced = {name: cost_model(each, threads_for(threads)) for name, each in named.items()}
    cells = _cells(models, rules, extractors, priced, limits or {"default": Limits()}, dims or {})
    known = _by_key(done)
    given = [cell.among(known) for cell in cells]
    asked = [cell.without(found) for cell, found in zip(cells, given, strict=True)]
    missing = [cell for cell in asked if cell is not None]
    if client is not None:
        made = each_on_workers(_Cell.run, [cell.to_send() for cell in missing], client)
    else:
        work = [(cell.name, cell.run) for cell in missing]
        # Who asks for several has processes also on one CPU: a crash ends one of these only.
        made = in_turn(work) if jobs == 1 else beside(work, count)
    for cell, left, found in zip(cells, asked, given, strict=True):
        if left is None:
            yield from found.values()
        else:
            by_extractor = {**found, **{each.extractor: each for each in next(made)}}
            yield from with_best_bounds([by_extractor[name] for name in cell.extractors])


def with_best_bounds(found: Sequence[Trial]) -> list[Trial]:
    """Some trials, each with the best bound that any of them on the same e-graph has.

    A bound that the cost of another refutes, beyond rounding, does not count.
    """
    least: dict[object, float] = {}
    for each in found:
        least[each.graph] = min(each.cost, least.get(each.graph, inf))
    best = dict.fromkeys(least, 0.0)
    for each in found:
        cost = least[each.graph]
        if each.bound <= cost * (1 + NOISE):
            best[each.graph] = max(best[each.graph], min(each.bound, cost))
    bounds = [best[each.graph] for each in found]
    return [
        replace(each, bound=bound, gap=gap(each.cost, bound))
        for each, bound in zip(found, bounds, strict=True)
    ]


def _cells(
    models: Mapping[str, Model | ChoiceGraph],
    rules: Sequence[str] | Mapping[str, Rules],
    extractors: Sequence[str] | Mapping[str, Extractor | str],
    costs: Mapping[str, CostModel],
    limits: Mapping[str, Limits],
    dims: Dims,
) -> list[_Cell]:
    check_named(models, "models")
    check_named(limits, "limits")
    check_named(dims, "dims")
    chosen = _extractors(extractors)
    named = _by_name("rules", rules)
    for chosen_rules in named.values():
        check(chosen_rules)
    sizes = typical(models.values(), dims)
    priced = {name: cost_model(each, sizes=sizes) for name, each in costs.items()}
    for limit, each in limits.items():
        if not isinstance(each, Limits):
            raise CallError(f"limits {limit!r} are satura.Limits(...), not {brief(each)}")

    def by_extractor(content: str) -> dict[str, str]:
        return {name: with_extractor(content, name, each) for name, each in chosen.items()}

    found = []
    for name, model in models.items():
        check_kind(name, model)
        if isinstance(model, ChoiceGraph):
            _check_computable(model, name)
        digest = model_digest(model)
        if isinstance(model, ChoiceGraph):
            names, plain = (name, GIVEN, GIVEN, GIVEN), CostModel()
            contents = by_extractor(content_of(digest, GIVEN, plain, Limits()))
            found.append(_Cell(names, contents, model, "none", plain, Limits(), chosen))
            continue
        for rule, cost, limit in product(named, priced, limits):
            given = named[rule], priced[cost], limits[limit]
            contents = by_extractor(content_of(digest, *given))
            found.append(_Cell((name, rule, cost, limit), contents, model, *given, chosen))
    return found


def _check_computable(graph: ChoiceGraph, name: str) -> None:
    """Raise ProgramError where a goal cannot be computed."""
    try:
        tree_greedy(graph)
    except ProgramError as error:
        raise ProgramError(f"the choice graph {name!r}: {error}") from None


def _by_key(done: Collection[Trial]) -> dict[Key, Trial]:
    """Trials that are done, by their keys. Raises CallError for what is not trials."""
    if isinstance(done, str | Path):
        raise CallError(f"done is trials, not {brief(done)}: give done=read_trials(path)")
    if not isinstance(done, Iterable):
        raise CallError(f"done is trials, not {brief(done)}")
    for each in done:
        if not isinstance(each, Trial):
            raise CallError(f"done is trials, as read_trials(path) gives, not of {brief(each)}")
    return {trial.key: trial for trial in done}


def _by_name(what: str, given: Sequence[str] | Mapping[str, Given]) -> Mapping[str, Given | str]:
    """What is given by names, and names by themselves.

    Raises CallError for a single text, and for what is listed without a name.
    """
    if isinstance(given, Mapping):
        return given
    kinds = f"{what} are a list of names or a dict by name, not"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise CallError(f"{kinds} {brief(given)}")
    names = list(given)
    for each in names:
        if not isinstance(each, str):
            raise CallError(
                f"{kinds} a {type(given).__name__} with {brief(each)}: give it a name, as in"
                f" {what}={{'mine': ...}}"
            )
    return {name: name for name in names}


def _on_model(cell: _Cell, model: Model) -> Iterator[Trial]:
    program = load(model)
    started = process_time()
    classes = saturate(program, unpack_rules(cell.rules), cell.limits, cost=cell.cost).classes
    saturated = process_time()
    found = choices(classes, cell.cost)
    listed = process_time()
    for each in answers(cell.extractors, found.graph):
        cost, bound = each.result.cost, each.result.bound
        made = schedule(found, each.result)
        counts = statistics(made)
        yield Trial(
            *cell.about(each.extractor), classes.node_count, len(found.found), cost, bound,
            gap(cost, bound), made.seconds, counts["dispatch-count"], counts["copy-count"],
            saturated - started, listed - saturated, each.seconds,
        )  # fmt: skip


def _on_graph(cell: _Cell, graph: ChoiceGraph) -> Iterator[Trial]:
    count = len(graph.homes)
    for each in answers(cell.extractors, graph):
        cost, bound = each.result.cost, each.result.bound
        yield Trial(
            *cell.about(each.extractor), count, count, cost, bound, gap(cost, bound),
            cost, len(each.result.choice), 0, 0.0, 0.0, each.seconds,
        )  # fmt: skip


def _extractors(wanted: Sequence[str] | Mapping[str, Extractor | str]) -> Mapping[str, Extractor]:
    found: dict[str, Extractor] = {}
    for name, each in _by_name("extractors", wanted).items():
        if isinstance(each, str):
            if each not in EXTRACTORS:
                raise CallError(
                    f"there is no extractor {brief(each)}; choose from {list(EXTRACTORS)}"
                )
            found[name] = EXTRACTORS[each]
        elif callable(each):
            found[name] = each
        else:
            raise CallError(
                f"the extractor {name!r} is {brief(each)}, not a function of a choice graph"
            )
    return found
