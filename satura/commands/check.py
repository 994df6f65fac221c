"""`satura check`: is each rule of a file, or of the book, sound?

Every rule is checked in a process of its own, which is killed when its time is over: an attribute
function may loop, crash or eat all memory, and the other rules are checked all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path

import numpy as np

from satura.commands.terminal import print_json_parts, print_line, print_table, progress
from satura.pipeline.rule_file import load_rules
from satura.rewrite.check.coverage import KINDS
from satura.rewrite.check.report import DirectionReport, RuleReport
from satura.rewrite.check.testing import DEEP, PROOF_STEPS, add_proof, check
from satura.rewrite.errors import CallError, RuleError, SaturaError
from satura.rewrite.isolation.process import Doing, KilledError, call
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.language.mistakes import suggestion
from satura.rewrite.prove import STEPS

SECONDS = 60.0  # for each rule
MEMORY = 4 << 30  # bytes for each rule, beyond what is loaded
BOOK = "the rule book"
PROVING = "a proof"
SHRINKING = "looking for a smaller counterexample"


@dataclass(frozen=True)
class Source:
    """Rules to be checked: where they stand, how to load them, their names, places and families."""

    name: str
    load: Callable[[], RuleSet]
    rules: tuple[tuple[str, str, str], ...]

    @property
    def names(self) -> set[str]:
        """What its rules and families are called."""
        return {each for name, _, family in self.rules for each in (name, family) if each}

    def only(self, names: Sequence[str]) -> Source:
        chosen = tuple(
            each for each in self.rules if each[0] in names or each[2] in names or not names
        )
        return Source(self.name, self.load, chosen)


def check_rules(
    files: Sequence[Path],
    book: bool,
    names: Sequence[str],
    seed: int,
    deep: bool,
    seconds: float | None,
    json: bool,
    json_lines: bool = False,
) -> bool:
    """Check rules and print reports. Returns whether every rule is proved or tested.

    Without files, the rule book is checked. `names` picks rules and families; `seconds` is the
    limit of CPU time for each test and each proof. What is known of a rule is printed as soon as
    it is; with `json_lines` as a line of JSON. Raises RuleError for a file that cannot be loaded,
    and CallError for names that no source has, after the others are checked.
    """
    limit = seconds or SECONDS * (DEEP if deep else 1)
    distinct = {file.resolve(): file for file in files}
    sources = [_source_of_file(file, limit) for file in distinct.values()]
    if book or not files:
        sources.append(_source_of_book())
    unknown = _unknown(names, sources)
    chosen = [source.only(names) for source in sources]
    numbered = [(source, name, place) for source in chosen for name, place, _ in source.rules]
    found: dict[str, list[RuleReport]] = {source.name: [] for source in chosen}

    def every() -> Iterator[RuleReport]:
        with progress("check") as phase:
            for number, (source, name, place) in enumerate(numbered):
                phase(name, number / len(numbered))
                report = _with_name_of_book(_report(source, name, place, seed, deep, limit))
                found[source.name].append(report)
                yield report

    if unknown and not numbered:
        raise CallError(unknown)
    if json_lines:
        for report in every():
            print_line(dumps(report.as_json(), allow_nan=False))
    elif json:
        print_json_parts({"seed": seed, "deep": deep}, "rules", map(RuleReport.as_json, every()))
    else:
        for report in every():
            if len(numbered) > 1:
                print_line(f"{report.rule}: {report.said}")
        for name, reports in found.items():
            _print_reports(name, reports)
    if unknown:
        raise CallError(f"{unknown}; the other rules were checked")
    return all(report.is_sound for reports in found.values() for report in reports)


def _source_of_book() -> Source:
    from satura.rules import DEFAULT

    return Source(BOOK, lambda: DEFAULT, _names_in(DEFAULT))


def _names_in(rules: RuleSet) -> tuple[tuple[str, str, str], ...]:
    return tuple((rule.name, rule.place, rule.family) for rule in rules)


def _source_of_file(path: Path, seconds: float) -> Source:
    def names(doing: Doing) -> tuple[tuple[str, str, str], ...]:
        doing(f"running {path}", seconds)
        return _names_in(load_rules(path))

    try:
        found = call(names, seconds, MEMORY)
    except KilledError as error:
        raise RuleError(f"{path} cannot be loaded: {error}") from error
    return Source(str(path), lambda: load_rules(path), found)


def _unknown(names: Sequence[str], sources: Sequence[Source]) -> str:
    """Which of `names` no source has, and what is like them; empty where there is none."""
    known = set().union(*(source.names for source in sources))
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if not unknown:
        return ""
    places = ", ".join(source.name for source in sources)
    shown = ", ".join(f"'{name}'{suggestion(name, known)}" for name in unknown)
    if all(source.name != BOOK for source in sources):
        advice = "those of the rule book are checked with --book"
    else:
        advice = "`satura rules` lists those of the rule book"
    return f"no rule or family in {places} is called {shown}; {advice}"


def _report(
    source: Source,
    name: str,
    place: str,
    seed: int,
    deep: bool,
    seconds: float,
    without: frozenset[str] = frozenset(),
) -> RuleReport:
    """The verdict on one rule, found in a process of its own, `without` some stages."""

    @np.errstate(all="ignore")  # NaN and infinities are drawn everywhere
    def check_in_child(doing: Doing) -> RuleReport:
        doing(f"loading '{name}'", seconds)
        rule = source.load()[name]
        doing(f"the test of rule '{name}'", seconds)
        found = check(rule, seed, deep=deep, shrink=False)
        steps = STEPS if deep else PROOF_STEPS
        if found.is_sound and PROVING not in without:
            doing(PROVING, seconds)
            found = add_proof(rule, found, steps)
        if found.verdict not in ("refuted", "failed") or SHRINKING in without:
            return found
        doing(SHRINKING, seconds)
        return check(rule, seed, deep=deep, proof_steps=steps)

    try:
        return call(check_in_child, seconds, MEMORY)
    except KilledError as error:
        if error.doing in (PROVING, SHRINKING):  # what was found before counts
            left_out = without | {error.doing}
            found = _report(source, name, place, seed, deep, seconds, left_out)
            return replace(found, proof=str(error)) if error.doing == PROVING else found
        reason = f"{error}{'; give it more with --seconds' * error.is_late}"
    except SaturaError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    return RuleReport(name, place, "failed", reason=reason)


def _with_name_of_book(report: RuleReport) -> RuleReport:
    """The report, with a hint where another rule of the book has the rule's name."""
    from satura.rules import DEFAULT

    if report.rule not in DEFAULT or _file(report.place) == DEFAULT[report.rule].file.resolve():
        return report
    hint = f"the rule book has a rule '{report.rule}', too: rename yours, or --with refuses it"
    return replace(report, hint="; ".join(filter(None, (report.hint, hint))))


