"""`satura stats`: what rewriting changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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


def stats(model: str, values: list[str], compiling: Compiling, json: bool) -> None:
    """Statistics of `model` compiled without rules and as `compiling` says: of a model that runs in
    several parts those of each, and which nodes run between them."""
    source, title = with_values(file_or_light(model), values), Path(model).name
    with progress(f"measuring {title}") as phase:
        before = replace(compiling, rules="none").compile(source, phase)
        is_one = len(before.parts) == 1 and not any(before.hosts)
        after = compiling.compile(before.source if is_one else source, phase)
    if is_one and json:
        print_json(comparison(before, after))
    elif is_one:
        print_comparison(title, before, after)
    elif json:
        pairs = zip(before.parts, after.parts, after.hosts, strict=True)
        print_json([{**comparison(one, other), "hosts": nodes} for one, other, nodes in pairs])
    else:
        pairs = zip(before.parts, after.parts, after.hosts, strict=True)
        for at, (one, other, nodes) in enumerate(pairs, 1):
            print_comparison(f"{title}, part {at} of {len(after.parts)}", one, other)
            for node in nodes:
                print_line(f"then {node} runs in Python\n")


def comparison(before: Compiled, after: Compiled) -> dict[str, object]:
    """Both programs' statistics; the executables of the second, its phases' seconds, its rules."""
    return {
        "before": _statistics(before),
        "after": _statistics(after),
        "executables": [
            {"name": name, "dispatch-count": count} for name, count in after.executables.items()
        ],
        "phases": {**after.phases, "load": before.phases["load"]},
        "rules": {"remembered": after.is_remembered, **_saturation(after.report)},
    }


def _statistics(compiled: Compiled) -> dict[str, float]:
    """Counts and sizes, and how long one run takes by the cost model."""
    return {**compiled.statistics, "predicted-us": compiled.rewritten.schedule.seconds * 1e6}


def _saturation(report: Report) -> dict[str, object]:
    return {
        "stopped": report.stopped,
        "rounds": len(report.rounds) - 1,
        "nodes": report.nodes,
        "growing": list(report.growing),
        "dropped": [
            {"name": rule.name, "place": rule.place, "reason": rule.reason}
            for rule in report.dropped
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
    phases = {**after.phases, "load": before.phases["load"]}
    print_table("phases", ["phase", "seconds"], [[k, measured(v)] for k, v in phases.items()])
    if after.report.dropped:
        dropped = [[rule.name, rule.reason, rule.place] for rule in after.report.dropped]
        print_table("rules that were dropped", ["rule", "reason", "place"], dropped)
