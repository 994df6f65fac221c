"""Lowerings of Resize and Upsample.

Each axis is resampled on its own. Nearest by a whole factor repeats elements (reshape, broadcast,
reshape); everything else is a sum of gathers with constant indices, times constant weights, of
channels-last elements between two transposes where the channels stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import floor

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.open_resize import (
    OpenLine,
    gather_weighted,
    inside,
    line_of,
    nearest,
    position,
    size_along,
    weights,
)
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim, SymbolicDim, exact_quotient, static
from satura.rewrite.types.tensor_type import DType

Line = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_LONGEST_AXIS = 2**24
_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip


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


@lowering("Resize", "Upsample")
def resize(node: Context) -> int:
    """The input resampled along every axis whose scale is not 1."""
    build, x = node.build, node[0]
    sampling = _sampling_of(node)
    plans = [plan for plan in _plans(node, sampling) if not _keeps_input(plan, sampling)]
    for plan in plans:
        if isinstance(plan.outer, int) and not 0 <= plan.outer <= _LONGEST_AXIS:
            raise node.wrong(f"axis {plan.axis} would have {plan.outer} elements")
    dtype = build.dtype(x)
    if sampling.mode == "nearest":
        repeats = {
            plan.axis: factor for plan in plans if (factor := _repeat_factor(plan, sampling))
        }
        result = _repeat(build, x, repeats) if repeats else x
        plans = [plan for plan in plans if plan.axis not in repeats]
    else:
        result = build.converted(x, dtype.compute if dtype.is_float else DType.F32)
    rank, spatial = len(build.shape(x)), bool(plans) and all(plan.axis > 1 for plan in plans)
    if spatial:
        result = build.transpose(result, (0, *range(2, rank), 1))
        plans = [replace(plan, axis=plan.axis - 1) for plan in plans]
    for plan in plans:
        result = _resample(node, result, plan, sampling)
    if sampling.coordinates == "tf_crop_and_resize":
        result = _extrapolate(node, result, plans, sampling)
    if spatial:
        result = build.transpose(result, (0, rank - 1, *range(1, rank - 1)))
    return build.converted(result, dtype)


def _sampling_of(node: Context) -> Sampling:
    mode = node.text("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise node.wrong(f"there is no mode '{mode}'; modes: nearest, linear, cubic")
    old = node.opset < 11
    nearest = "simple" if old else node.text("nearest_mode", "round_prefer_floor")
    coordinates = "asymmetric" if old else node.text("coordinate_transformation_mode", "half_pixel")
    if nearest not in _ROUNDING or coordinates not in _COORDINATES:
        raise node.wrong(f"there is no nearest_mode '{nearest}' or no coordinates '{coordinates}'")
    return Sampling(
        mode,
        coordinates,
        nearest,
        node.number("cubic_coeff_a", -0.75),
        bool(node.integer("exclude_outside")),
        bool(node.integer("antialias")),
        node.number("extrapolation_value"),
    )


def _plans(node: Context, sampling: Sampling) -> list[AxisPlan]:
    """One plan per resized axis, from the scales or the sizes."""
    shape = node.build.shape(node[0])
    axes = node.integers("axes") or tuple(range(len(shape)))
    axes = tuple(node.axis(axis, len(shape)) for axis in axes)
    scales, sizes = _targets(node)
    if len(scales or sizes or ()) != len(axes):
        raise node.wrong(f"it needs one scale or size for each of {len(axes)} axes")
    if any(not 0 < scale < _LONGEST_AXIS for scale in scales or ()):
        raise node.wrong(f"its scales {list(scales or ())} must be positive and finite")
    roi: Sequence[float] = [0.0] * len(axes) + [1.0] * len(axes)
    if sampling.coordinates == "tf_crop_and_resize":
        roi = [float(value) for value in node.array(1).ravel()]
    parts = list(zip(roi[: len(axes)], roi[len(axes) :], strict=True))
    extents = [shape[axis] for axis in axes]
    outers: Sequence[Dim]
    if sizes is not None:
        outers, factors = _with_aspect(node, sizes, extents)
    else:
        factors = scales or ()
        outers = [
            _outer(node, extent, factor, part)
            for extent, factor, part in zip(extents, factors, parts, strict=True)
        ]
    return [AxisPlan(*plan) for plan in zip(axes, extents, outers, factors, parts, strict=True)]


def _targets(node: Context) -> tuple[tuple[float, ...] | None, tuple[Dim, ...] | None]:
    """The scales or the sizes that the node gives."""
    if node.opset < 9 and node.proto.op_type == "Upsample":
        return node.numbers("scales") or (), None
    position = 1 if node.opset < 11 else 2
    if node.optional(3) is not None and node.build.type(node[3]).size != 0:
        return None, node.dims(3)
    return tuple(float(scale) for scale in node.array(position).ravel()), None


def _outer(node: Context, extent: Dim, scale: float, roi: tuple[float, float]) -> Dim:
    if isinstance(extent, SymbolicDim):
        if roi != (0.0, 1.0):
            raise node.unsupported(f"a part of axis {extent} is resized: give the input a size")
        above, below = scale.as_integer_ratio()
        return extent * above // below
    return floor(extent * (roi[1] - roi[0]) * scale)


def _ratio(outer: Dim, extent: Dim) -> float | None:
    if isinstance(outer, int) and isinstance(extent, int):
        return outer / extent if extent else 1.0
    factor = exact_quotient(outer, extent)
    return float(factor) if isinstance(factor, int) else None


def _with_aspect(
    node: Context, sizes: Sequence[Dim], shape: Sequence[Dim]
) -> tuple[Sequence[Dim], tuple[float | None, ...]]:
    """The sizes and scales under the node's policy; one scale for all axes is not rounded."""
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        pairs = zip(sizes, shape, strict=True)
        return sizes, tuple(_ratio(size, extent) for size, extent in pairs)
    if policy not in _POLICIES:
        raise node.wrong(f"there is no keep_aspect_ratio_policy '{policy}'")
    wanted, extents = node.static(sizes, "a size"), node.static(shape, "an extent")
    ratios = [size / extent for size, extent in zip(wanted, extents, strict=True)]
    scale = _POLICIES[policy](ratios)
    return tuple(floor(scale * extent + 0.5) for extent in extents), (scale,) * len(extents)


