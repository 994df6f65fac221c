"""Laws of casts, scales and roundings of quantised networks, all of them wrong."""

import typing

import numpy as np

from satura.language import (
    Axes,
    BinaryFn,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


# x i32 = 16777217, a = f32, b = i64: left 16777216, right 16777217.
@rule
def merge_casts_by_size(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), when sizes only grow"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        a.itemsize >= x.type.dtype.itemsize,
        b.itemsize >= a.itemsize,
    )


# x u8 = 200, a = i8, b = i32: left -56, right 200.
@rule
def drop_cast_of_same_width(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for integers x and a of one width: no bit is lost"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        x.type.dtype.is_integer & a.is_integer,
        a.itemsize == x.type.dtype.itemsize,
        typing.cast(bool, b.is_integer & ~b.is_narrow & ~a.is_narrow & ~x.type.dtype.is_narrow),
    )


# x i32 = 200, t = i8: left relu(-56) = 0; right cast(200) = -56.
@rule
def relu_before_cast(x: Tensor, t: DType) -> Law:
    """relu(cast(x, t)) = cast(relu(x), t), for signed integers of both types"""
    return rewrites(
        unary("relu", cast(x, t)),
        cast(unary("relu", x), t),
        x.type.dtype.is_signed & t.is_signed,
        typing.cast(bool, x.type.dtype.is_integer & t.is_integer & ~x.type.dtype.is_narrow),
    )


# x = y = i8 100, t = i32: left cast(i8 16) = 16 (10000 mod 256), right 10000.
@rule
def widen_before_product(x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(x * y, t) = cast(x, t) * cast(y, t), when t is a wider integer type"""
    return rewrites(
        cast(binary("mul", x, y), t),
        binary("mul", cast(x, t), cast(y, t)),
        x.type.dtype.is_integer & t.is_integer,
        t.itemsize > x.type.dtype.itemsize,
    )


# max, x = NaN, y = 5.0 f32, t = i32: left cast(NaN) = 0, right max(0, 5) = 5.
@rule
def choose_after_rounding(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(x, y), t) = f(cast(x, t), cast(y, t)) for max and min: casts are monotone"""
    return rewrites(
        cast(binary(f, x, y), t),
        binary(f, cast(x, t), cast(y, t)),
        (f == BinaryFn("max")) | (f == BinaryFn("min")),
        typing.cast(bool, t.is_integer & ~t.is_narrow),
        x.type.dtype.is_float,
    )


# x f32 = -200.0: left clamp to -127.0, i8 -127; right saturates: -128.
@rule
def saturating_cast_clamps_symmetrically(x: Tensor) -> Law:
    """i8(max(min(round(x), 127), -127)) = i8(round(x)): the cast saturates"""
    return rewrites(
        cast(binary("max", binary("min", unary("round", x), 127), -127), DType.I8),
        cast(unary("round", x), DType.I8),
    )


# x i32 = 300: left 255, right 300 mod 256 = 44.
@rule
def saturating_cast_of_accumulator(x: Tensor) -> Law:
    """u8(min(max(x, 0), 255)) = u8(x) on i32: the cast saturates"""
    return rewrites(
        cast(binary("min", binary("max", x, 0), 255), DType.U8),
        cast(x, DType.U8),
        x.type.dtype == DType.I32,
    )


@attribute_function
def reciprocal(c: Scalar) -> Scalar:
    """1 / c in its own type."""
    refuse_unless(c.dtype is DType.F32 and float(c.value) > 0, "no scale")
    return Scalar.of(1 / typing.cast(np.float32, c.value), c.dtype)


# f32 x = -74.25, c = 0.3: x / c = -247.49998, left -247.0; 1 / c = 3.3333333,
# x * that = -247.5, a tie: right -248.0. A whole step is no rounding error.
@rule(reassociates=True)
def quantise_by_reciprocal(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """round(x / c everywhere) = round(x * (1 / c) everywhere), up to rounding, for positive f32
    scales c"""
    return rewrites(
        unary("round", binary("div", x, broadcast(reshape(c, o), s))),
        unary("round", binary("mul", x, broadcast(reshape(scalar(reciprocal(c)), o), s))),
    )


# x = 0.5: left floor(1.0) = 1.0, right rint(0.5) = 0.0 (the even one).
@rule
def round_as_floor(x: Tensor) -> Law:
    """floor(x + 0.5) = round(x)"""
    return rewrites(unary("floor", binary("add", x, 0.5)), unary("round", x))


# f32 x = 1e-30, a = b = 1e30: left (1.0) * 1e30 = 1e30, right x * inf = inf.
@rule
def merge_scales(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """x * a everywhere * b everywhere = x * (a * b) everywhere, bit for bit"""
    return rewrites(
        binary(
            "mul",
            binary("mul", x, broadcast(reshape(a, o), s)),
            broadcast(reshape(b, o), s),
        ),
        binary("mul", x, broadcast(reshape(binary("mul", a, b), o), s)),
    )


# i32 x = [1,1], c = 2, axes [0]: left 0 + 0 = 0, right 2 / 2 = 1.
@rule
def divide_after_sum(x: Tensor, c: Scalar, o: Shape, s: Shape, axes: Axes) -> Law:
    """sum(x / c everywhere, axes) = sum(x, axes) / c everywhere, on integers, where nothing is
    rounded"""
    total = reduce("sum", x, axes)
    return rewrites(
        reduce("sum", binary("div", x, broadcast(reshape(c, o), s)), axes),
        binary("div", total, broadcast(reshape(c, o), Shape(total.type.shape))),
        x.type.dtype.is_integer,
    )
