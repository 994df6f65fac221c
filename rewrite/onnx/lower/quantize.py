"""Lowerings of quantised ops, as arithmetic in f32 and i32."""

from __future__ import annotations

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.contraction import add_bias, conv, matmul
from satura.rewrite.onnx.lower.elementwise import narrow
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import Array, DType

_WIDER = {DType.I8: DType.I16, DType.U8: DType.I16, DType.I16: DType.I32, DType.U16: DType.I32}


def _type_of_differences(dtype: DType) -> DType:
    """What holds all differences of two."""
    if dtype.is_narrow:
        return DType.F32 if dtype.is_float else DType.I16
    return _WIDER.get(dtype, dtype)


@lowering("QuantizeLinear")
def quantize_linear(node: Context) -> int:
    """saturate(round(x / scale) + zero point)"""
    wide, zero = node.tensor(0).cast(DType.F32), node.optional(2)
    target = DType.U8 if zero is None else node.build.dtype(zero)
    if zero is None and node.integer("output_dtype"):
        target = dtype_of(node.integer("output_dtype"))
    scaled = wide / _spread(node, 1, DType.F32, wide)
    offset = None if zero is None else _spread(node, 2, DType.F32, wide)
    return _round_and_clamp(scaled, offset, target, bool(node.integer("saturate", 1)))


@lowering("DequantizeLinear")
def dequantize_linear(node: Context) -> int:
    """(x - zero point) · scale"""
    build, x = node.build, node.tensor(0)
    target = build.dtype(node[1])
    if node.integer("output_dtype"):
        target = dtype_of(node.integer("output_dtype"))
    wide = x
    if node.optional(2) is not None:
        dtype = _type_of_differences(x.dtype)
        offset = _spread(node, 2, dtype, x)
        wide = x.cast(dtype) - offset
    wide = Value(build, build.cast(wide.index, DType.F32))
    return (wide * _spread(node, 1, DType.F32, x)).cast(target).index


def _spread(node: Context, position: int, dtype: DType, like: Value) -> Value:
    """A parameter per tensor, per axis or per block laid over the shape of `like`."""
    return Value(node.build, _laid(node, node.build.converted(node[position], dtype), like.shape))


def _laid(node: Context, x: int, shape: tuple[Dim, ...]) -> int:
    build = node.build
    if build.type(x).size == 1:
        return build.expand(build.reshape(x, ()) if build.rank(x) else x, shape)
    axis, block = node.axis(node.integer("axis", 1), len(shape)), node.integer("block_size")
    if build.rank(x) == 1 and (block < 1 or len(shape) > 1):
        return build.along(x, axis, shape)
    if build.rank(x) != len(shape) or block < 1:
        raise node.wrong(
            f"scales of type {build.type(x)} do not fit an input of shape {list(shape)}"
        )
    parts = list(build.shape(x))
    split = build.insert(x, axis + 1)
    wide = build.broadcast(split, [*parts[: axis + 1], block, *parts[axis + 1 :]])
    parts[axis] = parts[axis] * block
    return build.one_axis_slice(build.reshape(wide, parts), axis, 0, shape[axis])


def _round_and_clamp(x: Value, zero: Value | None, target: DType, saturates: bool = True) -> int:
    """f32 x rounded, moved by the zero point and clamped to `target`, unless that is a float that
    does not saturate."""
    rounded = x if target.is_float else x.unary("round")
    moved = rounded if zero is None else rounded + zero
    if target.is_float:
        convert = narrow if saturates else Tensors.cast
        return convert(x.build, moved.index, target)
    lowest, highest = target.bounds
    low = moved.binary("max", lowest).binary("min", highest)
    return x.build.cast(low.index, target)


def _subtract_zero_point(node: Context, x: int, zero: int | None, axis: int) -> int:
    """x - zero point in i32; a vector of zero points lies along `axis`.

    What is constant is subtracted at once: kernels read weights of 8 bits.
    """
    build = node.build
    wide = Value(build, build.cast(x, DType.I32))
    if zero is None:
        return wide.index
    offset = _lay(node, build.cast(zero, DType.I32), wide, axis)
    both = [build.nodes[each] for each in (x, zero)]
    if all(each.op.name == "constant" for each in both):
        numbers, moved = (each.constant.array.astype(np.int32) for each in both)
        if moved.ndim == 1 and moved.size > 1:
            moved = moved.reshape(
                [-1 if at == axis % numbers.ndim else 1 for at in range(numbers.ndim)]
            )
        least = _narrowed(numbers - (moved.reshape(()) if moved.size == 1 else moved))
        return build.cast(build.constant(least), DType.I32)
    return (wide - offset).index


def _narrowed(numbers: Array) -> Array:
    """Integers in the least of some types that has all of them."""
    for dtype in (DType.I8, DType.U8, DType.I16):
        least, most = dtype.bounds
        if numbers.size and least <= numbers.min() and numbers.max() <= most:
            return numbers.astype(dtype.numpy)
    return numbers


def _lay(node: Context, x: int, like: Value, axis: int) -> Value:
    """A scalar, a vector along `axis`, or a tensor that broadcasts, in the shape of `like`."""
    build, vector = node.build, Value(node.build, x)
    if build.type(x).size == 1:
        return like.like(Value(build, build.reshape(x, ())))
    is_line = build.rank(x) == 1
    return vector.along(axis % len(like.shape), like) if is_line else like.like(vector)


@lowering("ConvInteger")
def conv_integer(node: Context) -> int:
    """The i32 convolution of x and w, each minus its zero point."""
    x = _subtract_zero_point(node, node[0], node.optional(2), 1)
    return conv(node, x, _subtract_zero_point(node, node[1], node.optional(3), 0))


@lowering("MatMulInteger")
def matmul_integer(node: Context) -> int:
    """The i32 product of a and b, each minus its zero point."""
    a = _subtract_zero_point(node, node[0], node.optional(2), -2)
    return matmul(node.build, a, _subtract_zero_point(node, node[1], node.optional(3), -1))


@lowering("QLinearConv")
def quantized_conv(node: Context) -> int:
    """The i32 convolution with bias, rescaled by sx·sw / sy."""
    build = node.build
    total = conv(
        node,
        _subtract_zero_point(node, node[0], node[2], 1),
        _subtract_zero_point(node, node[3], node[5], 0),
    )
    bias = node.optional(8)
    total = total if bias is None else add_bias(build, total, bias)
    return _rescale(node, total, (node[1], node[4], node[6]), node[7], 1)


@lowering("QLinearMatMul")
def quantized_matmul(node: Context) -> int:
    """The i32 product, rescaled by sa·sb / sy."""
    a = _subtract_zero_point(node, node[0], node[2], -2)
    b = _subtract_zero_point(node, node[3], node[5], -1)
    total = matmul(node.build, a, b)
    return _rescale(node, total, (node[1], node[4], node[6]), node[7], -1)


def _rescale(node: Context, total: int, scales: tuple[int, int, int], zero: int, axis: int) -> int:
    """Sums times one factor, as ONNX's reference and onnxruntime round it: in steps, sums that are
    close to a half would be rounded to the other side."""
    build = node.build
    sums = Value(build, build.cast(total, DType.F32))
    axes = (-2 if axis == -1 else axis, axis, axis)
    x, w, y = (
        _lay(node, build.converted(scale, DType.F32), sums, at)
        for scale, at in zip(scales, axes, strict=True)
    )
    offset = _lay(node, build.cast(zero, DType.F32), sums, axis)
    return _round_and_clamp(sums * (x * w / y), offset, build.dtype(zero))
