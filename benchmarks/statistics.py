"""Interleaved timings, and means of their ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np

from satura.commands.timing import Samples, settle


def time_in_turns(runners: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Samples]:
    """Seconds of `rounds` runs of each, in turns; the runs that settle a turn are not counted."""
    found: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            settle(run)
            started = perf_counter()
            run()
            found[name].append(perf_counter() - started)
    return {name: np.array(seconds) for name, seconds in found.items()}


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios; 1 of none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else 1.0
