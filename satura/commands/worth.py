"""`satura rules --worth MODEL`: what each law of a rule set gains on models, by leaving it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from satura.commands.models import file_or_light
from satura.commands.terminal import print_json, print_table, progress
from satura.pipeline.models import Model, load
from satura.pipeline.phases import Phases
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import Searched, search
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.language.rule import Family, Rule, RuleSet

HEADER = ("law", "model", "gain us", "gain", "dispatches", "copies", "e-nodes")


@dataclass(frozen=True)
class Worth:
    """What a model costs without one law, beside what it costs with all.

    `seconds` are predicted; the counts are of the schedule, `enodes` of the e-graph at the end. A
    law that matches nowhere is not left out: it is worth nothing there.
    """

    law: str
    model: str
    matched: bool
    seconds: float
    seconds_without: float
    dispatches: int
    dispatches_without: int
    copies: int
    copies_without: int
    enodes: int
    enodes_without: int

    @property
    def gain(self) -> float:
        """The share by which the model is dearer without the law; below 0 where it is cheaper."""
        return self.seconds_without / self.seconds - 1 if self.seconds else 0.0


def worths(models: Mapping[str, Model], rules: RuleSet) -> Iterator[Worth]:
    """Each law of `rules` on each model, one after the other as they are asked for."""
    for name, model in models.items():
        program = load(model)
        whole = search(program, rules, None, Phases(None))
        matched = {entry.name for entry in whole.report.rules if entry.matches}
        for law in rules.laws:
            matches = not matched.isdisjoint(_labels(law))
            less = rules.without(law.name)
            found = search(program, less, None, Phases(None)) if matches else whole
            yield _worth(law.name, name, matches, whole, found)


def _labels(law: Rule | Family) -> set[str]:
    """The names of a law's directions, as a report has them."""
    rules = law.rules if isinstance(law, Family) else (law,)
    return {direction.label for rule in rules for direction in rule.directions}


def _worth(law: str, model: str, matched: bool, whole: Searched, less: Searched) -> Worth:
    counts, counts_less = statistics(whole.schedule), statistics(less.schedule)
    return Worth(
        law, model, matched, whole.schedule.seconds, less.schedule.seconds,
        counts["dispatch-count"], counts_less["dispatch-count"],
        counts["copy-count"], counts_less["copy-count"],
        whole.report.nodes, less.report.nodes,
    )  # fmt: skip


def print_worths(names: Sequence[str], rules: str, json: bool) -> None:
    """Print the worth of every law of the set `rules` on these models, the largest gain first."""
    models = {Path(name).stem: file_or_light(name) for name in names}
    found = []
    with progress("leaving out one law after the other", is_long=True) as phase:
        for worth in worths(models, rule_set(rules)):
            found.append(worth)
            phase(f"{worth.model}: {worth.law} done", 0.0)
    found.sort(key=lambda worth: -worth.gain)
    if json:
        print_json([{**asdict(worth), "gain": worth.gain} for worth in found])
        return
    rows = [_row(worth) for worth in found if worth.matched]
    print_table("what each law that matches gains, by leaving it out", HEADER, rows)


def _row(worth: Worth) -> list[str]:
    return [
        worth.law, worth.model,
        f"{(worth.seconds_without - worth.seconds) * 1e6:.2f}", f"{worth.gain:.2%}",
        f"{worth.dispatches_without - worth.dispatches:+}",
        f"{worth.copies_without - worth.copies:+}",
        f"{worth.enodes_without - worth.enodes:+}",
    ]  # fmt: skip
