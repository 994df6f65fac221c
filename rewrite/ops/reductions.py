"""Ops that combine many elements: reductions, windows and contractions."""

from __future__ import annotations

from itertools import product as cartesian

import numpy as np

from satura.rewrite.ops.elementwise import BINARY, in_compute_type
from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Groups,
    ReduceFn,
    Refuse,
    Window,
    refuse_unless,
)  # fmt: skip
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.rewrite.types.typical import representative

STEPS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
"""The binary function of each reduction."""

REDUCTIONS = tuple(STEPS)
SELECTIONS = tuple(
    f for f, step in STEPS.items() if BINARY[step].associative and BINARY[step].idempotent
)
"""Reductions of floats, too, that depend neither on the elements' order nor on their number."""

_FEW_PRODUCTS = 2100  # in a sum
_FEW_IN_ALL = 1 << 24


def reduction_identity(f: str, dtype: DType) -> np.generic:
    """The value of an empty reduction."""
    largest = f == "min"
    value: float
    if f in ("sum", "prod"):
        value = int(f == "prod")
    elif dtype is DType.BOOL:
        value = largest
    elif dtype.is_float:
        value = np.inf if largest else -np.inf
    else:
        value = dtype.bounds[largest]
    identity: np.generic = np.array([value], dtype.numpy)[0]
    return identity


def combine(f: str, a: Array, b: Array) -> Array:
    """One step of a reduction in the compute type."""
    if a.dtype == np.bool_:
        return np.asarray(np.logical_or(a, b) if f == "max" else np.logical_and(a, b))
    with np.errstate(all="ignore"):
        return BINARY[STEPS[f]].reference(a, b)


def _reduce(x: Array, f: ReduceFn, axes: Axes) -> Array:
    dtype = DType.of(x.dtype)
    wide = x.astype(dtype.compute.numpy)
    start = reduction_identity(f.name, dtype.compute)
    with np.errstate(all="ignore"):
        if f.name in ("sum", "prod"):
            # As rows of a contiguous matrix: NumPy's order of summation depends on strides.
            kept = [axis for axis in range(x.ndim) if axis not in axes.indices]
            shape = [1 if axis in axes.indices else n for axis, n in enumerate(x.shape)]
            width = int(np.prod([x.shape[axis] for axis in axes.indices]))
            height = int(np.prod([x.shape[axis] for axis in kept]))
            rows = np.transpose(wide, (*kept, *axes.indices)).reshape(height, width)
            ufunc = np.add if f.name == "sum" else np.multiply
            result = ufunc.reduce(np.ascontiguousarray(rows), axis=1, dtype=wide.dtype)
            return np.asarray(result).reshape(shape).astype(x.dtype)
    result = wide
    for axis in axes.indices:
        result = _selected(f.name, result, axis, start)
    return np.asarray(result).astype(x.dtype)


def _selected(f: str, x: Array, axis: int, start: np.generic) -> Array:
    """The max or min along an axis, which stays with extent 1; `start` where it is empty.

    Neighbours are combined first: a long axis takes few steps, and what is chosen is the same.
    """
    if not x.shape[axis]:
        return np.full([1 if i == axis else n for i, n in enumerate(x.shape)], start)
    before = (slice(None),) * axis
    while (extent := x.shape[axis]) > 1:
        even = extent - extent % 2
        first, second = (x[(*before, slice(i, even, 2))] for i in (0, 1))
        rest = x[(*before, slice(even, extent))]
        x = np.concatenate([combine(f, first, second), rest], axis)
    return x


@op(
    kind=Kind.REDUCTION,
    reference=_reduce,
    flops=lambda result, x, f, axes: size_of(x),
)
def reduce(x: TensorType, f: ReduceFn, axes: Axes) -> TensorType:
    """Elements along `axes` combined by f; the axes stay, with extent 1. Empty: f's identity.

    A sum begins with 0, so that of -0.0 alone is 0.0; so do those of pools and contractions.
    x has numbers, or bools of which only max and min are taken.
    """
    refuse_unless(f.name in REDUCTIONS, f"there is no reduction '{f}'")
    if x.dtype is DType.BOOL:
        refuse_unless(f.name in SELECTIONS, f"{f} does not take bool")
    refuse_unless(list(axes.indices) == sorted(set(axes.indices)), "axes must be sorted")
    refuse_unless(all(0 <= axis < x.rank for axis in axes.indices), f"{axes} is out of range")
    return x.with_shape(tuple(1 if i in axes.indices else n for i, n in enumerate(x.shape)))


