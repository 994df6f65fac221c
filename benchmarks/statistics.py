"""Statistics of interleaved timings: medians, ratios with intervals, geometric means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]
_RESAMPLES = 2000
_INTERVAL = (2.5, 97.5)


def time_in_turns(runners: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Samples]:
    """Seconds of `rounds` runs of each, in turns; one run before each turn is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            run()
            started = perf_counter()
            run()
            found[name].append(perf_counter() - started)
    return {name: np.array(seconds) for name, seconds in found.items()}


def ratio(ours: Samples, theirs: Samples, seed: int = 0) -> tuple[float, float, float]:
    """The median of their seconds over ours in the same round, and the limits of its bootstrap
    interval of 95 %: what slows down a round meets both.
    """
    ratios = theirs / ours
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (_RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(ratios[drawn], axis=1), _INTERVAL)
    return float(np.median(ratios)), float(low), float(high)


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios; 1 of none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else 1.0
