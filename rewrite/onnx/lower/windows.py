"""Lowerings of pools and other sliding windows; no layout changes, a window covers every axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, computed_wide, lowering
from satura.rewrite.onnx.lower.contraction import crop_negative_borders
from satura.rewrite.onnx.lower.geometry import Geometry, padded_geometry
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.dims import Dim, SymbolicDim, static
from satura.rewrite.types.tensor_type import DType

_MOST_PLACES = 2**24


def _kernel(node: Context) -> tuple[int, ...]:
    spatial = node.build.shape(node[0])[2:]
    kernel = node.integers("kernel_shape")
    if not kernel or len(spatial) != len(kernel):
        raise node.wrong(f"its kernel_shape {kernel} does not fit {len(spatial)} spatial axes")
    return kernel


def _pad_declared(node: Context, x: int, fill: object) -> tuple[int, Geometry, Geometry]:
    """x with borders that depend on sizes, the window with declared borders and as it is used."""
    x, declared = padded_geometry(node, x, _kernel(node), fill)
    return x, declared, _rounded_up(node, declared, node.build.shape(x)[2:])


def _rounded_up(node: Context, window: Geometry, spatial: Sequence[Dim]) -> Geometry:
    """The window with the borders of ceil_mode."""
    if node.integer("ceil_mode"):
        hi = [_ceil_border(window, axis, extent) for axis, extent in enumerate(spatial)]
        window = replace(window, hi=tuple(hi))
    return window


def _ceil_border(window: Geometry, axis: int, extent: Dim) -> int:
    """The upper border that gives the rounded-up extent; no window starts beyond the lower pad."""
    stride, lo, hi = window.strides[axis], window.lo[axis], window.hi[axis]
    if stride == 1:
        return hi
    reach, size = window.reach[axis], extent
    if isinstance(size, SymbolicDim):
        return min(hi + stride - 1, reach - 1)  # for all sizes as many windows as the least border
    outer = -(-(size + lo + hi - reach) // stride) + 1
    if (outer - 1) * stride >= size + lo:
        outer -= 1
    needed = (outer - 1) * stride + reach - size - lo
    floor_outer = (size + lo + hi - reach) // stride + 1
    return hi if floor_outer == outer else needed


def _pool(build: Tensors, f: str, x: int, window: Geometry, fill: object = 0) -> int:
    """`pool` with a window of 1 over batch and channels."""
    x, lo, hi = crop_negative_borders(build, x, (0, 0, *window.lo), (0, 0, *window.hi))
    attribute: Window = build.window(
        build.dtype(x), (1, 1, *window.kernel), (1, 1, *window.strides),
        (1, 1, *window.dilations), lo, hi, fill,
    )  # fmt: skip
    return build.pool(f, x, attribute)


@lowering("MaxPool")
def max_pool(node: Context) -> list[int]:
    """The largest element under the window; positions outside count as -inf."""
    fill = reduction_identity("max", node.build.dtype(node[0]))
    x, _, window = _pad_declared(node, node[0], fill)
    result = _pool(node.build, "max", x, window, fill)
    return [result, _places(node, window, result)] if sum(node.wanted) > 1 else [result]


def _places(node: Context, window: Geometry, largest: int) -> int:
    """The flat index in x of the first of the largest elements under each window.

    All elements under all windows are gathered. Taps in the border read the first one inside.
    """
    build, x = node.build, node[0]
    batch, channels, *spatial = build.shape(x)
    extents = node.static(spatial, "the image under indices")
    outer = node.static(build.shape(largest)[2:], "the extents of the indices")
    count, taps = prod(outer), prod(window.kernel)
    if count * taps > _MOST_PLACES:
        raise node.unsupported(f"windows with {count * taps} elements in all have no indices")
    places = _elements_under(window, extents, outer)
    plane = prod(extents)
    flat = build.gather(build.reshape(x, (batch, channels, plane)), build.constant(places), 2)
    tap = build.drop(build.arg_reduce("max", flat, 3), [3])
    row = build.apply_number("mul", build.iota(build.shape(tap), 2, DType.I64), taps)
    numbers = places
    if node.integer("storage_order"):
        numbers = np.ravel_multi_index(np.unravel_index(places, extents)[::-1], extents[::-1])
    chosen = build.gather(build.constant(numbers.ravel()), build.binary("add", row, tap), 0)
    first = build.iota((batch * channels,), 0, DType.I64)
    first = build.reshape(build.apply_number("mul", first, plane), (batch, channels, 1))
    result = build.binary("add", chosen, build.expand(first, build.shape(chosen)))
    return build.reshape(result, build.shape(largest))


def _elements_under(
    window: Geometry, extents: tuple[int, ...], outer: tuple[int, ...]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """For each position of the window and each tap the flat index of the element it reads."""
    axes = range(len(extents))
    starts = np.indices(outer).reshape(len(axes), -1, 1)
    taps = np.indices(window.kernel).reshape(len(axes), 1, -1)
    lo, strides, dilations = (
        np.array(numbers).reshape(-1, 1, 1)
        for numbers in (window.lo, window.strides, window.dilations)
    )
    places = starts * strides + taps * dilations - lo
    ends = np.array(extents).reshape(-1, 1, 1)
    inside = ((places >= 0) & (places < ends)).all(0)
    first = np.argmax(inside, axis=1)
    kept = np.where(inside, places, places[:, np.arange(len(first)), first][:, :, None])
    clipped = np.clip(kept, 0, np.maximum(ends - 1, 0))
    return np.asarray(np.ravel_multi_index(tuple(clipped), extents), np.int64)


@lowering("AveragePool")
@computed_wide
def average_pool(node: Context) -> int:
    """The sum under the window divided by how many positions count."""
    build = node.build
    x, declared, window = _pad_declared(node, node[0], 0)
    total = _pool(build, "sum", x, window)
    return build.binary("div", total, _count(node, x, declared, window, total))


def _count(node: Context, x: int, declared: Geometry, window: Geometry, total: int) -> int:
    """Positions under each window that lie in the input, or in its declared padding too.

    A border beyond the declared padding, from ceil_mode, never counts. x has the part of the
    declared padding that depends on sizes.
    """
    build = node.build
    axes = len(window.kernel)
    include = bool(node.integer("count_include_pad"))
    spatial = build.shape(x if include else node[0])[2:]
    lo, hi = (declared.lo, declared.hi) if include else ((0,) * axes, (0,) * axes)
    everywhere = build.shape(x)[2:] == spatial and all(
        window.lo[axis] <= lo[axis] and window.hi[axis] <= hi[axis] for axis in range(axes)
    )
    if everywhere:
        return build.number(int(np.prod(window.kernel)), total)
    dtype = build.dtype(total)
    if any(not isinstance(extent, int) for extent in spatial):
        counted = [a + extent + b for a, extent, b in zip(lo, spatial, hi, strict=True)]
        ones = build.full(1, (1, 1, *counted), dtype)
        if not include:
            ones, _ = padded_geometry(node, ones, window.kernel, 0)
        rest = replace(
            window,
            lo=tuple(a - b for a, b in zip(window.lo, lo, strict=True)),
            hi=tuple(a - b for a, b in zip(window.hi, hi, strict=True)),
        )
        return build.expand(_pool(build, "sum", ones, rest), build.shape(total))
    counts = np.ones((1, 1, *(1,) * axes))
    for axis in range(axes):
        outer = static(build.shape(total)[2 + axis])
        line = [1] * (2 + axes)
        line[2 + axis] = outer
        counts = counts * _axis_counts(
            window, axis, outer, -lo[axis], static(spatial[axis]) + hi[axis]
        ).reshape(line)
    constant = build.constant(counts, dtype)
    return build.expand(constant, build.shape(total))


def _axis_counts(
    window: Geometry, axis: int, outer: int, first: int, end: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """For each window position along an axis how many taps fall in [first, end)."""
    starts = np.arange(outer)[:, None] * window.strides[axis] - window.lo[axis]
    taps = starts + np.arange(window.kernel[axis])[None, :] * window.dilations[axis]
    inside = (taps >= first) & (taps < end)
    return np.asarray(inside.sum(1), np.float64)


@lowering("LpPool")
@computed_wide
def lp_pool(node: Context) -> int:
    """The p-norm of the elements under the window."""
    p = node.integer("p", 2)
    powers, _, window = _pad_declared(node, _power(node.build, node[0], p), 0)
    return _root(node.build, _pool(node.build, "sum", powers, window), p)


def _power(build: Tensors, x: int, p: int) -> int:
    """|x| ** p"""
    if p == 2:
        return build.binary("mul", x, x)
    size = build.unary("abs", x)
    return size if p == 1 else build.apply_number("pow", size, p)


def _root(build: Tensors, x: int, p: int) -> int:
    if p == 1:
        return x
    return build.unary("sqrt", x) if p == 2 else build.apply_number("pow", x, 1 / p)


@lowering("GlobalMaxPool")
def global_max_pool(node: Context) -> int:
    """The largest element of all spatial axes, which stay with extent 1."""
    return node.build.reduce("max", node[0], range(2, node.build.rank(node[0])))


@lowering("GlobalAveragePool")
@computed_wide
def global_average_pool(node: Context) -> int:
    """The mean along all spatial axes, which stay with extent 1."""
    return node.build.mean(node[0], range(2, node.build.rank(node[0])))


@lowering("GlobalLpPool")
@computed_wide
def global_lp_pool(node: Context) -> int:
    """The p-norm along all spatial axes, which stay with extent 1."""
    build, x = node.build, node[0]
    p = node.integer("p", 2)
    return _root(build, build.reduce("sum", _power(build, x, p), range(2, build.rank(x))), p)


@lowering("LRN")
@computed_wide
def local_response_norm(node: Context) -> int:
    """x / (bias + alpha/size · sum of squares over `size` channels around) ** beta"""
    build, x = node.build, node[0]
    size = node.integer("size")
    if size < 1 or build.rank(x) < 2:
        raise node.wrong(f"size is {size} and the input has rank {build.rank(x)}")
    ones = [1] * build.rank(x)
    window = build.window(
        build.dtype(x),
        [size if axis == 1 else 1 for axis in range(len(ones))],
        lo=[(size - 1) // 2 if axis == 1 else 0 for axis in range(len(ones))],
        hi=[size // 2 if axis == 1 else 0 for axis in range(len(ones))],
    )
    total = Value(build, build.pool("sum", build.binary("mul", x, x), window))
    base = total * (node.number("alpha", 1e-4) / size) + node.number("bias", 1.0)
    return (node.tensor(0) / base.binary("pow", node.number("beta", 0.75))).index
