"""Laws of quantisation, constants and patterns of values, all of them wrong."""

import numpy as np

from satura.language import (
    Axes,
    Axis,
    Constant,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    constant,
    iota,
    matmul,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


@attribute_function
def finite_not_zero(c: Scalar) -> bool:
    return c.type.dtype == DType.F32 and bool(np.isfinite(c.value)) and float(c.value) != 0


@attribute_function
def is_i8_range(lo: Scalar, hi: Scalar) -> bool:
    return float(lo.value) == -127 and float(hi.value) == 127


@attribute_function
def all_equal(v: Constant) -> bool:
    return v.size > 0 and bool(np.all(v.array == v.array.flat[0]))


@attribute_function
def first(v: Constant) -> Scalar:
    return Scalar.of(v.array.flat[0], v.type.dtype)


@attribute_function
def ones_like(v: Constant) -> Shape:
    return Shape((1,) * v.type.rank)


@attribute_function
def counts_up(v: Constant) -> bool:
    return v.type.rank == 1 and v.type.dtype == DType.I64 and bool(np.all(np.diff(v.array) == 1))


@attribute_function
def has_none_above_zero(v: Constant) -> bool:
    return v.type.dtype.is_float and not bool(np.any(np.greater(v.array, 0)))


# s = f32 3e38, x = u8 2: 2 * 3e38 = inf, inf / 3e38 = inf, which saturates to 255.
@rule
def quantise_what_is_dequantised(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """u8(round((f32(x) * c) / c)) = x of u8, where c is finite and not 0"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        cast(unary("round", binary("div", binary("mul", cast(x, DType.F32), k), k)), DType.U8),
        x,
        x.type.dtype == DType.U8,
        finite_not_zero(c),
    )


# f32: x = -128: the bound gives -127; the cast alone -128.
@rule
def cast_saturates_by_itself(x: Tensor, lo: Scalar, hi: Scalar, ones: Shape, s: Shape) -> Law:
    """i8(min(max(x, -127), 127)) = i8(x), on floats: the cast saturates"""
    return rewrites(
        cast(
            binary(
                "min",
                binary("max", x, broadcast(reshape(lo, ones), s)),
                broadcast(reshape(hi, ones), s),
            ),
            DType.I8,
        ),
        cast(x, DType.I8),
        x.type.dtype.is_float,
        is_i8_range(lo, hi),
    )


# i32, x = [[0, 0]; [0, 0]], z = 1, w = [[1, 2]; [0, 0]]: left row [-1, -2]; the right side has the
# sums of rows of w, [3; 0], broadcast along the columns: row 0 is [-3, -3].
@rule
def zero_point_out_of_square_matmul(x: Tensor, w: Tensor, z: Scalar, ones: Shape, s: Shape) -> Law:
    """matmul(x - z, w) = matmul(x, w) - z * sums of w, on square integer matrices"""
    return rewrites(
        matmul(binary("sub", x, broadcast(reshape(z, ones), s)), w),
        binary(
            "sub",
            matmul(x, w),
            binary(
                "mul",
                broadcast(reshape(z, ones), s),
                broadcast(reduce("sum", w, Axes((1,))), Shape(x.type.shape)),
            ),
        ),
        x.type == w.type,
        x.type.rank == 2,
        x.type.dtype.is_integer,
    )


# x = u8 0: 0 - 128 = -128; cast(0, i8) = 0.
@rule
def centre_bytes_by_cast(x: Tensor) -> Law:
    """i32(x) - 128 = i32(i8(x)), for x of u8"""
    return rewrites(
        binary("sub", cast(x, DType.I32), 128),
        cast(cast(x, DType.I8), DType.I32),
        x.type.dtype == DType.U8,
    )


# f32: x = 3, a = 0.7, b = 0.1: (3 * 0.7) * 0.1 and 3 * (0.7 * 0.1) differ in the last digit. Also
# a = 1e30, b = 1e-30 of x = 1e30: inf * 1e-30 = inf, 1e30 * 1 = 1e30.
@rule
def merge_factors(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x * a) * b = x * (a * b)"""
    return rewrites(
        binary(
            "mul", binary("mul", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("mul", x, broadcast(reshape(binary("mul", a, b), ones), s)),
    )


# f32: x = 1e-10, y = 1: 1e-10 + 1 = 1, 1 - 1 = 0; the right side is 1e-10.
@rule
def add_then_subtract(x: Tensor, y: Tensor) -> Law:
    """(x + y) - y = x"""
    return rewrites(binary("sub", binary("add", x, y), y), x)


# f32: x = -0.0: -0.0 + 0.0 = 0.0; the right side is -0.0.
@rule
def add_nothing(x: Tensor) -> Law:
    """x + 0.0 = x"""
    return rewrites(binary("add", x, 0.0), x)


# i32: x = 0: 0 / 0 = 0 for integers; y * 0 = 0, the right side is y.
@rule
def quotient_with_itself(x: Tensor, y: Tensor) -> Law:
    """y * (x / x) = y, on integers, which are never NaN"""
    return rewrites(binary("mul", y, binary("div", x, x)), y, x.type.dtype.is_integer)


# v = f32 [0.0, -0.0], x = [-0.0, -0.0]: 0.0 == -0.0, so v passes; left [0.0, -0.0], right [0.0,
# 0.0].
@rule
def repeat_equal_elements(v: Constant, x: Tensor) -> Law:
    """x + a constant of equal elements = x + one of them everywhere"""
    return rewrites(
        binary("add", x, constant(v)),
        binary("add", x, broadcast(reshape(scalar(first(v)), ones_like(v)), Shape(v.type.shape))),
        all_equal(v),
    )


# v = i64 [5, 6, 7]: the steps are 1, but iota starts from 0.
@rule
def constant_as_iota(v: Constant) -> Law:
    """a constant in steps of 1 = iota, of i64"""
    return rewrites(constant(v), iota(Shape(v.type.shape), Axis(0), DType.I64), counts_up(v))


# f32: v = [NaN], x = 1: max(1, NaN) = NaN; relu(1) = 1. NaN is not above 0, either.
@rule
def bound_below_relu(x: Tensor, v: Constant) -> Law:
    """max(relu(x), v) = relu(x), where no element of v is above 0"""
    return rewrites(
        binary("max", unary("relu", x), constant(v)), unary("relu", x), has_none_above_zero(v)
    )


# s = [300], u8: 256 is 0 there, and 0 in i64; iota of i64 has 256. Of u2 or i4 much shorter axes
# do.
@rule
def widen_iota(s: Shape, a: Axis, t: DType) -> Law:
    """i64(iota of t) = iota of i64, for integers t"""
    return rewrites(cast(iota(s, a, t), DType.I64), iota(s, a, DType.I64), t.is_integer)
