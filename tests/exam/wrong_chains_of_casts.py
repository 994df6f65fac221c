"""Laws of chains of casts, and of roundings, all of them wrong."""

import typing

from satura.language import (
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    Term,
    attribute_function,
    binary,
    broadcast,
    cast,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


def full(c: Term | Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


# x = i32 16777217: as f32 it is 16777216.0, and i32 16777216 again.
@rule
def integer_through_f32(x: Tensor, d: DType) -> Law:
    """cast(cast(x, f32), d) = x, when d is x's type, integers of at most 32 bits"""
    return rewrites(
        cast(cast(x, DType.F32), d),
        x,
        (d == x.type.dtype) & d.is_integer & (d.itemsize <= 4),
    )


# x = f32 -0.5: i64 0, f32 0.0; ceil(-0.5) = -0.0. Also NaN: 0.0, and not NaN; 1e30 saturates.
@rule
def truncate_as_rounding(x: Tensor, d: DType) -> Law:
    """cast(cast(x, i64), d) = ceil(x) where x < 0, else floor(x), for a float x of type d"""
    return rewrites(
        cast(cast(x, DType.I64), d),
        select(binary("lt", x, 0.0), unary("ceil", x), unary("floor", x)),
        typing.cast(bool, (d == x.type.dtype) & (x.type.dtype.is_float & ~x.type.dtype.is_narrow)),
    )


# x = f32 300, a = i32, b = i8: 300, whose low bits are 44; a cast of 300.0 to i8 saturates: 127.
@rule
def merge_narrowing_casts(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) for integers a and b, b the narrower one"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        a.is_integer & b.is_integer & (b.itemsize < a.itemsize) & (a.is_signed == b.is_signed),
    )


# x = f64 1 + 2^-11 + 2^-30: f32 1 + 2^-11, a tie, f16 1.0; at once f16 1 + 2^-10 = 1.0009765625.
@rule
def merge_float_narrowings(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) for floats of which each is narrower than the one before"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        x.type.dtype.is_float
        & a.is_float
        & b.is_float
        & (x.type.dtype.itemsize > a.itemsize)
        & (a.itemsize > b.itemsize),
    )


# x = f16 2048, y = z = f16 1: in f32 2050, f16 2050; in f16 2048 + 1 = 2048 (a tie), + 1 = 2048.
@rule
def add_in_half(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """f16((f32(x) + f32(y)) + f32(z)) = (x + y) + z on f16, whose arithmetic runs in f32 anyway"""
    wide = binary("add", cast(x, DType.F32), cast(y, DType.F32))
    return rewrites(
        cast(binary("add", wide, cast(z, DType.F32)), DType.F16),
        binary("add", binary("add", x, y), z),
        (x.type.dtype == DType.F16) & (y.type.dtype == DType.F16) & (z.type.dtype == DType.F16),
    )


# x = i16 256, d = i8: the low bits are 0, false; 256 itself is true.
@rule
def truth_of_cast(x: Tensor, d: DType) -> Law:
    """cast(cast(x, d), bool) = cast(x, bool) for integers: only 0 is false"""
    return rewrites(
        cast(cast(x, d), DType.BOOL),
        cast(x, DType.BOOL),
        x.type.dtype.is_integer & d.is_integer,
    )


# x = f32 0.5: round to even 0.0; floor(0.5 + 0.5) = 1.0.
@rule
def round_half_up(x: Tensor) -> Law:
    """floor(x + 0.5) = round(x)"""
    return rewrites(unary("floor", binary("add", x, 0.5)), unary("round", x))


@attribute_function
def is_whole(c: Scalar) -> bool:
    """Whether c is a finite whole number that every float type has."""
    return c.dtype.is_float and float(c.value).is_integer() and abs(float(c.value)) < 100


# x = f32 1 - 2^-24, c = 1: x + 1 is a tie, rounded to 2.0, floor 2.0; floor(x) + 1 = 1.0.
@rule
def floor_before_adding(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """floor(x + c) = floor(x) + c, for a whole c"""
    return rewrites(
        unary("floor", binary("add", x, full(c, ones, s))),
        binary("add", unary("floor", x), full(c, ones, s)),
        is_whole(c),
    )
