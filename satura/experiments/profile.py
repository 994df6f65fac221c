"""Profiles: per dispatch, what a call was predicted to take and what it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from satura.pipeline.compiled import Compiled
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.types.tensor_type import Array

_PEAK_ROWS, _PEAK_DEPTH = 1024, 512
_STREAM_FLOATS = 1 << 24  # 64 MiB, more than caches hold
_CACHED_FLOATS = 1 << 16
_TRIES = 12


@dataclass(frozen=True)
class Roofline:
    """What this machine does at most: operations per second, and bytes per second.

    `cached` is the bandwidth of what the nearest caches hold.
    """

    peak: float
    bandwidth: float
    cached: float

    def share(self, flops: float, size: float, seconds: float) -> float:
        """The time that the machine's limits leave for this work, over the time that it took."""
        rate = self.cached if size <= 4 * _CACHED_FLOATS * 2 else self.bandwidth
        least = max(flops / self.peak, size / rate)
        return least / seconds if seconds > 0 else 0.0


@dataclass(frozen=True)
class DispatchProfile:
    """One dispatch: predicted and measured seconds, operations and bytes, and its share of the
    machine's limits."""

    number: int
    form: str
    text: str
    predicted: float
    seconds: float
    flops: float
    bytes: float
    share: float

    @property
    def error(self) -> float:
        """By which share of the measured time the predicted one is off."""
        return abs(self.predicted - self.seconds) / self.seconds


@dataclass(frozen=True)
class Profile:
    """The dispatches that were launched, what was `counted` of them at run time and what the
    schedule's statistics say, and the machine's limits."""

    dispatches: tuple[DispatchProfile, ...]
    counted: Mapping[str, int]
    expected: Mapping[str, int]
    roofline: Roofline

    @property
    def errors(self) -> dict[str, float]:
        """The median error per form."""
        forms = sorted({each.form for each in self.dispatches})
        return {
            form: median(each.error for each in self.dispatches if each.form == form)
            for form in forms
        }

    @property
    def spearman(self) -> float:
        """The rank correlation of predicted and measured seconds; 1 where either are all equal."""
        predicted = [each.predicted for each in self.dispatches]
        seconds = [each.seconds for each in self.dispatches]
        if min(len(set(predicted)), len(set(seconds))) < 2:
            return 1.0
        return float(np.corrcoef(_ranks(predicted), _ranks(seconds))[0, 1])


def profile(compiled: Compiled, arguments: Mapping[str, Array], rounds: int = 15) -> Profile:
    """Time every launch of a call, alone, the least of `rounds`."""
    found = compiled.measure(arguments, rounds)
    schedule = compiled.rewritten.schedule
    limits = roofline(compiled.threads, schedule.is_exact)
    rows = []
    for number, seconds in found.seconds.items():
        dispatch = schedule.dispatches[number]
        features = dispatch.features
        flops = features.flops if features else 0.0
        size = features.working_set if features else 0.0
        described = number, dispatch.form.value, _text(schedule, dispatch), dispatch.seconds
        share = limits.share(flops, size, seconds)
        rows.append(DispatchProfile(*described, seconds, flops, size, share))
    nodes = schedule.program.nodes  # what stores no elements is not launched
    stored = [each for each in schedule.dispatches if 0 not in nodes[each.root].type.shape]
    counts = statistics(replace(schedule, dispatches=tuple(stored)))
    counted = {
        "dispatch-count": found.launches + counts["host-count"],
        "fill-count": found.fills,
        "copy-count": found.copies,
    }
    return Profile(tuple(rows), counted, {key: counts[key] for key in counted}, limits)


def roofline(threads: int, is_exact: bool = False) -> Roofline:
    """Measure this machine: a matrix product for operations, additions for bytes.

    Both run in satura's own kernels, at the speed that they reach where nothing is in the way;
    where it `is_exact`, f32 are multiplied as they are.
    """
    from satura.pipeline.api import compile as compile_program
    from satura.rewrite.program.builder import Builder
    from satura.rewrite.types.tensor_type import DType

    build = Builder()
    left = build.input("x", DType.F32, (_PEAK_ROWS, _PEAK_DEPTH))
    ones = build.constant(np.ones((_PEAK_DEPTH, _PEAK_ROWS), np.float32))
    program = build.program({"y": build.matmul(left, ones)})
    precision = "exact" if is_exact else "fp32"
    product = compile_program(program, threads, precision, rules="none")
    x = np.random.default_rng(0).standard_normal((_PEAK_ROWS, _PEAK_DEPTH), np.float32)
    peak = 2.0 * _PEAK_ROWS * _PEAK_DEPTH * _PEAK_ROWS / _least(product, {"x": x})
    speeds = []
    for size in (_STREAM_FLOATS, _CACHED_FLOATS):
        build = Builder()
        a, b = (build.input(name, DType.F32, (size,)) for name in "ab")
        total = compile_program(
            build.program({"y": build.binary("add", a, b)}), threads, rules="none"
        )
        given = np.ones(size, np.float32)
        speeds.append(12.0 * size / _least(total, {"a": given, "b": given.copy()}))
    return Roofline(peak, speeds[0], max(speeds))


def _least(compiled: Compiled, arguments: Mapping[str, Array]) -> float:
    return min(compiled.measure(arguments, _TRIES).seconds.values())


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """The place of each value among all; equal ones share the mean of theirs."""
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[number]


def _text(schedule: Schedule, dispatch: Dispatch) -> str:
    """The anchor or the root, and what is read: short enough for a table."""
    nodes = schedule.program.nodes
    node = nodes[dispatch.root if dispatch.anchor is None else dispatch.anchor]
    read = ", ".join(str(nodes[operand].type) for operand in dispatch.operands)
    return f"{node.op.name} {node.type} <- {read} ({len(dispatch.nodes)} nodes)"
