"""Reductions and matrix products in ONNX.

Runtimes differ from satura in three ways that are spelled out here: a maximum or minimum may lose
NaNs, and sums and products of integers may saturate or run in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from satura.rewrite.onnx.write.elementwise import combine
from satura.rewrite.onnx.write.emitter import Emitter, Site
from satura.rewrite.onnx.write.integer import carrier
from satura.rewrite.onnx.write.layout import write_fill, write_reshape, write_slice
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    ReduceFn,
)
from satura.rewrite.types.dims import product
from satura.rewrite.types.tensor_type import DType, TensorType

_REDUCE = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}
_SIGN = -(2**63)


def reduce(emit: Emitter, site: Site) -> str:
    """reduce(x, f, axes)"""
    function, axes = site.node.attributes
    assert isinstance(function, ReduceFn) and isinstance(axes, Axes)
    x, type_ = site.operand(0), site.type(0)
    dtype = type_.dtype
    if not axes.indices:
        is_sum = function.name == "sum" and dtype.is_float  # of -0.0 alone it is 0.0
        return combine(emit, "add", x, emit.scalar(0, dtype), dtype) if is_sum else x
    if any(type_.shape[axis] == 0 for axis in axes.indices):
        identity = reduction_identity(function.name, dtype).item()
        return write_fill(emit, identity, site.node.type.shape, dtype)
    if dtype.is_float:
        wide = emit.cast(x, dtype, dtype.compute)
        result = _write_reduction(emit, function.name, wide, axes.indices)
        if function.name in ("max", "min"):
            result = _with_nan(emit, wide, result, axes.indices, dtype.compute)
        return emit.cast(result, dtype.compute, dtype)
    if function.name == "sum":
        return _integer_sum(emit, x, type_, axes.indices)
    if function.name == "prod":
        return _integer_product(emit, x, type_, axes.indices)
    return _write_extremum(emit, function.name, x, dtype, axes.indices)


def _write_reduction(emit: Emitter, function: str, x: str, axes: Sequence[int]) -> str:
    return emit.node(_REDUCE[function], x, emit.integers(axes), keepdims=1)


def _with_nan(emit: Emitter, x: str, result: str, axes: Sequence[int], dtype: DType) -> str:
    """`result`, but NaN where x holds one along `axes`."""
    found = _write_any(emit, "max", emit.node("IsNaN", x), axes)
    return emit.node("Where", found, emit.scalar(np.nan, dtype), result)


def _write_any(emit: Emitter, function: str, x: str, axes: Sequence[int]) -> str:
    """Whether any or all of bools hold: in f32, whose reductions may be of nothing."""
    number = _write_reduction(emit, function, emit.cast(x, DType.BOOL, DType.F32), axes)
    return emit.node("Greater", number, emit.scalar(0, DType.F32))


def _write_extremum(emit: Emitter, function: str, x: str, dtype: DType, axes: Sequence[int]) -> str:
    """Maximum or minimum of integers or bools; u64 is compared as i64 with its top bit flipped."""
    if dtype is DType.BOOL:
        return _write_any(emit, function, x, axes)
    work = carrier(dtype)
    if work is DType.I32:
        return emit.cast(
            _write_reduction(emit, function, emit.cast(x, dtype, work), axes), work, dtype
        )
    result = _as_signed(emit, x) if dtype is DType.U64 else emit.cast(x, dtype, work)
    pick = {"max": "ArgMax", "min": "ArgMin"}[function]
    for axis in axes:  # onnxruntime 1.31 compares i64 rightly in ArgMax, wrongly in ReduceMax
        place = emit.node(pick, result, axis=axis, keepdims=1)
        result = emit.node("GatherElements", result, place, axis=axis)
    if dtype is DType.U64:
        result = emit.node("BitwiseXor", result, emit.scalar(_SIGN, DType.I64))
    return emit.cast(result, DType.I64, dtype)


def _as_signed(emit: Emitter, x: str) -> str:
    """u64 as i64 in the same order."""
    return emit.node(
        "BitwiseXor", emit.cast(x, DType.U64, DType.I64), emit.scalar(_SIGN, DType.I64)
    )


def _integer_sum(emit: Emitter, x: str, type_: TensorType, axes: Sequence[int]) -> str:
    """A matrix product with ones: unlike ReduceSum it wraps and is exact."""
    kept = [axis for axis in range(type_.rank) if axis not in axes]
    work = carrier(type_.dtype)
    count = product(type_.shape[axis] for axis in axes)
    rows = product(type_.shape[axis] for axis in kept)
    moved = emit.turned(emit.cast(x, type_.dtype, work), [*kept, *axes])
    matrix = write_reshape(emit, moved, (rows, count))
    total = emit.node("MatMul", matrix, write_fill(emit, 1, (count, 1), work))
    shape = [1 if axis in axes else dim for axis, dim in enumerate(type_.shape)]
    return emit.cast(write_reshape(emit, total, shape), work, type_.dtype)


def _integer_product(emit: Emitter, x: str, type_: TensorType, axes: Sequence[int]) -> str:
    """Halves multiplied until one element is left, which wraps. An axis of symbolic extent is left
    to ReduceProd, which does not."""
    work = DType.I64
    result = emit.cast(x, type_.dtype, work)
    for axis in axes:
        extent = type_.shape[axis]
        if not isinstance(extent, int):
            result = _write_reduction(emit, "prod", result, [axis])
            continue
        while extent > 1:
            half = extent // 2
            parts = [
                write_slice(emit, result, [at * half], [(at + 1) * half], [axis]) for at in (0, 1)
            ]
            halved = emit.node("Mul", *parts)
            if extent % 2:
                last = write_slice(emit, result, [extent - 1], [extent], [axis])
                halved = emit.node("Concat", halved, last, axis=axis)
            result, extent = halved, half + extent % 2
    return emit.cast(result, work, type_.dtype)


def arg_reduce(emit: Emitter, site: Site) -> str:
    """arg_reduce(x, f, axis, last): among floats the place of a NaN, or of the extreme value."""
    function, axis, last = site.node.attributes
    assert isinstance(function, ReduceFn) and isinstance(axis, Axis) and isinstance(last, Count)
    x, dtype = site.operand(0), site.type(0).dtype
    options = {"axis": axis.index, "keepdims": 1, "select_last_index": last.value}
    if 0 in site.node.type.shape:
        return write_fill(emit, 0, site.node.type.shape, DType.I64)
    if dtype.is_float:
        wide = emit.cast(x, dtype, dtype.compute)
        extreme = _write_reduction(emit, function.name, wide, [axis.index])
        extreme = _with_nan(emit, wide, extreme, [axis.index], dtype.compute)
        equal = emit.node("Equal", wide, extreme)
        hits = emit.node("Or", equal, emit.node("IsNaN", wide))
        return emit.node("ArgMax", emit.cast(hits, DType.BOOL, DType.I32), **options)
    if dtype is DType.U64:
        x = _as_signed(emit, x)
    else:
        x = emit.cast(x, dtype, DType.I32 if dtype is DType.BOOL else carrier(dtype))
    return emit.node("ArgMax" if function.name == "max" else "ArgMin", x, **options)


def matmul(emit: Emitter, site: Site) -> str:
    """matmul(x, y)"""
    x, y, dtype = site.operand(0), site.operand(1), site.type(0).dtype
    return write_matmul(emit, x, y, dtype)


def write_matmul(emit: Emitter, x: str, y: str, dtype: DType) -> str:
    """A matrix product in the compute type, or in a wider integer that wraps alike."""
    work = dtype.compute if dtype.is_float else carrier(dtype)
    if work is DType.U64:
        work = DType.I64  # wraps alike, and has a kernel for empty sums
    return emit.cast(
        emit.node("MatMul", emit.cast(x, dtype, work), emit.cast(y, dtype, work)), work, dtype
    )


def attention(emit: Emitter, site: Site) -> str:
    """attention(q, k, bias, v)"""
    q, k, bias, v = (site.operand(position) for position in range(4))
    if 0 in site.type(1).shape[-1:]:  # runtimes have no softmax of nothing
        return write_fill(emit, 0, site.node.type.shape, site.node.type.dtype)
    scores, known = emit.node("MatMul", q, k), site.known(2)
    if known is None or known.array.any():
        scores = emit.node("Add", scores, bias)
    return emit.node("MatMul", emit.node("Softmax", scores, axis=-1), v)


def write_fold(emit: Emitter, function: str, parts: Sequence[str], dtype: DType) -> str:
    """All parts combined by a reduction's function."""
    step = {"sum": "add", "prod": "mul"}.get(function, function)
    result = parts[0]
    for part in parts[1:]:
        result = combine(emit, step, result, part, dtype)
    return result
