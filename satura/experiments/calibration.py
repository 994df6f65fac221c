"""Calibration: the rates of this machine, learnt from training programs.

Each dispatch of a training program is timed alone, in several passes over all of them: a machine
that others share is slow for seconds at a time. The rates are those with which the cost model's
relative errors are least: by least squares over rates that are not negative, where a dispatch
counts less the worse it fits. What no program tells stays near the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from satura.experiments.training import programs
from satura.pipeline.compiled import Compiled
from satura.pipeline.inputs import random_inputs
from satura.pipeline.phases import Progress
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.features import MEMORY, OVERHEADS, Features
from satura.rewrite.program.program import Program

Vector = NDArray[np.float64]

_PASSES, _ROUNDS = 3, 12
_REPEATS = 25  # of the fit
_SWEEPS = 300  # at most, of one step of the fit
_SETTLED = 1e-9  # a change of every rate after which sweeps end
_LEAST, _MOST = 0.02, 50.0  # of the default
_PRIOR = 0.003  # how much a default counts beside one measurement
_HELD_OUT = 4  # one of so many dispatches of each program only tests
_TOLERANCE = 0.25  # relative errors beyond count less and less


@dataclass(frozen=True)
class Sample:
    """One dispatch of the training programs: what it does, and the seconds that it takes."""

    about: str
    features: Features
    seconds: float
    is_held_out: bool


@dataclass(frozen=True)
class Calibration:
    """A fitted model, and its median relative error by form on the dispatches that are held out,
    every fourth one of each program.

    `before` are the errors of the model that calibration started from.
    """

    model: CostModel
    samples: tuple[Sample, ...]
    errors: dict[str, float]
    before: dict[str, float]


def calibrate(model: CostModel, seed: int = 0, progress: Progress | None = None) -> Calibration:
    """Measure this machine's rates for one thread, starting from those of `model`."""
    samples = tuple(measure(seed, progress))
    fitted = fit(model, [each for each in samples if not each.is_held_out])
    unseen = [each for each in samples if each.is_held_out]
    return Calibration(fitted, samples, errors(fitted, unseen), errors(model, unseen))


def measure(seed: int = 0, progress: Progress | None = None) -> list[Sample]:
    """Time every dispatch of the training programs, the least of all passes."""
    given = list(programs(seed))
    found: list[Sample] = []
    for turn in range(_PASSES):
        timed: list[Sample] = []
        for number, (about, program) in enumerate(given):
            if progress is not None:
                progress(about, turn / _PASSES + number / len(given) / _PASSES)
            timed += _timed(about, program, seed)
        found = [min(pair, key=_seconds) for pair in zip(found or timed, timed, strict=True)]
    return found


def _timed(about: str, program: Program, seed: int) -> Iterator[Sample]:
    """The dispatches of one training program; its kernels are remembered."""
    from satura.pipeline.api import compile as compile_program

    compiled: Compiled = compile_program(program, 1, rules="none")
    seconds = compiled.measure(random_inputs(program, seed=seed), _ROUNDS, True).seconds
    for dispatch, taken in seconds.items():
        features = compiled.rewritten.schedule.dispatches[dispatch].features
        if features is not None:
            yield Sample(about, features, taken, dispatch % _HELD_OUT == _HELD_OUT - 1)


def _seconds(sample: Sample) -> float:
    return sample.seconds


def fit(model: CostModel, samples: Sequence[Sample]) -> CostModel:
    """`model` with the rates that predict the samples best, if only constants hide."""
    names = sorted(model.rates)
    behind = model.with_measured({}).behind
    column = {name: number for number, name in enumerate(names)}
    scale = np.array([model.rates[name] for name in names])
    seconds = np.array([each.seconds for each in samples])
    rows = np.array([_amounts(each.features, column) for each in samples])
    rows *= scale / seconds[:, None]
    found = np.ones(len(names))
    for _ in range(_REPEATS):
        seen = _without_hidden(rows, found, names, behind)
        off = np.abs(seen @ found - 1.0)
        weights = 1.0 / np.maximum(off, _TOLERANCE)
        found = 0.5 * found + 0.5 * _least_squares(seen, weights, found)
    rates = dict(zip(names, (found * scale).tolist(), strict=True))
    return model.with_measured(rates)


def errors(model: CostModel, samples: Sequence[Sample]) -> dict[str, float]:
    """The median relative error by form, and of all."""
    groups: dict[str, list[float]] = {"all": []}
    for each in samples:
        error = abs(model.seconds(each.features) / each.seconds - 1.0)
        groups["all"].append(error)
        groups.setdefault(each.features.form, []).append(error)
    return {name: median(found) for name, found in sorted(groups.items()) if found}


def _amounts(features: Features, column: dict[str, int]) -> Vector:
    """What a dispatch does, by rate."""
    found = np.zeros(len(column))
    found[column["launch"]] = 1.0
    for name, amount in (*features.moved, *features.work):
        found[column[name]] += amount
    return found


def _without_hidden(rows: Vector, found: Vector, names: Sequence[str], behind: float) -> Vector:
    """The rows less what hides by the rates `found`: of constants and computing the lesser."""
    constants = np.array([name == "constant" for name in names])
    work = np.array([name not in (*MEMORY, *OVERHEADS) for name in names])
    is_less = rows[:, constants] @ found[constants] < rows[:, work] @ found[work]
    hides = np.where(is_less[:, None], constants, work)
    return np.where(hides, rows * (1.0 - behind), rows)


def _least_squares(rows: Vector, weights: Vector, start: Vector) -> Vector:
    """The x >= 0 that makes rows · x nearest to 1, and x near to 1; by descent per coordinate."""
    weighted = rows * weights[:, None]
    prior = _PRIOR * float(weights.mean())
    matrix = rows.T @ weighted + prior * np.eye(rows.shape[1])
    right = weighted.sum(axis=0) + prior
    found = start.copy()
    for _ in range(_SWEEPS):
        before = found.copy()
        for number in range(len(found)):
            step = (right[number] - matrix[number] @ found) / matrix[number, number]
            found[number] = min(_MOST, max(_LEAST, found[number] + step))
        if np.abs(found - before).max() < _SETTLED:
            break
    return found
