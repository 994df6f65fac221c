"""`satura rules --worth MODEL`: what each law of a rule set gains on models, by leaving it out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from satura.commands.models import by_stem, file_or_light
from satura.commands.outputs import check_output
from satura.commands.rule_files import named_with, with_files
from satura.commands.terminal import print_json, print_table, progress
from satura.commands.values import of_several
from satura.experiments.content import content_of, model_digest
from satura.experiments.table import others, read_rows, updated
from satura.pipeline.models import Model, load
from satura.pipeline.phases import Phases
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import Searched, search
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.language.rule import RuleSet

HEADER = ("law", "model", "gain us", "gain", "dispatches", "copies", "e-nodes")
LOST = 0.005  # of the cost: more rules may not make a program dearer by more
KEPT = 0.5  # of the laws, in a subset


@dataclass(frozen=True)
class Worth:
    """What a model costs without one law, or several of the set `rules`, beside what it costs with
    all.

    `seconds` are predicted; the counts are of the schedule, `enodes` of the e-graph at the end. A
    law that matches nowhere is not left out: it is worth nothing there. `content` is a digest of
    the model and of all rules: what has another one is of another model or of other rules.
    """

    rules: str
    law: str
    model: str
    content: str
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
    def key(self) -> tuple[str, str, str]:
        """What was left out of what on what."""
        return self.rules, self.law, self.model

    @property
    def outcome(self) -> tuple[float, ...]:
        """What comes out whenever the same is left out."""
        times = self.seconds, self.seconds_without
        kernels = self.dispatches, self.dispatches_without, self.copies, self.copies_without
        return *times, *kernels, self.enodes, self.enodes_without

    @property
    def contradiction(self) -> str:
        """Empty: no number of it bounds another."""
        return ""

    @property
    def gain(self) -> float:
        """The share by which the model is dearer without the law; below 0 where it is cheaper."""
        return self.seconds_without / self.seconds - 1 if self.seconds else 0.0


def smaller_sets(rules: RuleSet, subsets: int = 0, seed: int = 0) -> dict[str, RuleSet]:
    """`rules` less each law, by what is left out; where there are `subsets`, also less all, less
    all but the exact ones, and so many random parts of them."""
    found = {law.name: rules.without(law.name) for law in rules.laws}
    if subsets:
        found |= {"(all)": RuleSet(), "(all that round)": rules.exact}
    for number in range(subsets):
        random = Random(f"{seed} {number}")
        left_out = [law.name for law in rules.laws if random.random() >= KEPT]
        found[f"(part {number} of seed {seed})"] = rules.without(*left_out)
    return found


def worths(
    models: Mapping[str, Model],
    rules: RuleSet | str,
    subsets: int = 0,
    seed: int = 0,
    done: Collection[Worth] = (),
    name: str = "",
) -> Iterator[Worth]:
    """Each law of `rules`, and what else `smaller_sets` leaves out, on each model, one after the
    other as they are asked for; what is `done`, with the same `content`, is given back. The set is
    told by `name`, or by its own."""
    whole_set = rule_set(rules)
    name = name or (rules if isinstance(rules, str) else "")
    known = {(*each.key, each.content): each for each in done if each.content}
    smaller = smaller_sets(whole_set, subsets, seed)
    labels, laws = _labels(whole_set), {law.name for law in whole_set.laws}
    for model_name, model in models.items():
        content = content_of(model_digest(model), whole_set, CostModel(), Limits())
        asked = {law: known.get((name, law, model_name, content)) for law in smaller}
        if None in asked.values():
            program = load(model)
            whole = search(program, whole_set, None, Phases(None))
            matched = labels & {entry.name for entry in whole.report.rules if entry.matches}
        for law, found in asked.items():
            if found is None:
                less = smaller[law]
                matches = law not in laws or not matched <= _labels(less)
                made = search(program, less, None, Phases(None)) if matches else whole
                found = _worth((name, law, model_name, content), matches, whole, made)
            yield found


def _labels(rules: RuleSet) -> set[str]:
    """The names of the directions of some rules, as a report has them."""
    return {direction.label for rule in rules for direction in rule.directions}


def _worth(
    about: tuple[str, str, str, str], matched: bool, whole: Searched, less: Searched
) -> Worth:
    counts, counts_less = statistics(whole.schedule), statistics(less.schedule)
    return Worth(
        *about, matched, whole.schedule.seconds, less.schedule.seconds,
        counts["dispatch-count"], counts_less["dispatch-count"],
        counts["copy-count"], counts_less["copy-count"],
        whole.report.nodes, less.report.nodes,
    )  # fmt: skip


def print_worths(
    names: Sequence[str], values: Sequence[str], rules: str, files: Sequence[Path], subsets: int,
    seed: int, csv: Path | None, json: bool,
) -> bool:  # fmt: skip
    """Print the worth of every law of the set `rules` and of `files` on these models, and of parts
    of all, the largest gain first; whether no model costs more with all laws than with fewer.
    `values` are of inputs.

    What stands in `csv` is not done again.
    """
    if csv is not None:
        check_output(csv)
    everything, name = with_files(rules, files), named_with(rules, files)
    models = by_stem(names, lambda name: of_several(names, file_or_light(name), values))
    done = read_rows(csv, Worth) if csv is not None and csv.is_file() else []
    found: list[Worth] = []
    with (
        progress("leaving out one law after the other", is_long=True) as phase,
        updated(csv, Worth, lambda now: [*others(now, found), *found]) as update,
    ):
        for worth in worths(models, everything, subsets, seed, done, name):
            found.append(worth)
            if worth not in done:
                update()
            phase(f"{worth.model}: {worth.law} done", 0.0)
    found.sort(key=lambda worth: -worth.gain)
    if json:
        print_json([{**asdict(worth), "gain": worth.gain} for worth in found])
    else:
        rows = [_row(worth) for worth in found if worth.matched]
        print_table("what each law that matches gains, by leaving it out", HEADER, rows)
    return all(worth.gain >= -LOST for worth in found)


def _row(worth: Worth) -> list[str]:
    return [
        worth.law, worth.model,
        f"{(worth.seconds_without - worth.seconds) * 1e6:.2f}", f"{worth.gain:.2%}",
        f"{worth.dispatches_without - worth.dispatches:+}",
        f"{worth.copies_without - worth.copies:+}",
        f"{worth.enodes_without - worth.enodes:+}",
    ]  # fmt: skip
