"""Pools and convolutions in ONNX.

ONNX slides windows over the trailing axes of a channels-first tensor, in f32 and along up to three
axes. What does not fit is written as one strided slice per window position ("tap").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product as cartesian

import numpy as np

from satura.rewrite.onnx.write.elementwise import combine
from satura.rewrite.onnx.write.emitter import Emitter, Site
from satura.rewrite.onnx.write.layout import write_fill, write_pad, write_reshape, write_slice
from satura.rewrite.onnx.write.reductions import write_fold, write_matmul
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.types.attributes import Groups, ReduceFn, Window
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim, product
from satura.rewrite.types.tensor_type import DType, TensorType

_MOST_SPATIAL_AXES = 3


def pool(emit: Emitter, site: Site) -> str:
    """pool(x, f, window)"""
    function, window = site.node.attributes
    assert isinstance(function, ReduceFn) and isinstance(window, Window)
    type_, result = site.type(0), site.node.type
    active = [axis for axis in range(type_.rank) if _is_active(window, axis)]
    if not active:
        return site.operand(0)
    if 0 in window.sizes:
        identity = reduction_identity(function.name, result.dtype).item()
        return write_fill(emit, identity, result.shape, result.dtype)
    native = (
        _native_type(function.name, type_.dtype) is not None
        and len(active) <= _MOST_SPATIAL_AXES
        and 0 not in result.shape
    )
    if native and _has_neutral_border(window, function.name, result.dtype):
        return _spatial_pool(emit, site.operand(0), function.name, window, type_, result)
    bordered = _write_border(emit, site.operand(0), window, type_, first=0)
    if native:
        none = (0,) * window.rank
        whole = replace(type_, shape=_with_border(window, type_.shape))
        inner = replace(window, lo=none, hi=none)
        return _spatial_pool(emit, bordered, function.name, inner, whole, result)
    work = type_.dtype.compute
    wide = emit.cast(bordered, type_.dtype, work)
    taps = [
        _tap(emit, wide, window, tap, result.shape, first=0)
        for tap in cartesian(*map(range, window.sizes))
    ]
    return emit.cast(write_fold(emit, function.name, taps, work), work, type_.dtype)


def _native_type(function: str, dtype: DType) -> DType | None:
    """The type in which ONNX, and every runtime, has a pool of these elements."""
    if function == "prod":
        return None
    if dtype.compute is DType.F32:
        return DType.F32
    is_kept = dtype in (DType.I8, DType.U8) and function == "max"
    return dtype if is_kept or (dtype is DType.F64 and function != "sum") else None


def _with_border(window: Window, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    return tuple(lo + dim + hi for lo, dim, hi in zip(window.lo, shape, window.hi, strict=True))


def _has_neutral_border(window: Window, function: str, dtype: DType) -> bool:
    """Whether ONNX's own pads are the window's border: they change no result."""
    if not window.has_border:
        return True
    fill, neutral = window.fill.array, reduction_identity(function, dtype)
    return bool(fill == neutral and np.signbit(fill) == np.signbit(neutral)) and all(
        0 <= amount < size
        for side in (window.lo, window.hi)
        for amount, size in zip(side, window.sizes, strict=True)
        if amount or size > 1
    )


def _is_active(window: Window, axis: int) -> bool:
    plain = window.sizes[axis] == 1 and window.strides[axis] == 1
    return not plain or window.lo[axis] != 0 or window.hi[axis] != 0


def _write_border(emit: Emitter, x: str, window: Window, type_: TensorType, first: int) -> str:
    """x with the window's border as elements; the window starts at axis `first`."""
    if not window.has_border:
        return x
    behind = type_.rank - first - window.rank
    lo = (0,) * first + window.lo + (0,) * behind
    hi = (0,) * first + window.hi + (0,) * behind
    value = emit.constant(Constant(window.fill.array))
    return write_pad(emit, x, value, lo, hi, type_.dtype)


def _tap(
    emit: Emitter, x: str, window: Window, tap: Sequence[int], result: Sequence[Dim], first: int
) -> str:
    """What one position of the window sees: for each result element the element it reads."""
    starts = [k * d for k, d in zip(tap, window.dilations, strict=True)]
    ends: list[Dim] = []
    for axis, start in enumerate(starts):
        extent = result[first + axis]
        ends.append(start + (extent - 1) * window.strides[axis] + 1 if extent != 0 else start)
    axes = emit.integers(range(first, first + window.rank))
    steps = emit.integers(window.strides)
    return emit.node("Slice", x, emit.integers(starts), emit.shape(ends), axes, steps)


