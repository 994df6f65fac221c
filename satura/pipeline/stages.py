"""The stages before the kernels, one after another, each timed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from satura.backend.lower.walk import LoweringError
from satura.pipeline.models import Model, load
from satura.pipeline.phases import Phases, Progress
from satura.pipeline.rewritten import Rewritten, cut_short, warn_if_cut_short, warn_if_struck
from satura.pipeline.rule_sets import Rules, is_ours, rule_set
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import Saturation
from satura.rewrite.errors import ProgramError, RuleError
from satura.rewrite.extract.candidates import Candidates, is_small
from satura.rewrite.extract.choice_graph import Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import (
    Appraised,
    appraiser,
    choices,
    extract_unrefused,
    searched,
)
from satura.rewrite.extract.schedule import Refusals, Schedule
from satura.rewrite.extract.settle import Settled, settle
from satura.rewrite.isolation.guarded import PATIENCE, saturate_guarded
from satura.rewrite.language.dsl import Rule, RuleSet
from satura.rewrite.program.program import Program
from satura.rewrite.system.garbage import without_collections

_SMALL = 1500  # e-nodes: searching them takes less than half a second
_LARGE = 8000  # e-nodes: a wide search of more takes many seconds
_FUSED = 0.5  # share of the time that fusion can save, from which on a wide search is worth it
_ROUNDING = 1e-12  # sums in another order
_VERY_CLOSE = 1.001  # times the best, of a large program: its search takes a share of the time


@dataclass(frozen=True)
class Searched(Rewritten):
    """What a search made of a model, with the e-graph in which it was found."""

    saturation: Saturation = field(kw_only=True)


def rules_for(program: Program, rules: RuleSet) -> RuleSet:
    """The rules that run on `program`: `rules`, and the laws of movement of its users' ops."""
    return rules.for_ops(node.op for node in program.nodes)


def saturate(
    program: Program,
    rules: RuleSet,
    limits: Limits | None = None,
    strict: bool = False,
    patience: float = PATIENCE,
    cost: CostModel | None = None,
) -> Saturation:
    """The e-graph that `compile`, `optimize`, `why` and `explain` have of `program`.

    A rule that is not ours and does not behave is dropped with a warning; `strict` raises RuleError
    instead. A single step of such a rule that takes `patience` seconds hangs.
    """
    everything = rules_for(program, rules)
    return saturate_guarded(
        program, everything, limits or Limits(), is_ours, strict, patience,
        appraiser(cost),
    )  # fmt: skip


@without_collections()
def best_schedule(saturation: Saturation, cost: CostModel | None = None) -> Schedule:
    """The cheapest schedule that a saturation met on its way, or a longer search in its e-graph."""
    met = saturation.best
    assert isinstance(met, Appraised)
    best = _cheapest(saturation, met, cost)
    return met.schedule if best is None else best.schedule


@without_collections()
def best_choice(saturation: Saturation, cost: CostModel | None = None) -> tuple[Candidates, Result]:
    """The candidates and the choice of them that `best_schedule` is made from."""
    met = saturation.best
    assert isinstance(met, Appraised)
    best = _cheapest(saturation, met, cost)
    if best is not None:
        return best.candidates, best.result
    classes = saturation.best_classes
    assert classes is not None
    short = met.found or choices(classes, cost, rounds=0)
    return short, short.start


def _cheapest(saturation: Saturation, met: Appraised, cost: CostModel | None) -> Settled | None:
    """The cheapest search; None where what was met is cheaper."""
    best = min(_searches(saturation, met, cost), key=lambda each: each.schedule.seconds)
    return None if met.seconds < best.schedule.seconds * (1 - _ROUNDING) else best


def _unrefused(
    made: Schedule, saturation: Saturation, cost: CostModel | None, refusals: Refusals
) -> Schedule:
    """`made`, or where dispatches of it are refused what is found without them, as the report says.

    Raises LoweringError where nothing is.
    """
    if not refusals(made):
        return made
    classes = saturation.best_classes
    assert classes is not None
    try:
        made, saturation.report.struck = extract_unrefused(classes, cost, refusals)
    except ProgramError as error:
        raise LoweringError(
            f"no kernels were found for this program, please report the model: {error}"
        ) from None
    return made


def _searches(saturation: Saturation, met: Appraised, cost: CostModel | None) -> list[Settled]:
    """A search in the e-graph with the cheapest program that was met: a wide one where fusion
    decides what that costs. In a small e-graph as it was at the end, too: a short search may not
    have seen what it gained. And in that of the program as it was, unless what is computed there in
    any case costs as much: so rules make no program dearer. Of a large program only where what was
    met there is about as cheap.
    """
    classes, last = saturation.best_classes, saturation.classes
    start, first = saturation.start, saturation.start_classes
    assert classes is not None and isinstance(start, Appraised) and first is not None
    is_fused = met.work < (1 - _FUSED) * met.seconds
    is_wide = is_fused and not is_small(classes) and classes.node_count <= _LARGE
    made = choices(classes, cost, is_wide=True) if is_wide else met.candidates(classes, cost)
    found = [settle(made, searched)]
    if last.node_count <= _SMALL and last != classes:
        found.append(settle(choices(last, cost), searched))
    if first not in (classes, last):
        best = min(met.seconds, *[each.schedule.seconds for each in found])
        close = inf if is_small(first) else _VERY_CLOSE
        if start.work < best and start.seconds <= close * met.seconds:
            found.append(settle(start.candidates(first, cost), searched))
    return found


def saturate_beside(
    rule: Rule,
    program: Program,
    rules: RuleSet,
    limits: Limits | None = None,
    patience: float = PATIENCE,
) -> Saturation:
    """A saturation with `rule` and those of `rules` that behave.

    Raises RuleError where `rule` is one that does not.
    """
    everything = rules if rule.name in rules else rules + rule
    saturation = saturate(program, everything, limits, patience=patience)
    for dropped in saturation.report.dropped:
        if dropped.name == rule.name:
            raise RuleError(str(dropped))
    return saturation


def rewrite(
    model: Model,
    rules: Rules,
    limits: Limits | None,
    progress: Progress | None,
    strict: bool = False,
    cost: CostModel | None = None,
    refusals: Refusals | None = None,
) -> Searched:
    """Load, saturate and extract; `strict` as for `saturate`.

    Without `cost` a fixed model counts, and the result is the same on every machine. Dispatches
    for which `refusals` gives a reason are struck out.
    """
    phases = Phases(progress)
    with phases.phase("load"):
        program = load(model)
    return search(program, rule_set(rules), limits, phases, strict, cost, refusals)


def search(
    program: Program, rules: RuleSet, limits: Limits | None, phases: Phases, strict: bool = False,
    cost: CostModel | None = None, refusals: Refusals | None = None,
) -> Searched:  # fmt: skip
    """Saturate and extract as `rewrite` does, the phases after those that `phases` has."""
    with phases.phase("saturate"):
        saturation = saturate(program, rules, limits, strict, cost=cost)
    with phases.phase("extract"):
        made = best_schedule(saturation, cost)
        if refusals is not None:
            made = _unrefused(made, saturation, cost, refusals)
    report, seconds = saturation.report, phases.seconds
    if not report.struck:  # or the search before, with nothing struck out, has warned
        warn_if_cut_short(cut_short(report, limits))
    warn_if_struck(report)
    seconds["extract"] += report.extraction_seconds  # by turns with saturation, whose clock ran
    seconds["saturate"] -= report.extraction_seconds
    return Searched(program, made, report, seconds, saturation=saturation)