def _arg_reduce(x: Array, f: ReduceFn, axis: Axis, last: Count) -> Array:
    wide = x.astype(DType.of(x.dtype).compute.numpy)
    if not x.shape[axis.index]:
        return np.zeros((*x.shape[: axis.index], 1, *x.shape[axis.index + 1 :]), np.int64)
    if last.value:
        wide = np.flip(wide, axis.index)
    pick = np.argmax if f.name == "max" else np.argmin
    index = np.expand_dims(pick(wide, axis.index), axis.index)
    return np.asarray(wide.shape[axis.index] - 1 - index if last.value else index).astype(np.int64)


@op(
    kind=Kind.REDUCTION,
    reference=_arg_reduce,
    flops=lambda result, x, *_: size_of(x),
)
def arg_reduce(x: TensorType, f: ReduceFn, axis: Axis, last: Count) -> TensorType:
    """Index (i64) of the max or min along `axis`, which stays with extent 1.

    The axis has elements where the result has any.
    NaN wins. Of several NaN, or else of equal elements, the first one counts, or the last one where
    `last` is Count(1), and not Count(0).
    """
    refuse_unless(f.name in SELECTIONS and 0 <= axis.index < x.rank, "wrong f or axis")
    refuse_unless(last.value in (0, 1), f"last is {last}, and not 0 or 1")
    shape = tuple(1 if i == axis.index else n for i, n in enumerate(x.shape))
    refuse_unless(x.shape[axis.index] != 0 or 0 in shape, "the axis is empty")
    return TensorType(DType.I64, shape)


def window_slices(
    window: Window, tap: tuple[int, ...], outer: tuple[int, ...]
) -> tuple[slice, ...]:
    """Where tap `tap` of the window reads an operand that carries its border explicitly."""
    return tuple(
        slice(k * d, k * d + (n - 1) * s + 1 if n else k * d, s)
        for k, d, s, n in zip(tap, window.dilations, window.strides, outer, strict=True)
    )


def _with_border(x: Array, window: Window, first_axis: int) -> Array:
    """x with the border that the window reads, as elements of its own."""
    if not window.has_border:
        return np.array(x, order="C")
    width = [(0, 0)] * x.ndim
    for axis, (lo, hi) in enumerate(zip(window.lo, window.hi, strict=True)):
        width[first_axis + axis] = (lo, hi)
    return np.pad(x, width, constant_values=window.fill.value)


def _pool(x: Array, f: ReduceFn, window: Window) -> Array:
    dtype = DType.of(x.dtype)
    result = _with_border(x, window, 0).astype(dtype.compute.numpy)
    # What is chosen along one axis after the other is the same, and found in fewer steps.
    chooses = f.name in SELECTIONS
    for axes in [(axis,) for axis in range(x.ndim)] if chooses else [tuple(range(x.ndim))]:
        part = _along(window, axes)
        outer = tuple(map(static, part.outer(result.shape)))
        total = np.full(outer, reduction_identity(f.name, dtype.compute))
        for tap in cartesian(*map(range, part.sizes)):
            total = combine(f.name, total, result[window_slices(part, tap, outer)])
        result = total
    return result.astype(x.dtype)


