"""`satura stats`: what rewriting changed."""

from __future__ import annotations

from pathlib import Path

import satura
from satura.commands.terminal import number, print_json, print_table, progress
from satura.compiled import Compiled


def stats(model: Path, rules: str, threads: int | None, json: bool) -> None:
    """Statistics of `model` compiled without rules and with the set `rules`."""
    with progress(f"measuring {model.name}") as phase:
        before = satura.compile(model, threads, rules="none", progress=phase)
        after = satura.compile(before.source, threads, rules=rules, progress=phase)
    if json:
        print_json(comparison(before, after))
    else:
        print_comparison(model.name, before, after)


def comparison(before: Compiled, after: Compiled) -> dict[str, object]:
    """Both programs' statistics, the executables of the second, and its phases' seconds."""
    return {
        "before": before.statistics,
        "after": after.statistics,
        "executables": [
            {"name": name, "dispatch-count": count} for name, count in after.executables.items()
        ],
        "phases": {**after.phases, "load": before.phases["load"]},
    }


def print_comparison(title: str, before: Compiled, after: Compiled) -> None:
    """The statistics side by side, and the seconds that each phase took."""
    rows = [
        [key, number(before.statistics[key]), number(value)]
        for key, value in after.statistics.items()
    ]
    print_table(title, ["statistic", "before", "after"], rows)
    phases = {**after.phases, "load": before.phases["load"]}
    print_table("phases", ["phase", "seconds"], [[k, f"{v:.2f}"] for k, v in phases.items()])
