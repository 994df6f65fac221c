"""Saturation: rules run on a program's e-graph, round by round, until nothing changes.

A round runs every rule once: all together as long as the e-graph is far from its limits, else one
after the other, those with fewest matches first, with the limits checked after each, and before a
rule that has too many. Hitting a limit is not an error: what is there by then is the result.

With a function that extracts a program, one is extracted at the start, from a large e-graph when
it has doubled, after every hundred rounds, and at the end. The cheapest is kept, and rounds that
make nothing cheaper were enough. No limit reads a clock: the result is the same on every machine.

Nothing inside a round can be interrupted. So rules that are not ours are watched: they run one at a
time, each announced before it starts; see `rewrite/isolation/guarded.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, TypeAlias

from satura.rewrite.egraph.attribute_tables import (
    Demands,
    TypeConflictError,
    rule_demand,
    type_demand,
)  # fmt: skip
from satura.rewrite.egraph.classes import EClasses, ENode, find_class
from satura.rewrite.egraph.decode import Decoding, Origin
from satura.rewrite.egraph.encode import load
from satura.rewrite.egraph.engine import Row, Step
from satura.rewrite.egraph.interner import Interner
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.observer import NOBODY, Observer
from satura.rewrite.egraph.prepared import Prepared, prepared_engine
from satura.rewrite.egraph.report import Report, Round, RuleStatistics
from satura.rewrite.egraph.rule_compiler import RuleCode
from satura.rewrite.egraph.runner import Runner, number_in
from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.program.program import Program
from satura.rewrite.system.garbage import without_collections

# All rules run at once while the e-graph may still grow this many times before it meets its limit.
_FAR = 2

# A rule that breaks the limit of e-nodes may do so up to this many times the limit.
_OVER = 2

_STEP = 2  # growth of the e-graph after which a program is extracted; its cube if it is slow
_FAST = 1.15  # growth in a round; less, and the saturation may end soon
_SMALL = 1_000  # e-nodes; an early end of a smaller e-graph saves nothing
_LONG = 100  # rounds after which a program is extracted, however little grows in each
_GAIN = 2e-3  # relative; what is cheaper by less was not worth the growth


class Extracted(Protocol):
    """What an extraction gives: a program with its cost."""

    @property
    def seconds(self) -> float:
        """Predicted seconds of one run."""


Extract: TypeAlias = Callable[[EClasses], Extracted]


@dataclass(frozen=True)
class Saturation:
    """A saturated e-graph, what happened, and where its e-nodes come from.

    `origins[c][k]` belongs to `classes.nodes[c][k]`, `hidden[c]` are the class's nodes that are not
    used. `program_classes[i]` is the class of the program's node i, None where no output reaches
    it. `best` is the cheapest that was extracted on the way, from `best_classes`; `start` what was
    extracted from `start_classes`, before the rules ran.
    """

    classes: EClasses
    report: Report
    origins: tuple[tuple[Origin, ...], ...]
    hidden: tuple[tuple[tuple[ENode, Origin], ...], ...]
    program_classes: tuple[int | None, ...]
    best: Extracted | None = None
    best_classes: EClasses | None = None
    start: Extracted | None = None
    start_classes: EClasses | None = None


@without_collections()
def saturate(
    program: Program,
    rules: RuleSet,
    limits: Limits = Limits(),
    observer: Observer = NOBODY,
    extract: Extract | None = None,
) -> Saturation:
    """Everything that `rules` prove equal to parts of `program`, as far as `limits` allow.

    Without `extract` nothing tells what is gained, so only rounds and nodes are limited.
    Raises RuleError, naming the rule, when a rule makes badly typed nodes, equates tensors of two
    types, or fails in a computation.
    """
    try:
        run = _Run(program, rules, limits, observer, extract, careful=False)
    except TypeConflictError as conflict:
        # Replay, checking types after every single rule, so that the error names the rule.
        _Run(program, rules, limits, observer, None, careful=True)
        names = ", ".join(rule.name for rule in rules)
        raise RuleError(f"one of the rules {names} is unsound: {conflict}") from conflict
    found = run.decoded
    return Saturation(
        found.classes, run.report, found.origins, found.hidden, found.program_classes,
        run.best, run.best_classes, run.start, run.start_classes,
    )  # fmt: skip


class _Run:
    """One saturation from start to end."""

    def __init__(
        self,
        program: Program,
        rules: RuleSet,
        limits: Limits,
        observer: Observer,
        extract: Extract | None,
        careful: bool,
    ) -> None:
        self.started = perf_counter()
        self.program = program
        self.extract = extract
        self.best: Extracted | None = None
        self.best_classes: EClasses | None = None
        self.appraised = 0  # e-nodes when a program was extracted last
        self.is_appraised = False  # nothing has changed since
        self.gainless = 0
        self.limits = limits
        self.observer = observer
        self.careful = careful
        directions = [direction for rule in rules for direction in rule.directions]
        apart = [observer.watches(direction) for direction in directions]
        with prepared_engine(directions, apart, drops=not careful) as engine:
            self.load(engine)
            self.settle()
            self.close_round()
            self.appraise()
            self.start, self.start_classes = self.best, self.best_classes
            self.saturate()
            observer.start(None)
            self.decoded = self.decode().decoded(self.runs)
        self.appraise(self.decoded.classes)
        for runner in self.runners:
            runner.finish(self.decoded.made)
        self.report.seconds = self.elapsed_seconds

    @property
    def elapsed_seconds(self) -> float:
        return perf_counter() - self.started

    def load(self, engine: Prepared) -> None:
        """Load the program into the engine, and make a runner for each direction."""
        self.egraph, self.interner = engine.egraph, Interner(engine.constants)
        self.joining = engine.joining
        self.tables = engine.tables_for(self.program)
        self.types = [type_demand(table) for table in self.tables.values()]
        for table, demand in zip(self.tables.values(), self.types, strict=True):
            demand.answer = self.observer.wrap_typing(table.op, demand.answer)
        self.demands = Demands(self.egraph, self.interner)
        answered = load(self.program, self.egraph, self.tables, self.interner)
        told: dict[str, list[Row]] = {}
        for demand, name in zip(self.types, self.tables, strict=True):
            rows = answered.get(name, set())
            told.setdefault(demand.told, []).extend((demand.number, *row) for row in sorted(rows))
            demand.done.update(row[:-1] for row in rows)
        self.egraph.insert(told)
        self.demands.describe()
        home = self.egraph.lookup("now_load")
        self.runs: dict[int, tuple[str | None, int]] = {} if home is None else {home: (None, 0)}
        self.runners = [self.runner(number, code) for number, code in enumerate(engine.codes)]
        self.rule_demands = [runner.demand for runner in self.runners if runner.demand]
        self.report = Report([runner.statistics for runner in self.runners])
        self.count()

    def runner(self, number: int, code: RuleCode) -> Runner:
        direction = code.direction
        demand = rule_demand(number, code) if direction.computes else None
        if demand is not None:
            demand.answer = self.observer.wrap_answer(direction, demand.answer)
        statistics = RuleStatistics(direction.label, direction.place)
        return Runner(direction, code, demand, statistics, self.observer.watches(direction))

    def mark(self, step: Step, round_: int) -> None:
        """Remember which runs of which rules made the nodes that `step` has made."""
        for number in map(number_in, step.matches):
            home = self.egraph.lookup("now", number)
            if home is not None:
                self.runs[home] = (self.runners[number].direction.label, round_)
        self.egraph.run("forget")

    def count(self) -> dict[str, int]:
        """Count the e-nodes. Returns the sizes of all tables."""
        sizes = self.egraph.sizes()
        self.nodes = sum(sizes[f"n_{name}"] for name in self.tables)
        return sizes

    def close_round(self) -> None:
        self.report.rounds.append(Round(self.nodes, self.elapsed_seconds))

    def settle(self) -> None:
        """Bring types and other facts up to date. Raises TypeConflictError."""
        self.observer.start(None)
        while self.demands.answer(self.types, self.egraph.saturate("types")):
            pass
        step = self.egraph.saturate("facts", "unions")
        self.egraph.saturate("rounding")
        if step.matches.get("conflict"):
            first, second = self.egraph.numbers("conflict")[0]
            raise TypeConflictError(
                f"it makes {self.interner[first]} equal to {self.interner[second]}"
            )

    def saturate(self) -> None:
        for round_ in range(1, self.limits.rounds + 1):
            changed = self.round(round_)
            self.is_appraised &= not changed
            self.settle()
            self.close_round()
            if self.report.stopped != "saturated" or not changed:
                return
            if (self.is_large and self.has_grown) or round_ % _LONG == 0:
                self.appraise()
                if self.gainless >= self.limits.gainless:
                    self.report.stopped = "no gain"
                    return
        self.report.stopped = "rounds"

    @property
    def is_large(self) -> bool:
        """Whether there are enough e-nodes to end, should nothing be gained."""
        return self.report.nodes >= max(_SMALL, self.limits.enough * self.report.rounds[0].nodes)

    @property
    def has_grown(self) -> bool:
        """Whether there are so many more e-nodes that it is time to see what is gained."""
        before, now = self.report.rounds[-2].nodes, self.report.nodes
        return now >= self.appraised * (_STEP if now >= _FAST * before else _STEP**3)

    def decode(self) -> Decoding:
        return Decoding(self.program, self.egraph, self.tables, self.interner)

    def appraise(self, classes: EClasses | None = None) -> None:
        """Extract a program, unless nothing has changed since; keep it if it is the cheapest."""
        if self.extract is None or self.is_appraised:
            return
        self.appraised, self.is_appraised = self.report.nodes, True
        started = perf_counter()
        classes = classes or self.decode().classes
        found = self.extract(classes)
        self.report.extraction_seconds += perf_counter() - started
        self.gainless += 1
        if self.best is None or found.seconds < self.best.seconds * (1 - _GAIN):
            self.gainless = 0
        if self.best is None or found.seconds < self.best.seconds:
            self.best, self.best_classes = found, classes

    def round(self, round_: int) -> bool:
        """Run every rule once, up to the limits. Returns whether anything changed."""
        self.match()
        sizes = self.count()
        for runner in self.runners:
            runner.measure(sizes)
        single, changed = self.runners, False
        if not self.careful and self.nodes * _FAR < self.limits.nodes:
            single = [runner for runner in self.runners if runner.watched]
            growth = sum(runner.growth for runner in self.runners if not runner.watched)
            if self.nodes + growth > self.limits.nodes:
                single = self.runners
            else:
                changed = self.fire_together(round_)
        for runner in sorted(single, key=lambda runner: runner.growth):
            if self.stop_at_limits() or self.stop_before(runner):
                break
            changed |= self.fire(runner, round_)
        self.stop_at_limits()
        return changed

    def match(self) -> None:
        """Find what rules match, and compute what they ask for."""
        self.note(self.egraph.run(*self.joining, timed=True))
        for runner in self.runners:
            if runner.watched:
                self.observer.start(runner.direction)
                self.note(self.egraph.run(*runner.code.joining, timed=True))
        self.observer.start(None)
        step = self.egraph.run("demand", timed=True)
        self.note(step)
        self.demands.answer(self.rule_demands, step)

    def fire_together(self, round_: int) -> bool:
        """Fire all rules that are not watched. Returns whether anything changed."""
        self.observer.start(None)
        step = self.egraph.run("fire", timed=True)
        self.note(step)
        self.mark(step, round_)
        self.count()
        return step.changed

    def fire(self, runner: Runner, round_: int) -> bool:
        """Fire one rule. Returns whether anything changed."""
        self.observer.start(runner.direction)
        nodes = self.nodes
        step = self.egraph.run(runner.code.ruleset, timed=True)
        self.note(step)
        if step.changed:
            self.mark(step, round_)
            self.count()
            if self.careful:
                self.check(runner)
        if runner.watched:
            self.observer.count(runner.direction, sum(step.matches.values()), self.nodes - nodes)
        return step.changed

    def note(self, step: Step) -> None:
        """Add what rules matched and took to their statistics."""
        for name, seconds in step.seconds.items():
            self.runners[number_in(name)].statistics.seconds += seconds
        for name, matches in step.matches.items():
            if name.startswith("fire_"):
                for number in name.split("_")[1:]:  # the direction's, and that of one that drops
                    self.runners[int(number)].statistics.matches += matches

    def stop_at_limits(self) -> bool:
        if self.report.stopped != "saturated":
            return True
        if self.nodes > self.limits.nodes:
            self.report.stopped = "nodes"
        return self.report.stopped != "saturated"

    def stop_before(self, runner: Runner) -> bool:
        """Whether a rule would go far beyond the limit of e-nodes, which then ends the run."""
        if self.nodes + runner.growth <= _OVER * self.limits.nodes:
            return False
        self.report.stopped = "nodes"
        self.report.stopped_before = runner.direction.label
        if runner.watched:
            matches = runner.growth // runner.code.makes
            self.observer.count(runner.direction, matches, runner.growth)
        return True

    def check(self, runner: Runner) -> None:
        try:
            self.settle()
        except TypeConflictError as conflict:
            direction = runner.direction
            self.observer.start(direction)
            raise RuleError(
                f"rule '{direction.label}' ({direction.place}): it is unsound: {conflict};"
                f" its law is {direction}"
            ) from None


def in_same_class(saturation: Saturation, root: int, goal: Program) -> bool:
    """Whether every output of `goal` equals the class of node `root` of the start program."""
    home = saturation.program_classes[root]
    found = find_class(saturation.classes, goal)
    return home is not None and all(found[index] == home for index in goal.output_nodes)