def _along(window: Window, axes: tuple[int, ...]) -> Window:
    """The window along some axes, of one element along others, over what has its border."""

    def chosen(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(value if axis in axes else 1 for axis, value in enumerate(values))

    none = (0,) * window.rank
    sizes, strides, dilations = map(chosen, (window.sizes, window.strides, window.dilations))
    return Window(sizes, strides, dilations, none, none, window.fill)


def _taps(window: Window) -> int:
    return int(np.prod(window.sizes, dtype=np.int64))


@op(
    kind=Kind.WINDOW,
    reference=_pool,
    flops=lambda result, x, f, window: size_of(result) * _taps(window),
)
def pool(x: TensorType, f: ReduceFn, window: Window) -> TensorType:
    """f over every position of a window that has one entry per axis of x."""
    refuse_unless(f.name in REDUCTIONS, f"there is no reduction '{f}'")
    refuse_unless(x.dtype is not DType.BOOL, "bool tensors have no pool")
    refuse_unless(window.rank == x.rank, f"the window has {window.rank} axes, {x} has {x.rank}")
    refuse_unless(window.fill.dtype is x.dtype, "the fill has another dtype")
    return x.with_shape(window.outer(x.shape))


def products(a: Array, b: Array) -> Array:
    """Matrix products; sums of few products are made in order.

    No element depends then on how many others there are, as it does in BLAS.
    """
    inner = a.shape[-1]
    result = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    if inner > _FEW_PRODUCTS or inner * result.size > _FEW_IN_ALL:
        return np.asarray(np.matmul(np.ascontiguousarray(a), np.ascontiguousarray(b)))
    for index in range(inner):
        term = np.multiply(a[..., index : index + 1], b[..., index : index + 1, :])
        np.add(result, term, out=result)
    return result


def _matmul(x: Array, y: Array) -> Array:
    return in_compute_type(products, x, y)


@op(
    kind=Kind.CONTRACTION,
    reference=_matmul,
    flops=lambda result, x, y: 2 * size_of(result) * representative(x.shape[-1]),
)
def matmul(x: TensorType, y: TensorType) -> TensorType:
    """Matrix products of x [*batch, m, k] and y [*batch, k, n]; batch extents are equal."""
    # Without refuse_unless: products are typed most often, and their reasons are long to write.
    if not x.rank == y.rank >= 2 or x.dtype is not y.dtype:
        raise Refuse(f"{x} and {y} do not multiply")
    refuse_unless(x.dtype is not DType.BOOL, "bool tensors have no matmul")
    if x.shape[:-2] != y.shape[:-2]:
        raise Refuse(f"batch extents of {x} and {y} differ")
    if x.shape[-1] != y.shape[-2]:
        raise Refuse(f"inner extents of {x} and {y} differ")
    return x.with_shape((*x.shape[:-1], y.shape[-1]))


def _conv(x: Array, w: Array, window: Window, groups: Groups) -> Array:
    dtype = DType.of(x.dtype)
    outer = tuple(map(static, window.outer(x.shape[1:-1])))
    source = _with_border(x, window, 1).astype(dtype.compute.numpy, copy=False)
    weight = np.ascontiguousarray(w, dtype.compute.numpy)
    count, inner = groups.count, w.shape[-2]
    width = w.shape[-1] // count
    result = np.zeros((x.shape[0], *outer, w.shape[-1]), source.dtype)
    rows = x.shape[0] * int(np.prod(outer, dtype=np.int64))
    with np.errstate(all="ignore"):
        for tap in cartesian(*map(range, window.sizes)):
            seen = source[(slice(None), *window_slices(window, tap, outer), slice(None))]
            for group in range(count):
                ours = slice(group * width, (group + 1) * width)
                theirs = seen[..., group * inner : (group + 1) * inner]
                if inner == 1:
                    result[..., ours] += theirs * weight[tap][0, ours]
                else:
                    # One large product is many times faster than one per row of the image.
                    flat = theirs.reshape(rows, inner)
                    product = products(flat, weight[tap][:, ours])
                    product = product.reshape(*result.shape[:-1], width)
                    result[..., ours] = np.add(result[..., ours], product)
    return result.astype(x.dtype)


@op(
    kind=Kind.CONTRACTION,
    reference=_conv,
    flops=lambda result, x, w, *_: 2 * size_of(result) * size_of(w) / max(1, static(w.shape[-1])),
)
def conv(x: TensorType, w: TensorType, window: Window, groups: Groups) -> TensorType:
    """Channels-last convolution of x [n, *spatial, c] with w [*kernel, c / groups, oc].

    The window covers the spatial axes; output channel j belongs to group j * groups // oc. All
    extents of w, and c, are numbers: none is symbolic.
    """
    refuse_unless(x.rank == w.rank >= 2 and x.dtype is w.dtype, f"{x} and {w} do not convolve")
    refuse_unless(x.dtype is not DType.BOOL, "bool tensors have no conv")
    refuse_unless(window.rank == x.rank - 2, "the window covers the spatial axes")
    refuse_unless(window.fill.dtype is x.dtype, "the fill has another dtype")
    refuse_unless(w.shape[:-2] == window.sizes, f"the kernel of {w} is not {window.sizes}")
    if not all(isinstance(dim, int) for dim in (x.shape[-1], *w.shape)):
        raise Refuse("channels must be static")
    channels, inner, outer = (static(dim) for dim in (x.shape[-1], w.shape[-2], w.shape[-1]))
    count = groups.count
    refuse_unless(count >= 1 and inner * count == channels, f"{channels} channels, {count} groups")
    refuse_unless(outer % count == 0, f"{outer} output channels do not split in {count} groups")
    return x.with_shape((x.shape[0], *window.outer(x.shape[1:-1]), w.shape[-1]))


__all__ = [
    "REDUCTIONS", "SELECTIONS", "arg_reduce", "combine", "conv", "matmul", "pool", "products",
    "reduce", "reduction_identity", "window_slices",
]  # fmt: skip
