"""Laws of casts, chains of them, and functions among them, all of them wrong."""

import typing

from satura.language import (
    FLOATS,
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


@attribute_function
def plain(t: DType) -> bool:
    return not t.is_narrow and t is not DType.BOOL


@attribute_function
def no_shorter(t: DType, u: DType) -> bool:
    return t.itemsize >= u.itemsize


@attribute_function
def in_floats(t: DType) -> bool:
    return t in FLOATS


@attribute_function
def no_comparison(f: BinaryFn) -> bool:
    return f.name not in ("eq", "lt", "le")


# x = i32 65537 to f32 (exact), to i16: saturates to 32767; directly the low bits: 1.
@rule
def merge_casts_to_a_shorter_type(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), when a is as wide as x and b is not wider than a"""
    t = x.type.dtype
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        no_shorter(a, t),
        no_shorter(a, b),
        plain(t),
        plain(a),
        plain(b),
    )


# x = i32 16777217, a = f32: f32 holds 16777216, which comes back.
@rule
def there_and_back_through_a_float(x: Tensor, a: DType) -> Law:
    """cast(cast(x, a), type of x) = x, for integers x and a float a of at least as many bits"""
    t = x.type.dtype
    return rewrites(cast(cast(x, a), t), x, plain(t), t.is_integer, in_floats(a), no_shorter(a, t))


# x = i8 -1, a = u8, b = i16: 255; directly -1.
@rule
def widen_through_the_same_width(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for integers where a is at least as wide as x"""
    t = x.type.dtype
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        t.is_integer,
        a.is_integer,
        b.is_integer,
        plain(t),
        plain(a),
        plain(b),
        no_shorter(a, t),
    )


# x = f32 0.5, a = i32: 0, so false; 0.5 is true.
@rule
def truth_of_a_cast(x: Tensor, a: DType) -> Law:
    """cast(cast(x, a), bool) = cast(x, bool)"""
    return rewrites(
        cast(cast(x, a), DType.BOOL), cast(x, DType.BOOL), plain(a), plain(x.type.dtype)
    )


# x = f32 -0.5, t = i32: floor gives -1; the cast truncates to 0.
@rule
def floor_in_a_cast(x: Tensor, t: DType) -> Law:
    """cast(floor(x), t) = cast(x, t), for integers t"""
    return rewrites(cast(unary("floor", x), t), cast(x, t), t.is_integer)


# x = f32 2049.4, t = f16: round gives 2049, of which f16 makes 2048 (even); f16(2049.4) = 2050.
@rule
def round_after_narrowing(x: Tensor, t: DType) -> Law:
    """cast(round(x), t) = round(cast(x, t)), for floats t"""
    return rewrites(cast(unary("round", x), t), unary("round", cast(x, t)), in_floats(t))


# x = f64 1 + 2^-11 + 2^-30, a = f32, b = f16: f32 gives 1 + 2^-11, a tie, so 1.0; directly 1 +
# 2^-10.
@rule
def round_twice(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for floats where x is wider than a, and a than b"""
    t = x.type.dtype
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        in_floats(t),
        in_floats(a),
        in_floats(b),
        typing.cast(bool, ~no_shorter(a, t)),
        typing.cast(bool, ~no_shorter(b, a)),
    )


# i8, shr: x = -1, y = 9: a shift by the width or more gives 0; in i32 -1 >> 9 = -1, cast back -1.
@rule
def compute_in_own_type(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(cast(x, t), cast(y, t)), type of x) = f(x, y), for integers t wider than x, and no
    comparison"""
    u = x.type.dtype
    return rewrites(
        cast(binary(f, cast(x, t), cast(y, t)), u),
        binary(f, x, y),
        plain(u),
        plain(t),
        u.is_integer,
        t.is_integer,
        u == y.type.dtype,
        typing.cast(bool, ~no_shorter(u, t)),
        u.is_signed == t.is_signed,
        no_comparison(f),
    )


# x = f32 300.0: i32 300, whose low bits in u8 are 44; directly it saturates to 255.
@rule
def merge_casts_of_floats(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for floats x, and integers a that hold all of b"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        in_floats(x.type.dtype),
        a.is_integer,
        b.is_integer,
        plain(a),
        plain(b),
        a.is_signed,
        no_shorter(a, b),
        typing.cast(bool, ~no_shorter(b, a)),
    )


# f32 to i32: x = NaN, y = 1: max is NaN, which gives 0; max(0, 1) = 1.
@rule
def cast_into_max(x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(max(x, y), t) = max(cast(x, t), cast(y, t)), for floats x and integers t: both
    saturate"""
    return rewrites(
        cast(binary("max", x, y), t),
        binary("max", cast(x, t), cast(y, t)),
        in_floats(x.type.dtype),
        t.is_integer,
        plain(t),
    )


# x = u8 5, t = i32: -5 wraps to 251; the right side is -5.
@rule
def cast_into_negation(x: Tensor, t: DType) -> Law:
    """cast(-x, t) = -cast(x, t), for integers t at least as wide as x"""
    u = x.type.dtype
    return rewrites(
        cast(unary("neg", x), t),
        unary("neg", cast(x, t)),
        u.is_integer,
        t.is_integer,
        plain(t),
        no_shorter(t, u),
    )


# x = f32 1e30: x * x = inf in f32, whose cast to f64 is inf; in f64 it is about 1e60.
@rule
def widen_before_product(x: Tensor, t: DType) -> Law:
    """cast(x * x, t) = cast(x, t) * cast(x, t), for floats t wider than the float x"""
    u = x.type.dtype
    return rewrites(
        cast(binary("mul", x, x), t),
        binary("mul", cast(x, t), cast(x, t)),
        in_floats(u),
        in_floats(t),
        typing.cast(bool, ~no_shorter(u, t)),
    )