def _spatial_pool(
    emit: Emitter, x: str, function: str, window: Window, type_: TensorType, result: TensorType
) -> str:
    """A pool over the active axes of x, moved to the end for it."""
    active = [axis for axis in range(type_.rank) if _is_active(window, axis)]
    if not active:
        return x
    passive = [axis for axis in range(type_.rank) if axis not in active]
    order = [*passive, *active]
    work = _native_type(function, result.dtype) or result.dtype
    x = emit.turned(emit.cast(x, result.dtype, work), order)
    if len(passive) != 2:
        outer = product(type_.shape[axis] for axis in passive)
        x = write_reshape(emit, x, (outer, 1, *(type_.shape[axis] for axis in active)))
    pooled = _native_pool(emit, x, function, window, active)
    if len(passive) != 2:
        pooled = write_reshape(emit, pooled, [result.shape[axis] for axis in order])
    back = sorted(range(len(order)), key=order.__getitem__)
    return emit.cast(emit.turned(pooled, back), work, result.dtype)


def _native_pool(
    emit: Emitter, x: str, function: str, window: Window, active: Sequence[int]
) -> str:
    """ONNX's own pool. Where a window holds NaN, or -inf alone, ONNX says nothing of its maximum:
    it is the runtime's, as in the model that was loaded."""
    options = {
        "kernel_shape": [window.sizes[axis] for axis in active],
        "strides": [window.strides[axis] for axis in active],
        "dilations": [window.dilations[axis] for axis in active],
        "pads": [side[axis] for side in (window.lo, window.hi) for axis in active],
    }
    if function == "sum":
        count = float(np.prod(options["kernel_shape"]))
        mean = emit.node("AveragePool", x, count_include_pad=1, **options)
        return emit.node("Mul", mean, emit.scalar(count, DType.F32))
    if function == "min":
        return emit.node("Neg", emit.node("MaxPool", emit.node("Neg", x), **options))
    return emit.node("MaxPool", x, **options)


def conv(emit: Emitter, site: Site) -> str:
    """conv(x, w, window, groups), or winograd(x, w, window)"""
    window, *rest = site.node.attributes
    (groups,) = rest or (Groups(1),)
    assert isinstance(window, Window) and isinstance(groups, Groups)
    x, weight, result = site.type(0), site.type(1), site.node.type
    empty = any(0 in type_.shape for type_ in (x, weight, result))
    native = result.dtype.compute is DType.F32 and 1 <= window.rank <= _MOST_SPATIAL_AXES
    if native and not empty:
        return _native_conv(emit, site, window, groups.count)
    if product(weight.shape) == 0 or product(result.shape) == 0:
        return write_fill(emit, 0, result.shape, result.dtype)
    return _conv_by_taps(emit, site, window, groups.count)


def _native_conv(emit: Emitter, site: Site, window: Window, groups: int) -> str:
    dtype, spatial = site.node.type.dtype, range(1, window.rank + 1)
    x = site.operand(0)
    zero = not np.any(window.fill.array) and not np.signbit(window.fill.array)
    if not zero:
        x = _write_border(emit, x, window, site.type(0), first=1)
    first = emit.turned(emit.cast(x, dtype, DType.F32), [0, window.rank + 1, *spatial])
    convolved = emit.node(
        "Conv",
        first,
        _filters(emit, site, window.rank, dtype),
        kernel_shape=list(window.sizes),
        strides=list(window.strides),
        dilations=list(window.dilations),
        pads=[*window.lo, *window.hi] if zero else [0] * (2 * window.rank),
        group=groups,
    )
    last = emit.turned(convolved, [0, *range(2, window.rank + 2), 1])
    return emit.cast(last, DType.F32, dtype)


def _filters(emit: Emitter, site: Site, spatial: int, dtype: DType) -> str:
    """The weight as f32 [oc, c / groups, *kernel]; a constant is stored that way."""
    order = [spatial + 1, spatial, *range(spatial)]
    known = site.known(1)
    if known is None or dtype is not DType.F32:
        weight = emit.cast(site.operand(1), dtype, DType.F32)
        return emit.turned(weight, order)
    return emit.constant(known, order)


def _conv_by_taps(emit: Emitter, site: Site, window: Window, groups: int) -> str:
    """The sum over taps of matrix products, one per group: [g, rows, c / g] @ [g, c / g, o / g]."""
    x, result = site.type(0), site.node.type
    dtype = result.dtype
    work = dtype.compute
    bordered = _write_border(emit, site.operand(0), window, x, first=1)
    source = emit.cast(bordered, dtype, work)
    weight = emit.cast(site.operand(1), dtype, work)
    channels, filters = x.shape[-1], result.shape[-1]
    inner, width = channels // groups, filters // groups
    rows = product(result.shape[:-1])
    total = ""
    for tap in cartesian(*map(range, window.sizes)):
        seen = _tap(emit, source, window, tap, result.shape, first=1) if tap else source
        grouped = write_reshape(emit, seen, (rows, groups, inner))
        part = weight
        if tap:
            part = write_slice(emit, weight, tap, [k + 1 for k in tap], range(len(tap)))
        factors = emit.turned(write_reshape(emit, part, (inner, groups, width)), [1, 0, 2])
        term = write_matmul(emit, emit.turned(grouped, [1, 0, 2]), factors, work)
        total = combine(emit, "add", total, term, work) if total else term
    joined = write_reshape(emit, emit.turned(total, [1, 0, 2]), result.shape)
    return emit.cast(joined, work, dtype)
