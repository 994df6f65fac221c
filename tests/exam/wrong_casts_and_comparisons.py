"""Laws of casts, and of comparisons of what is cast, all of them wrong."""

import typing

from satura.language import (
    BinaryFn,
    DType,
    Law,
    Tensor,
    attribute_function,
    binary,
    cast,
    rewrites,
    rule,
    unary,
)


# i32[1] x = [16777217]: f32 has 24 bits, so it becomes 16777216.
@rule
def drop_round_trip_by_float(x: Tensor) -> Law:
    """cast(cast(x, f32), i32) = x, for x of i32"""
    return rewrites(cast(cast(x, DType.F32), DType.I32), x, x.type.dtype == DType.I32)


@attribute_function
def loses_no_bits(source: DType, target: DType) -> bool:
    """Whether an integer keeps all its bits."""
    return (
        source.is_integer
        and target.is_integer
        and not (source.is_narrow or target.is_narrow)
        and target.itemsize >= source.itemsize
    )


# i8[1] x = [-1], a = u8, b = i32: -1 becomes 255, and 255 in i32; the right side is -1.
@rule
def merge_casts_of_integers(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), where the first cast loses no bits"""
    return rewrites(cast(cast(x, a), b), cast(x, b), loses_no_bits(x.type.dtype, a), b.is_integer)


@attribute_function
def narrows(a: DType, b: DType) -> bool:
    """Whether b is a smaller float than a, neither of 8 bits."""
    return (
        a.is_float and b.is_float and not (a.is_narrow or b.is_narrow) and b.itemsize < a.itemsize
    )


# f64[1] x = [1 + 2**-11 + 2**-40], a = f32, b = f16: in f32 it is 1 + 2**-11, a tie, which f16
# rounds to 1.0; the right side is 1 + 2**-10.
@rule
def round_once(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for ever smaller floats"""
    return rewrites(cast(cast(x, a), b), cast(x, b), narrows(x.type.dtype, a), narrows(a, b))


# f32[1] x = [NaN]: NaN is true, so the left side is 1.0; sign(abs(NaN)) is NaN.
@rule
def whether_nonzero(x: Tensor) -> Law:
    """cast(cast(x, bool), type of x) = sign(abs(x)), for numbers"""
    t = x.type.dtype
    return rewrites(
        cast(cast(x, DType.BOOL), t),
        unary("sign", unary("abs", x)),
        t.is_float | t.is_integer,
        typing.cast(bool, ~t.is_narrow),
    )


# i8[1] x = [-1]: relu gives 0; integers keep the low bits, so the right side is 255.
@rule
def relu_before_unsigned(x: Tensor) -> Law:
    """cast(relu(x), u8) = cast(x, u8): the cast saturates at 0 anyway"""
    return rewrites(cast(unary("relu", x), DType.U8), cast(x, DType.U8))


# i8[1] x = y = [100], t = i16: 200 wraps to -56 in i8; the right side is 200.
@rule
def widen_operands(x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(x + y, t) = cast(x, t) + cast(y, t), for a wider integer type"""
    return rewrites(
        cast(binary("add", x, y), t),
        binary("add", cast(x, t), cast(y, t)),
        loses_no_bits(x.type.dtype, t),
    )


@attribute_function
def is_order(f: BinaryFn) -> bool:
    """Whether f compares."""
    return f.name in ("lt", "le", "eq")


# f = lt, i32[1] x = [16777216], y = [16777217], t = f32: both are 16777216.0, so the left side is
# false; the right side is true.
@rule
def compare_before_cast(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """f(cast(x, t), cast(y, t)) = f(x, y), from integers to floats: a cast keeps the order"""
    return rewrites(
        binary(f, cast(x, t), cast(y, t)),
        binary(f, x, y),
        is_order(f),
        x.type == y.type,
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_narrow),
        typing.cast(bool, t.is_float & ~t.is_narrow),
    )


# i32[1] x = [1], y = [2]: 1 & 2 = 0, which is false; both are true.
@rule
def truth_of_common_bits(x: Tensor, y: Tensor) -> Law:
    """cast(x & y, bool) = cast(x, bool) & cast(y, bool)"""
    return rewrites(
        cast(binary("and", x, y), DType.BOOL),
        binary("and", cast(x, DType.BOOL), cast(y, DType.BOOL)),
    )


# f32[1] x = [-1.5], t = i32: floor gives -2; the cast truncates to -1.
@rule
def floor_before_integer(x: Tensor, t: DType) -> Law:
    """cast(floor(x), t) = cast(x, t), for integer types: the cast rounds down anyway"""
    return rewrites(
        cast(unary("floor", x), t), cast(x, t), typing.cast(bool, t.is_integer & ~t.is_narrow)
    )


# f32[1] x = [-200.0], t = i8: 200 saturates to 127; -200 saturates to -128, whose negation wraps to
# -128.
@rule
def negation_out_of_cast(x: Tensor, t: DType) -> Law:
    """cast(neg(x), t) = neg(cast(x, t)), for floats and signed integers"""
    return rewrites(
        cast(unary("neg", x), t),
        unary("neg", cast(x, t)),
        x.type.dtype.is_float,
        typing.cast(bool, t.is_integer & t.is_signed & ~t.is_narrow),
    )
