"""`satura stats`: what rewriting changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from satura.commands.compiling import Compiling
from satura.commands.models import file_or_light
from satura.commands.terminal import (
    counted,
    measured,
    number,
    print_json,
    print_line,
    print_table,
    progress,
)
from satura.commands.values import with_values
from satura.pipeline.compiled import Compiled
from satura.rewrite.egraph.report import Report

Number = TypeVar("Number", int, float)


def stats(model: str, values: list[str], compiling: Compiling, json: bool) -> None:
    """Statistics of `model` compiled without rules and as `compiling` says: of a model that runs in
    several parts those of each, and which nodes run between them."""
    source, title = with_values(file_or_light(model), values), Path(model).name
    with progress(f"measuring {title}") as phase:
        before = replace(compiling, rules="none").compile(source, phase)
        is_one = len(before.parts) == 1 and not any(before.hosts)
        after = compiling.compile(before.source if is_one else source, phase)
    parts = [*zip(before.parts, after.parts, after.hosts, strict=True)]
    if json:
        each = [{**comparison([one], [other]), "hosts": nodes} for one, other, nodes in parts]
        total = comparison(before.parts, after.parts, sum(map(len, after.hosts)))
        print_json({**total, "parts": each})
    elif is_one:
        print_comparison(title, before, after)
    else:
        for at, (one, other, nodes) in enumerate(parts, 1):
            print_comparison(f"{title}, part {at} of {len(parts)}", one, other)
            for node in nodes:
                print_line(f"then {node} runs in Python\n")


def comparison(
    before: Sequence[Compiled], after: Sequence[Compiled], between: int = 0
) -> dict[str, object]:
    """The statistics of all programs before and after; the executables, the phases' seconds and the
    rules of those after. `between` them run so many nodes in Python."""
    executables = sum((Counter(each.executables) for each in after), Counter())
    return {
        "before": _total(before, between),
        "after": _total(after, between),
        "executables": [
            {"name": name, "dispatch-count": count} for name, count in executables.items()
        ],
        "phases": {
            **_sums(each.rewritten.phases for each in after),
            "load": sum(each.rewritten.phases["load"] for each in before),
        },
        "rules": {
            "remembered": all(each.is_remembered for each in after),
            **_saturation([each.report for each in after]),
        },
    }


def _statistics(compiled: Compiled) -> dict[str, float]:
    """Counts and sizes, and how long one run takes by the cost model."""
    return {**compiled.statistics, "predicted-us": compiled.rewritten.schedule.seconds * 1e6}


def _total(programs: Sequence[Compiled], between: int) -> dict[str, float]:
    """The sums of statistics, in which nodes `between` programs are host calls, too."""
    found = _sums(_statistics(each) for each in programs)
    return {**found, "host-count": found["host-count"] + between}


def _sums(several: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    """The sum of what stands under each name."""
    found: dict[str, Number] = {}
    for each in several:
        for name, value in each.items():
            found[name] = found[name] + value if name in found else value
    return found


def _saturation(reports: Sequence[Report]) -> dict[str, object]:
    """What the rules did in all searches, and why the first stopped that did not saturate."""
    cut_short = [each for each in reports if each.stopped != "saturated"]
    return {
        "stopped": [*cut_short, *reports][0].stopped,
        "rounds": max(len(each.rounds) - 1 for each in reports),
        "nodes": sum(each.nodes for each in reports),
        "growing": list(dict.fromkeys(name for each in reports for name in each.growing)),
        "dropped": [
            {"name": rule.name, "place": rule.place, "reason": rule.reason}
            for rule in dict.fromkeys(rule for each in reports for rule in each.dropped)
        ],
    }


def _shown(value: float) -> str:
    return number(value) if isinstance(value, int) else measured(value)


def print_comparison(title: str, before: Compiled, after: Compiled) -> None:
    """The statistics side by side, and the seconds that each phase took."""
    first, second = _statistics(before), _statistics(after)
    rows = [[key, _shown(first[key]), _shown(value)] for key, value in second.items()]
    title = f"{title} on {counted(after.threads, 'thread')}"
    print_table(title, ["statistic", "before", "after"], rows)
    phases = {**after.rewritten.phases, "load": before.rewritten.phases["load"]}
    print_table("phases", ["phase", "seconds"], [[k, measured(v)] for k, v in phases.items()])
    if after.report.dropped:
        dropped = [[rule.name, rule.reason, rule.place] for rule in after.report.dropped]
        print_table("rules that were dropped", ["rule", "reason", "place"], dropped)
