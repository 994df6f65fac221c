"""Timing: runs of several candidates, interleaved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

RUNS_PER_TURN = 3
SETTLING = 0.2  # seconds; behind its last run a runtime's threads may spin for 50 ms of a core
_RESAMPLES = 2000
_INTERVAL = (2.5, 97.5)


def medians(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of one run of each candidate."""
    return {name: median(values) for name, values in sampled(candidates, rounds).items()}


def sampled(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of the runs of each candidate.

    The candidates take turns, so that a change in the machine's speed meets all of them. The
    first runs of each turn are not counted: the candidate before may still hold cores and caches.
    """
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for candidate in candidates.values():
        candidate()
    for _ in range(rounds):
        for name, candidate in candidates.items():
            settle(candidate)
            for _ in range(RUNS_PER_TURN):
                start = perf_counter()
                candidate()
                samples[name].append(perf_counter() - start)
    return samples


def settle(candidate: Callable[[], object]) -> None:
    """Run it, at least once, until no other candidate's threads are awake."""
    started = perf_counter()
    candidate()
    while perf_counter() - started < SETTLING:
        candidate()


def ratio(ours: Samples, theirs: Samples, seed: int = 0) -> tuple[float, float, float]:
    """The median of their seconds over ours in the same round, and the limits of its bootstrap
    interval of 95 %: what slows down a round meets both.
    """
    ratios = theirs / ours
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (_RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(ratios[drawn], axis=1), _INTERVAL)
    return float(np.median(ratios)), float(low), float(high)
