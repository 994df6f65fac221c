"""Experiments: what extractors choose on the e-graphs of models, at what cost, and how good it is.

from satura.experiments import trials

for trial in trials({"mine": "model.onnx"}, extractors={"mine": my_extractor}):
    print(trial.extractor, trial.cost, trial.gap)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from time import process_time

from satura.pipeline.models import Model, load
from satura.pipeline.rule_sets import Rules, rule_set
from satura.pipeline.stages import saturate
from satura.rewrite.egraph.saturate import Limits
from satura.rewrite.errors import CallError
from satura.rewrite.extract.choice_graph import Extractor
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import EXTRACTORS, choices, schedule
from satura.rewrite.extract.landmarks import landmarks
from satura.rewrite.extract.statistics import statistics


@dataclass(frozen=True)
class Trial:
    """One extractor on the e-graph of one model and rule set.

    `cost` is that of the choice, in seconds; no choice costs less than `bound`, and `gap` is the
    share by which the cost may lie above the best. `predicted` has the copies, too, that the
    schedule turned out to need. Processor seconds are those of saturation, of the candidates and
    of the extractor.
    """

    model: str
    rules: str
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


def trials(
    models: Mapping[str, Model],
    rules: Sequence[str] | Mapping[str, Rules] = ("default",),
    extractors: Sequence[str] | Mapping[str, Extractor] = ("search",),
    cost_model: CostModel | None = None,
    limits: Limits | None = None,
) -> Iterator[Trial]:
    """Every extractor on every e-graph, one after the other as they are asked for.

    `rules` and `extractors` are names of satura's own, or rule sets and functions by a name. The
    bound is the best that the landmarks of a graph, or any extractor on it, have proved by then.
    Raises CallError for an unknown name.
    """
    chosen = _extractors(extractors)
    named = rules if isinstance(rules, Mapping) else dict(zip(rules, rules, strict=True))
    sets = {label: rule_set(each) for label, each in named.items()}
    for name, model in models.items():
        program = load(model)
        for label, each in sets.items():
            started = process_time()
            classes = saturate(program, each, limits).classes
            saturated = process_time()
            found = choices(classes, cost_model)
            listed = process_time()
            bound = landmarks(found.graph).bound
            for extractor, choose in chosen.items():
                before = process_time()
                result = choose(found.graph)
                seconds = process_time() - before
                bound = max(bound, result.bound)
                made = schedule(found, result)
                counts = statistics(made)
                yield Trial(
                    name, label, extractor, classes.node_count, len(found.found),
                    result.cost, bound, _gap(result.cost, bound), made.seconds,
                    counts["dispatch-count"], counts["copy-count"],
                    saturated - started, listed - saturated, seconds,
                )  # fmt: skip


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
