"""Statistics of interleaved timings: medians, ratios with intervals, geometric means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from satura.commands.bench import Runner

Samples = NDArray[np.float64]
_OUTSIDE = 0.025  # of an interval, on each side


def time_in_turns(runners: Mapping[str, Runner], rounds: int) -> dict[str, Samples]:
    """Seconds of `rounds` runs of each, in turns; one run before each turn is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            run()
            started = perf_counter()
            run()
            found[name].append(perf_counter() - started)
    return {name: np.array(seconds) for name, seconds in found.items()}


def ratio(ours: Samples, theirs: Samples) -> tuple[float, float, float]:
    """The median of their seconds over ours in the same round, and the limits of its interval of
    95 %, or the extremes of less than six rounds.

    What slows down a round meets both. The limits are order statistics: whatever the ratios are
    like, half of them are below the median.
    """
    ratios = np.sort(theirs / ours)
    rounds = len(ratios)
    below = np.cumsum([comb(rounds, count) / 2**rounds for count in range(rounds // 2)])
    outside = max(int(np.count_nonzero(below <= _OUTSIDE)) - 1, 0)
    return float(np.median(ratios)), float(ratios[outside]), float(ratios[-1 - outside])


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios; 1 of none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else 1.0