def _file(place: str) -> Path:
    return Path(place.rpartition(":")[0]).resolve()


def _print_reports(title: str, reports: Sequence[RuleReport]) -> None:
    if not reports:
        print_line(f"{title}: no rules to check")
        return
    header = ["rule", "verdict", "tried", "dtypes", "ranks", "dims"]
    rows = [
        [
            report.rule,
            report.said,
            " + ".join(str(each.firings) for each in report.directions),
            str(len(report.dtypes)),
            f"{report.ranks[0]}–{report.ranks[-1]}" if report.ranks else "",
            _dims_text(report),
        ]
        for report in reports
    ]
    print_table(f"{title}: {len(rows)} rule{'s' * (len(rows) != 1)}", header, rows)
    sides = [
        row for report in reports for each in report.directions for row in _condition_rows(each)
    ]
    if sides:
        print_table("side conditions", ["direction", "condition", "true", "false"], sides)
    for said, count in Counter(each.said for each in reports if each.verdict == "proved").items():
        print_line(f"{said}: {count} of {len(reports)}")
    unproved = [[each.rule, each.proof] for each in reports if each.verdict == "tested"]
    if unproved:
        print_table("tested, but not proved", ["rule", "because"], unproved)
    for report in reports:
        if not report.is_sound:
            print_line(f"\n{report}")
        elif report.hint:
            print_line(f"{report.rule}: {report.hint}")


def _dims_text(report: RuleReport) -> str:
    if not report.dtypes:
        return ""
    missing = [kind for kind in KINDS if not report.dims.get(kind)]
    return f"none {', '.join(missing)}" if missing else "all kinds"


def _condition_rows(direction: DirectionReport) -> list[list[str]]:
    """What each condition said of the instances; an answer that never came is marked."""
    conditions = [
        [direction.label, text, _count_text(counts[True]), _count_text(counts[False])]
        for text, counts in direction.conditions.items()
    ]
    refusals = [
        [direction.label, f"unless {text}", "", str(count)]
        for text, count in direction.refusals.items()
    ]
    return conditions + refusals


def _count_text(count: int) -> str:
    return str(count) if count else "0, never"
