"""Lowerings of Resize and Upsample.

Each axis is resampled on its own. Nearest by a whole factor repeats elements (reshape, broadcast,
reshape); everything else is a sum of gathers with constant indices, times constant weights, of
channels-last elements between two transposes where the channels stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import floor

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.resampling import (
    AxisPlan,
    Sampling,
    outside,
    taps,
)
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim, SymbolicDim, exact_quotient, static
from satura.rewrite.types.tensor_type import DType

_LONGEST_AXIS = 2**24
_USUAL_EXTENTS = 4096  # below which a fraction must say what f32 does, to be taken for a scale
_FINEST_SCALE = 1000
_ENDS_OF_F32 = 2**24  # integers from here on are not all in it


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
    if sampling.antialias and sampling.mode != "nearest" and dtype.is_integer:
        result = _rounded(build, result, dtype)
    return build.converted(result, dtype)


def _rounded(build: Tensors, x: int, dtype: DType) -> int:
    """x rounded and in the bounds of an integer type, as runtimes have it with antialias; without
    they truncate."""
    x = build.unary("round", x)
    lowest, highest = dtype.bounds
    if highest < _ENDS_OF_F32:  # those of others are rounded up in f32
        x = build.apply_number("min", build.apply_number("max", x, lowest), highest)
    return x


def _sampling_of(node: Context) -> Sampling:
    mode = node.text("mode", "nearest")
    old = node.opset < 11
    nearest = "simple" if old else node.text("nearest_mode", "round_prefer_floor")
    coordinates = "asymmetric" if old else node.text("coordinate_transformation_mode", "half_pixel")
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
        raise node.wrong(
            f"its scales {list(scales or ())} must be more than 0 and less than {_LONGEST_AXIS}"
        )
    roi: Sequence[float] = [0.0] * len(axes) + [1.0] * len(axes)
    if sampling.coordinates == "tf_crop_and_resize":
        roi = [float(value) for value in node.array(1).ravel()]
        if len(roi) != 2 * len(axes):
            raise node.wrong(
                f"its roi has {len(roi)} numbers, but needs a start and an end for each of"
                f" {len(axes)} axes: {2 * len(axes)}"
            )
    parts = list(zip(roi[: len(axes)], roi[len(axes) :], strict=True))
    extents = [shape[axis] for axis in axes]
    outers: Sequence[Dim]
    if sizes is not None:
        outers, factors = _with_aspect(node, sizes, extents)
    else:
        factors = scales or ()
        outers = [
            _outer(node, extent, factor) for extent, factor in zip(extents, factors, strict=True)
        ]
    return [AxisPlan(*plan) for plan in zip(axes, extents, outers, factors, parts, strict=True)]


def _targets(node: Context) -> tuple[tuple[float, ...] | None, tuple[Dim, ...] | None]:
    """The scales or the sizes that the node gives."""
    if node.opset < 9 and node.proto.op_type == "Upsample":
        return node.numbers("scales") or (), None
    position = 1 if node.opset < 11 else 2
    if node.optional(3) is not None and node.build.type(node[3]).size != 0:
        return None, node.extents(3)
    return tuple(float(scale) for scale in node.array(position).ravel()), None


def _outer(node: Context, extent: Dim, scale: float) -> Dim:
    """The extent of a result: of the whole axis where a part is looked at too, as the operator's
    shape inference has it, and not its text. It multiplies in f32, where ten by 0.7 is seven."""
    if isinstance(extent, SymbolicDim):
        every = np.arange(_USUAL_EXTENTS)
        rounded = np.floor(every.astype(np.float32) * np.float32(scale))
        for share in (Fraction(scale), Fraction(scale).limit_denominator(_FINEST_SCALE)):
            if np.array_equal(every * share.numerator // share.denominator, rounded):
                return extent * share.numerator // share.denominator
        extent = node.fixed_dim(extent, f"an axis that is resized by {scale:g}")
    return int(np.floor(np.float32(extent) * np.float32(scale)))


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
        (places,), _ = taps(build := Tensors(), trial, sampling, DType.F32)
        found = build.nodes[places.index].constant.array
        if not np.array_equal(found, np.arange(static(trial.outer)) // factor):
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
    if plan.scale is None:  # else it has no elements where the input has none
        build.need_elements(plan.extent, 1)
    if sampling.antialias and not plan.is_fixed:
        extent, outer = node.static((plan.extent, plan.outer), "an axis resized with antialias")
        plan = replace(plan, extent=extent, outer=outer)
    if plan.extent == plan.outer == 0:
        return x
    if plan.extent == 0:
        raise ProgramError(f"axis {plan.axis} has no elements to resample")
    places, weights = taps(build, plan, sampling, build.dtype(x))
    parts = [build.gather(x, place.index, plan.axis) for place in places]
    for at, weight in enumerate(weights):
        spread = build.along(weight.index, plan.axis, build.shape(parts[at]))
        parts[at] = build.binary("mul", parts[at], spread)
    return reduce(lambda total, part: build.binary("add", total, part), parts)


def _extrapolate(node: Context, x: int, plans: Sequence[AxisPlan], sampling: Sampling) -> int:
    """The extrapolation value wherever a position lies outside the input."""
    build = node.build
    for plan in plans:
        mask = build.along(outside(build, plan, sampling), plan.axis, build.shape(x))
        x = build.select(mask, build.number(sampling.extrapolation, x), x)
    return x


_POLICIES: dict[str, Callable[[Sequence[float]], float]] = {"not_larger": min, "not_smaller": max}
