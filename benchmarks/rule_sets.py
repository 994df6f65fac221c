"""`python -m benchmarks rules`: what models take by the rules, by the exact ones and by none.

The slowdown is that of the default rules against the faster of the other two in the same round,
the median with its interval of 95 %. Predictions are by one cost model; where sizes are open, for
usual ones instead of those that are timed.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import satura
from benchmarks.models import build, example_inputs, example_sizes
from benchmarks.statistics import time_in_turns
from satura.commands.terminal import print_rows
from satura.commands.timing import ratio

RULE_SETS = ("none", "exact", "default")


def rule_sets(names: list[str], threads: int, rounds: int) -> None:
    """Print a line per model."""
    header = ["model", *(f"{rules} ms" for rules in RULE_SETS), "slowdown", "low", "high"]
    header += [f"{rules} predicted ms" for rules in RULE_SETS]
    rows = ([name, *_row(name, threads, rounds)] for name in names)
    print_rows(f"rules, in turns on {threads} threads", header, rows)


def _row(name: str, threads: int, rounds: int) -> list[str]:
    """What is printed of a model."""
    model = build(name)
    arguments = example_inputs(model, example_sizes(name))
    compiled = {rules: satura.compile(model, threads, rules=rules) for rules in RULE_SETS}
    runs = {rules: partial(each.run, arguments) for rules, each in compiled.items()}
    samples = time_in_turns(runs, rounds)
    medians = {rules: float(np.median(each)) for rules, each in samples.items()}
    faster = min(("none", "exact"), key=medians.__getitem__)
    slowdown = [each - 1 for each in ratio(samples[faster], samples["default"])]
    predicted = [each.rewritten.schedule.seconds for each in compiled.values()]
    return [
        *(f"{seconds * 1e3:.2f}" for seconds in medians.values()),
        *(f"{each:+.1%}" for each in slowdown),
        *(f"{seconds * 1e3:.2f}" for seconds in predicted),
    ]
