"""Resampling along one axis: which elements each element of the result reads, and their weights.

The program computes them where extents depend on sizes; else they are computed here, and constants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import floor

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType


@dataclass(frozen=True)
class Sampling:
    """How positions of the result map to positions of the input, and which elements count."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude_outside: bool
    antialias: bool
    extrapolation: float


@dataclass(frozen=True)
class AxisPlan:
    """One resampled axis: extents, scale (None: outer / extent) and the part that is looked at."""

    axis: int
    extent: Dim
    outer: Dim
    scale: float | None
    roi: tuple[float, float]

    @property
    def is_fixed(self) -> bool:
        return isinstance(self.extent, int) and isinstance(self.outer, int)


def taps(
    build: Tensors, plan: AxisPlan, sampling: Sampling, dtype: DType
) -> tuple[list[Value], list[Value]]:
    """Per tap the element that each element of the result reads, and its weight, if it has one."""
    made = _computed(build, plan, lambda x: _taps(x, plan, sampling, dtype))
    count = (len(made) + 1) // 2
    return made[:count], made[count:]


def outside(build: Tensors, plan: AxisPlan, sampling: Sampling) -> int:
    """Where the position of an element of the result is outside of the axis."""

    def compute(x: Value) -> list[Value]:
        at = _position(x, plan, sampling.coordinates)
        return [(at < 0).binary("or", at > _size(x, plan.extent) - 1)]

    return _computed(build, plan, compute)[0].index


def _computed(
    build: Tensors, plan: AxisPlan, compute: Callable[[Value], list[Value]]
) -> list[Value]:
    """What `compute` makes of 0, 1, … for the elements of the result."""
    maker = Tensors() if plan.is_fixed else build
    made = compute(Value(maker, maker.iota((plan.outer,), 0, DType.F64)))
    if not plan.is_fixed:
        return made
    results = interpret(maker.program({str(at): each.index for at, each in enumerate(made)}), {})
    return [Value(build, build.constant(results[str(at)])) for at in range(len(made))]


def _size(x: Value, dim: Dim) -> Value:
    """The number `dim` in each element."""
    return Value(x.build, x.build.size_of([dim], x.index))


def _position(x: Value, plan: AxisPlan, mode: str) -> Value:
    """For each element of the result its position in the input; no scale is that of the sizes."""
    extent, outer = _size(x, plan.extent), _size(x, plan.outer)
    if mode == "tf_crop_and_resize":
        start, end = np.array(plan.roi, np.float32)  # of which the reference computes in f32
        span, top = float(end - start), (extent - 1).cast(DType.F32)
        begin, middle = top * float(start), (top * span / 2).cast(DType.F64)
        inner = x * span * (extent - 1) / (outer - 1)
        return begin.cast(DType.F64) + middle.where(_is(outer, 1), inner)
    factor = outer / extent if plan.scale is None else x.like(plan.scale)
    if mode == "asymmetric":
        return x / factor
    if mode == "align_corners":
        width = factor * extent
        return x.like(0).where(_is(width, 1), x * (extent - 1) / (width - 1))
    if mode == "half_pixel_symmetric":  # about the middles, so that these stay exact
        return (x - (outer - 1) / 2) / factor + (extent - 1) / 2
    place = (x + 0.5) / factor
    if mode == "tf_half_pixel_for_nn":
        return place
    half = place - 0.5
    return x.like(0).where(_is(outer, 1), half) if mode == "pytorch_half_pixel" else half


def _is(x: Value, number: float) -> Value:
    return x.binary("eq", number)


def _taps(x: Value, plan: AxisPlan, sampling: Sampling, dtype: DType) -> list[Value]:
    """The elements that are read, then their weights."""
    at, top = _position(x, plan, sampling.coordinates), _size(x, plan.extent) - 1
    if sampling.mode == "nearest":
        return [_rounded(at, plan, sampling.nearest).clipped(top).cast(DType.I64)]
    support = 1 if sampling.mode == "linear" else 2
    stretch = min(plan.scale or 1.0, 1.0) if sampling.antialias else 1.0
    first = floor(-support / stretch) + 1
    below = at.unary("ceil") - 1
    ratio = at - below
    places = [below + offset for offset in range(first, 2 - first)]
    distances = [abs(offset - ratio) for offset in range(first, 2 - first)]
    if stretch != 1:
        distances = [each * stretch for each in distances]
    weights = [_weight(each, sampling) for each in distances]
    if sampling.antialias:
        weights = _of_sum_one(weights)
    if sampling.exclude_outside:
        inside = [(place >= 0).binary("and", place <= top) for place in places]
        kept = [each.where(here, 0) for each, here in zip(weights, inside, strict=True)]
        weights = _of_sum_one(kept)
    indices = [place.clipped(top).cast(DType.I64) for place in places]
    return [*indices, *(weight.cast(dtype) for weight in weights)]


def _rounded(at: Value, plan: AxisPlan, rounding: str) -> Value:
    """The element that nearest takes at a position."""
    if rounding == "simple":
        rounding = "floor" if plan.scale is None or plan.scale >= 1 else "ceil"
    if rounding in ("floor", "ceil"):
        return at.unary(rounding)
    if rounding == "round_prefer_floor":
        return (at - 0.5).unary("ceil")
    return (at + 0.5).unary("floor")


def _weight(distance: Value, sampling: Sampling) -> Value:
    """The filter's weight of an element this far away."""
    if sampling.mode == "linear":
        return (1 - distance).binary("max", 0)
    near, far = keys_near(distance, sampling.cubic), keys_far(distance, sampling.cubic)
    return near.where(distance <= 1, far.where(distance < 2, 0))


def keys_near(x: Value, a: float) -> Value:
    """Keys' cubic filter for 0 <= x <= 1."""
    return (x * (a + 2) - (a + 3)) * x * x + 1


def keys_far(x: Value, a: float) -> Value:
    """Keys' cubic filter for 1 <= x <= 2."""
    return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a


def _of_sum_one(weights: list[Value]) -> list[Value]:
    total = reduce(lambda total, weight: total + weight, weights)
    return [weight / total for weight in weights]
