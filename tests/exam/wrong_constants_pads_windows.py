"""Laws of constants, quantisation, pads and windows, all of them wrong."""

import numpy as np

from satura.language import (
    Axes,
    Axis,
    Constant,
    DType,
    Law,
    Padding,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    Window,
    attribute_function,
    binary,
    broadcast,
    cast,
    constant,
    iota,
    matmul,
    pad,
    pool,
    reduce,
    reshape,
    rewrites,
    rule,
    slice_,
    unary,
)


# f32[1] x = [1.0], a = [1e8], b = [-1e8]: 1 + 1e8 rounds to 1e8, so the left side is 0.0; a + b is
# 0.0, so the right side is 1.0.
@rule
def merge_added_constants(x: Tensor, a: Constant, b: Constant) -> Law:
    """(x + a) + b = x + (a + b), for constants"""
    return rewrites(
        binary("add", binary("add", x, constant(a)), constant(b)),
        binary("add", x, binary("add", constant(a), constant(b))),
    )


@attribute_function
def is_whole(c: Constant) -> bool:
    """Whether c has small whole numbers."""
    if not c.type.dtype.is_float or c.type.dtype.is_narrow:
        raise Refuse("not of plain floats")
    a = c.array.astype(np.float64)
    return bool(np.all((np.abs(a) <= 255) & (np.rint(a) == a)))


# f32[1] x = [0.5], s = [1.0], z = [1.0]: round(0.5) + 1 = 1.0; round(1.5) = 2.0, the even one.
@rule
def zero_point_into_round(x: Tensor, s: Tensor, z: Constant) -> Law:
    """round(x / s) + z = round(x / s + z), for zero points that are whole numbers"""
    scaled = binary("div", x, s)
    return rewrites(
        binary("add", unary("round", scaled), constant(z)),
        unary("round", binary("add", scaled, constant(z))),
        is_whole(z),
    )


# f32[1] x = [-128.0]: the bounds make it -127; the cast alone saturates at -128.
@rule
def bounds_of_symmetric_bytes(x: Tensor) -> Law:
    """cast(min(max(x, -127), 127), i8) = cast(x, i8), for floats: the cast saturates"""
    return rewrites(
        cast(binary("min", binary("max", x, -127.0), 127.0), DType.I8), cast(x, DType.I8)
    )


# u8[1] q = [0], z = [128]: 0 - 128 = -128 in i32; in u8 it wraps to 128.
@rule
def subtract_zero_point_before_cast(q: Tensor, z: Tensor) -> Law:
    """cast(q, i32) - cast(z, i32) = cast(q - z, i32), for u8"""
    return rewrites(
        binary("sub", cast(q, DType.I32), cast(z, DType.I32)),
        cast(binary("sub", q, z), DType.I32),
        (q.type.dtype == DType.U8) & (q.type == z.type),
    )


# i32[2] x = [1, 1], c = 2, axes = (0): 1 / 2 + 1 / 2 = 0 + 0 = 0; (1 + 1) / 2 = 1.
@rule(reassociates=True)
def quotient_out_of_sum(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """sum(x / c everywhere) = sum(x) / c everywhere"""
    total = reduce("sum", x, axes)
    return rewrites(
        reduce("sum", binary("div", x, broadcast(reshape(c, ones), s)), axes),
        binary("div", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
    )


@attribute_function
def keeps_zero(f: UnaryFn) -> bool:
    """Whether f of 0 is 0."""
    return f.name in ("neg", "abs", "relu", "sign", "tanh", "sin", "floor", "sqrt", "erf")


@attribute_function
def is_zero(c: Scalar) -> bool:
    """Whether c is the 0 of a number type."""
    if not (c.dtype.is_float or c.dtype.is_integer) or c.dtype.is_narrow:
        raise Refuse("not a plain number")
    return not any(c.bits)


# f = neg, f32[1] x = [1.0], c = 0.0, p = one before: neg of the padding is -0.0, on the right 0.0.
@rule
def zero_pad_out_of_unary(f: UnaryFn, x: Tensor, c: Scalar, p: Padding) -> Law:
    """f(pad(x, 0)) = pad(f(x), 0), for functions that are 0 at 0"""
    return rewrites(unary(f, pad(x, c, p)), pad(unary(f, x), c, p), keeps_zero(f), is_zero(c))


@attribute_function
def inner(p: Padding, t: TensorType) -> Slices:
    """What a pad of this type has between its borders."""
    if len(p.lo) != t.rank:
        raise Refuse("a padding of another rank")
    return Slices(p.lo, t.shape, (1,) * t.rank)


# f32[1] x = [1.0], p = one before, y = [NaN, 1.0]: 0 * NaN is NaN; the right side has 0.0 there.
@rule
def product_into_zero_pad(x: Tensor, y: Tensor, p: Padding) -> Law:
    """pad(x, 0.0) * y = pad(x * slice(y), 0.0)"""
    return rewrites(
        binary("mul", pad(x, 0.0, p), y),
        pad(binary("mul", x, slice_(y, inner(p, x.type))), 0.0, p),
    )


# i32[1] x = [5], c = 2, w of size 2 with one place before and fill 1: 1 + 10 = 11; (1 + 5) * 2 =
# 12.
@rule
def factor_out_of_pool(x: Tensor, c: Scalar, ones: Shape, s: Shape, w: Window) -> Law:
    """pool(sum, x * c everywhere) = pool(sum, x) * c everywhere, for integers"""
    total = pool("sum", x, w)
    return rewrites(
        pool("sum", binary("mul", x, broadcast(reshape(c, ones), s)), w),
        binary("mul", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        x.type.dtype.is_integer,
    )


@attribute_function
def counts_up(c: Constant) -> bool:
    """Whether c begins with 0 and ends with its length less one."""
    if c.type.rank != 1 or not c.type.dtype.is_integer or c.type.dtype.is_narrow or c.size == 0:
        raise Refuse("no vector of integers")
    return int(c.array[0]) == 0 and int(c.array[-1]) == c.size - 1


# c = i32 [0, 0, 2]: it begins with 0 and ends with 2, but is not [0, 1, 2].
@rule
def recognise_iota(c: Constant) -> Law:
    """constant(c) = iota, for a vector from 0 to its length less one"""
    return rewrites(constant(c), iota(Shape(c.type.shape), Axis(0), c.type.dtype), counts_up(c))


@attribute_function
def is_unit_matrix(c: Constant) -> bool:
    """Whether c is a square matrix with 1 on the diagonal and 0 beside it."""
    if c.type.rank != 2 or c.type.dtype.is_narrow or c.type.dtype is DType.BOOL:
        raise Refuse("no matrix of plain numbers")
    rows, columns = c.array.shape
    return rows == columns and bool(np.all(c.array == np.eye(rows, dtype=c.array.dtype)))


# f32[1, 2] x = [[inf, 1.0]]: the second element is inf * 0 + 1 * 1 = NaN; the right side has 1.0.
@rule
def multiply_by_unit_matrix(x: Tensor, c: Constant) -> Law:
    """matmul(x, the unit matrix) = x"""
    return rewrites(matmul(x, constant(c)), x, is_unit_matrix(c))
