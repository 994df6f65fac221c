"""`satura stats`: what rewriting changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from satura.commands.compiling import Compiling
from satura.commands.terminal import counted, number, print_json, print_table, progress
from satura.commands.values import with_values
from satura.pipeline.compiled import Compiled
from satura.rewrite.egraph.report import Report


def stats(model: Path, values: list[str], compiling: Compiling, json: bool) -> None:
    """Statistics of `model` compiled without rules and as `compiling` says."""
    source = with_values(model, values)
    with progress(f"measuring {model.name}") as phase:
        before = replace(compiling, rules="none", cost="default").compile(source, phase)
        after = compiling.compile(before.source, phase)
    if json:
        print_json(comparison(before, after))
    else:
        print_comparison(model.name, before, after)


def comparison(before: Compiled, after: Compiled) -> dict[str, object]:
    """Both programs' statistics; the executables of the second, its phases' seconds, its rules."""
    return {
        "before": before.statistics,
        "after": after.statistics,
        "executables": [
            {"name": name, "dispatch-count": count} for name, count in after.executables.items()
        ],
        "phases": {**after.phases, "load": before.phases["load"]},
        "rules": {"remembered": after.is_remembered, **_saturation(after.report)},
    }


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


def print_comparison(title: str, before: Compiled, after: Compiled) -> None:
    """The statistics side by side, and the seconds that each phase took."""
    rows = [
        [key, number(before.statistics[key]), number(value)]
        for key, value in after.statistics.items()
    ]
    title = f"{title} on {counted(after.threads, 'thread')}"
    print_table(title, ["statistic", "before", "after"], rows)
    phases = {**after.phases, "load": before.phases["load"]}
    print_table("phases", ["phase", "seconds"], [[k, f"{v:.2f}"] for k, v in phases.items()])
    if after.report.dropped:
        dropped = [[rule.name, rule.reason, rule.place] for rule in after.report.dropped]
        print_table("rules that were dropped", ["rule", "reason", "place"], dropped)