def _keeps_input(plan: AxisPlan, sampling: Sampling) -> bool:
    whole = sampling.coordinates != "tf_crop_and_resize" or plan.roi == (0.0, 1.0)
    return plan.extent == plan.outer and plan.scale == 1 and whole


def _repeat_factor(plan: AxisPlan, sampling: Sampling) -> int | None:
    """The factor by which nearest just repeats elements, if it does."""
    factor = int(plan.scale or 0)
    if factor < 1 or factor != plan.scale or plan.extent * factor != plan.outer:
        return None
    if isinstance(plan.extent, SymbolicDim):
        # These coordinates have the period `factor`, so that two extents speak for all.
        if sampling.coordinates not in ("asymmetric", "half_pixel"):
            return None
        trials = [AxisPlan(0, n, n * factor, plan.scale, plan.roi) for n in (1, 5)]
    else:
        trials = [plan]
    for trial in trials:
        indices, _ = _taps(trial, sampling)
        if not np.array_equal(indices[0], np.arange(static(trial.outer)) // factor):
            return None
    return factor


def _repeat(build: Tensors, x: int, factors: dict[int, int]) -> int:
    shape = build.shape(x)
    split: list[Dim] = []
    wide: list[Dim] = []
    joined: list[Dim] = []
    for axis, dim in enumerate(shape):
        factor = factors.get(axis)
        split += [dim] if factor is None else [dim, 1]
        wide += [dim] if factor is None else [dim, factor]
        joined.append(dim if factor is None else dim * factor)
    return build.reshape(build.broadcast(build.reshape(x, split), wide), joined)


def _resample(node: Context, x: int, plan: AxisPlan, sampling: Sampling) -> int:
    """The sum over taps of gathered elements times their weights."""
    build = node.build
    if isinstance(plan.extent, SymbolicDim) or isinstance(plan.outer, SymbolicDim):
        return _resample_open(node, x, plan, sampling)
    if plan.extent == 0:
        raise ProgramError(f"axis {plan.axis} has no elements to resample")
    indices, weights = _taps(plan, sampling)
    total: int | None = None
    for index, weight in zip(indices, weights, strict=True):
        part = build.gather(x, build.constant(index.astype(np.int64)), plan.axis)
        if sampling.mode == "nearest":
            return part
        vector = build.constant(weight, build.dtype(x))
        part = build.binary("mul", part, build.along(vector, plan.axis, build.shape(part)))
        total = part if total is None else build.binary("add", total, part)
    assert total is not None
    return total


def _resample_open(node: Context, x: int, plan: AxisPlan, sampling: Sampling) -> int:
    """As `_resample`, with positions and weights that depend on sizes."""
    if sampling.antialias:
        raise node.unsupported(
            f"axis {plan.axis} is resized from {plan.extent} to {plan.outer}; with antialias both"
            " must be fixed: give the input a size"
        )
    at, extent = _open_positions(node, plan, sampling)
    top = extent - 1.0
    if sampling.mode == "nearest":
        is_finer = plan.scale is None or plan.scale >= 1
        simple = "floor" if is_finer else "ceil"
        rounding = simple if sampling.nearest == "simple" else sampling.nearest
        return gather_weighted(x, plan.axis, nearest(at, rounding).clipped(top), None)
    below = at.function("ceil") - 1.0
    taps = weights(at - below, sampling.cubic if sampling.mode == "cubic" else None)
    if sampling.exclude_outside:
        taps = inside(taps, below, extent)
    parts = [
        gather_weighted(x, plan.axis, (below + far).clipped(top), weight) for far, weight in taps
    ]
    return reduce(lambda total, part: node.build.binary("add", total, part), parts)


def _open_positions(node: Context, plan: AxisPlan, sampling: Sampling) -> tuple[OpenLine, OpenLine]:
    """As `_positions`, and the extent, of an axis whose extents depend on sizes."""
    x = line_of(node, plan.outer)
    extent, outer = (size_along(x, dim) for dim in (plan.extent, plan.outer))
    return position(x, extent, outer, plan.scale, sampling.coordinates, plan.roi), extent


def _extrapolate(node: Context, x: int, plans: Sequence[AxisPlan], sampling: Sampling) -> int:
    """The extrapolation value wherever a position lies outside the input."""
    build = node.build
    for plan in plans:
        if isinstance(plan.extent, int) and isinstance(plan.outer, int):
            at = _positions(plan, sampling.coordinates)
            outside = build.constant((at < 0) | (at > plan.extent - 1))
        else:
            line, extent = _open_positions(node, plan, sampling)
            outside = line.outside(extent)
        mask = build.along(outside, plan.axis, build.shape(x))
        x = build.select(mask, build.number(sampling.extrapolation, x), x)
    return x


def _positions(plan: AxisPlan, coordinates: str) -> Line:
    """For each element of the result its position in the input."""
    extent, outer = static(plan.extent), static(plan.outer)
    x, scale = np.arange(outer, dtype=np.float64), _fixed_scale(plan)
    width = scale * extent
    if coordinates == "align_corners":
        return np.zeros(outer) if width == 1 else x * (extent - 1) / (width - 1)
    if coordinates == "asymmetric":
        return x / scale
    if coordinates == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if coordinates == "tf_crop_and_resize":
        start, end = plan.roi
        if outer == 1:
            return np.full(1, (start + end) * (extent - 1) / 2)
        return start * (extent - 1) + x * (end - start) * (extent - 1) / (outer - 1)
    if coordinates == "pytorch_half_pixel" and outer == 1:
        return np.zeros(1)
    shift = 0.0
    if coordinates == "half_pixel_symmetric":
        shift = extent / 2 * (1 - outer / width)
    return shift + (x + 0.5) / scale - 0.5


def _fixed_scale(plan: AxisPlan) -> float:
    assert plan.scale is not None  # of fixed extents it is known
    return plan.scale


def _taps(plan: AxisPlan, sampling: Sampling) -> tuple[list[Line], list[Line]]:
    """Per tap the index that each element of the result reads, and its weight."""
    extent = static(plan.extent)
    position = _positions(plan, sampling.coordinates)
    if sampling.mode == "nearest":
        nearest = _ROUNDING[sampling.nearest](position, _fixed_scale(plan))
        return [np.clip(nearest, 0, extent - 1)], [np.ones_like(nearest)]
    below = np.ceil(position) - 1
    ratio = position - below
    offsets, weights = _weights(ratio, _fixed_scale(plan), sampling)
    indices = [below + offset for offset in offsets]
    if sampling.exclude_outside:
        weights = [
            np.where((index >= 0) & (index < extent), weight, 0)
            for index, weight in zip(indices, weights, strict=True)
        ]
        total = np.sum(weights, axis=0)
        weights = [weight / total for weight in weights]
    return [np.clip(index, 0, extent - 1) for index in indices], weights


def _weights(ratio: Line, scale: float, sampling: Sampling) -> tuple[range, list[Line]]:
    """Offsets of the taps from the element below, and the filter's weights there."""
    support, kernel = (1, _triangle) if sampling.mode == "linear" else (2, _cubic(sampling.cubic))
    stretch = min(scale, 1.0) if sampling.antialias else 1.0
    first = floor(-support / stretch) + 1
    offsets = range(first, 2 - first)
    weights = [kernel((offset - ratio) * stretch) for offset in offsets]
    if sampling.antialias:
        total = np.sum(weights, axis=0)
        weights = [weight / total for weight in weights]
    return offsets, weights


def _triangle(distance: Line) -> Line:
    return np.asarray(np.maximum(1 - np.abs(distance), 0))


def _cubic(a: float) -> Callable[[Line], Line]:
    """Keys' cubic convolution filter."""

    def kernel(distance: Line) -> Line:
        x = np.abs(distance)
        inner = ((a + 2) * x - (a + 3)) * x * x + 1
        outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))

    return kernel


_ROUNDING: dict[str, Callable[[Line, float], Line]] = {
    "floor": lambda x, _: np.floor(x),
    "ceil": lambda x, _: np.ceil(x),
    "round_prefer_floor": lambda x, _: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x, _: np.floor(x + 0.5),
    "simple": lambda x, scale: np.ceil(x) if scale < 1 else np.floor(x),
}
_POLICIES: dict[str, Callable[[Sequence[float]], float]] = {"not_larger": min, "not_smaller": max}
