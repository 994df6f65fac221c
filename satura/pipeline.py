"""The stages before the kernels, one after another, each timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from satura import rules as rules_package
from satura.models import Model, load
from satura.rewrite.egraph.saturate import Limits, Saturation
from satura.rewrite.errors import CallError, RuleError
from satura.rewrite.extract.extract import extract
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.isolation.guarded import PATIENCE, saturate_guarded
from satura.rewrite.language.dsl import Rule, RuleSet
from satura.rewrite.program.program import Program
from satura.rules import DEFAULT, EXACT, NONE

Rules: TypeAlias = RuleSet | str
"""A rule set, or the name of one: "none", "exact", "default"."""

Progress: TypeAlias = Callable[[str, float], None]
"""Called with the name of a phase and how much of it is done, from 0 when it starts to 1."""

OUR_RULES = Path(rules_package.__file__).resolve().parent
RULE_SETS: dict[str, RuleSet] = {"none": NONE, "exact": EXACT, "default": DEFAULT}


@dataclass
class Phases:
    """Seconds that each phase took, in order; tells `progress` when a phase starts."""

    progress: Progress | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(name, 0.0)
        start = perf_counter()
        yield
        self.seconds[name] = perf_counter() - start


@dataclass(frozen=True)
class Rewritten:
    """What the stages before the kernels made of a model."""

    source: Program
    saturation: Saturation
    schedule: Schedule
    phases: dict[str, float]


def rule_set(rules: Rules) -> RuleSet:
    """The rule set of a name; a rule set is itself. Raises CallError for an unknown name."""
    if isinstance(rules, RuleSet):
        return rules
    if not isinstance(rules, str) or rules not in RULE_SETS:
        raise CallError(
            f"there is no rule set {rules!r}; choose from {list(RULE_SETS)}, or make a RuleSet"
        )
    return RULE_SETS[rules]


def is_ours(rule: Rule) -> bool:
    """Whether a rule is of satura's own book; others run in a process that can be stopped."""
    return _is_our_file(rule.file)


@cache
def _is_our_file(file: Path) -> bool:
    return file.resolve().parent == OUR_RULES


def rules_for(program: Program, rules: RuleSet) -> RuleSet:
    """The rules that run on `program`: `rules`, and the laws of movement of its users' ops."""
    return rules.for_ops(node.op for node in program.nodes)


def saturate(
    program: Program,
    rules: RuleSet,
    limits: Limits | None = None,
    strict: bool = False,
    patience: float = PATIENCE,
) -> Saturation:
    """The e-graph that `compile`, `optimize`, `why` and `explain` have of `program`.

    A rule that is not ours and does not behave is dropped with a warning; `strict` raises RuleError
    instead. A single step of such a rule that takes `patience` seconds hangs.
    """
    everything = rules_for(program, rules)
    return saturate_guarded(
        program, everything, limits or Limits(), is_ours, strict, patience, extract
    )


def best_schedule(saturation: Saturation) -> Schedule:
    """The cheapest schedule that a saturation met on its way."""
    assert isinstance(saturation.best, Schedule)
    return saturation.best


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
) -> Rewritten:
    """Load, saturate and extract; `strict` as for `saturate`."""
    chosen = rule_set(rules)
    phases = Phases(progress)
    with phases.phase("load"):
        program = load(model)
    with phases.phase("saturate"):
        saturation = saturate(program, chosen, limits, strict)
    with phases.phase("extract"):
        schedule = best_schedule(saturation)
    seconds, extraction = phases.seconds, saturation.report.extraction_seconds
    seconds["extract"] += extraction  # by turns with saturation, so the clock ran there
    seconds["saturate"] -= extraction
    return Rewritten(program, saturation, schedule, seconds)
