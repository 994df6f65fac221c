"""Laws of constants that meet, all of them wrong."""

import typing

from satura.language import (
    BinaryFn,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    cast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    unary,
)


# i8: a = 64, b = 2: a * b wraps to -128; x = -128: -128 / 64 / 2 = -1; -128 / -128 = 1.
# u8: a = 20, b = 13 wraps to 4; x = 100: 100 / 20 / 13 = 0; 100 / 4 = 25.
@rule
def merge_integer_divisors(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b) on integers"""
    return rewrites(
        binary("div", binary("div", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary("div", x, broadcast(reshape(binary("mul", a, b), o), s)),
        x.type.dtype.is_integer,
    )


# f32: lo = 0.0, hi = -0.0 (0.0 <= -0.0 holds), x = 5.0:
# min(max(5, 0.0), -0.0) = -0.0; max(min(5, -0.0), 0.0) = 0.0.
@attribute_function
def in_order(lo: Scalar, hi: Scalar) -> bool:
    return bool(typing.cast(float, lo.value) <= typing.cast(float, hi.value))


@rule
def exchange_bounds(x: Tensor, lo: Scalar, hi: Scalar, o: Shape, s: Shape) -> Law:
    """min(max(x, lo), hi) = max(min(x, hi), lo), when lo <= hi"""
    return rewrites(
        binary("min", binary("max", x, broadcast(reshape(lo, o), s)), broadcast(reshape(hi, o), s)),
        binary("max", binary("min", x, broadcast(reshape(hi, o), s)), broadcast(reshape(lo, o), s)),
        in_order(lo, hi),
    )


# f32: a, b, c, d = 0, 1, 2, 3 and x = 0: the left is clip(0, 2, 3) = 2.0; the right is
# min(max(0, 2), 1) = 1.0. Both clips are well ordered, but they do not overlap.
@rule
def merge_clips(x: Tensor, a: Scalar, b: Scalar, c: Scalar, d: Scalar, o: Shape, s: Shape) -> Law:
    """clip(clip(x, a, b), c, d) = clip(x, max(a, c), min(b, d)), when a < b and c < d"""
    first = binary(
        "min", binary("max", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)
    )
    return rewrites(
        binary(
            "min", binary("max", first, broadcast(reshape(c, o), s)), broadcast(reshape(d, o), s)
        ),
        binary(
            "min",
            binary("max", x, broadcast(reshape(binary("max", a, c), o), s)),
            broadcast(reshape(binary("min", b, d), o), s),
        ),
        in_order(a, b) & in_order(c, d),
    )


# i8: c = -128: x < -128 is false for all x; c - 1 wraps to 127, and x <= 127 is true.
@rule
def strict_as_weak_bound(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """(x < c) = (x <= c - 1) on integers"""
    return rewrites(
        binary("lt", x, broadcast(reshape(c, o), s)),
        binary("le", x, broadcast(reshape(binary("sub", c, 1), o), s)),
        x.type.dtype.is_integer,
    )


# f32: a = 1e8, b = 1e8, x = 1.0: x + a rounds to 1e8, so the left is true; b - a = 0.0 is not 1.0.
@rule
def constant_across_equality(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """(x + a == b) = (x == b - a)"""
    return rewrites(
        binary("eq", binary("add", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary("eq", x, broadcast(reshape(binary("sub", b, a), o), s)),
    )


# x u8 = 255, t = i32, c = 255: 255 mod 255 = 0; the right is 255.
@attribute_function
def reaches(c: Scalar, x: TensorType) -> bool:
    refuse_unless(x.dtype.is_integer and c.dtype.is_integer)
    refuse_unless(not x.dtype.is_signed and not x.dtype.is_narrow)
    return int(c.value) >= x.dtype.bounds[1]


@rule
def remainder_of_small(x: Tensor, t: DType, c: Scalar, o: Shape, s: Shape) -> Law:
    """t(x) mod c = t(x) for unsigned x of which none exceeds c"""
    return rewrites(
        binary("mod", cast(x, t), broadcast(reshape(c, o), s)), cast(x, t), reaches(c, x.type)
    )


# x f32 = 200.0, c = 127.0, t = u8: min(200, 127) = 127; the right is 200.
@attribute_function
def saturates_anyway(c: Scalar, t: DType) -> bool:
    return c.dtype.is_float and t in (DType.I8, DType.U8) and float(c.value) >= 127


@rule
def bound_before_saturation(x: Tensor, c: Scalar, t: DType, o: Shape, s: Shape) -> Law:
    """cast(min(x, c), t) = cast(x, t) for bytes t, when c is 127 or more: casts saturate"""
    return rewrites(
        cast(binary("min", x, broadcast(reshape(c, o), s)), t), cast(x, t), saturates_anyway(c, t)
    )


# f32: x = -2.0, a = 2.0, b = 0.5: pow(pow(-2, 2), 0.5) = 2.0; pow(-2, 1) = -2.0.
@attribute_function
def are_floats(a: Scalar) -> bool:
    return a.dtype in (DType.F32, DType.F64) and abs(float(a.value)) <= 4


@rule(reassociates=True)
def merge_powers(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """pow(pow(x, a), b) = pow(x, a * b), up to rounding"""
    return rewrites(
        binary("pow", binary("pow", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary("pow", x, broadcast(reshape(binary("mul", a, b), o), s)),
        are_floats(a) & are_floats(b),
    )


# f32: zero = -0.0 (== 0 holds), x = -0.0: max(-0.0, -0.0) = -0.0; relu(-0.0) = 0.0.
@attribute_function
def vanishes(c: Scalar) -> bool:
    return bool(c.value == 0)


@rule
def max_with_zero(x: Tensor, zero: Scalar, o: Shape, s: Shape) -> Law:
    """max(x, 0) = relu(x)"""
    return rewrites(
        binary("max", x, broadcast(reshape(zero, o), s)), unary("relu", x), vanishes(zero)
    )


# i32, f = sub, a = 1, b = 2, x = 0: (0 - 1) - 2 = -3; 0 - (1 - 2) = 1.
@attribute_function
def regroups(f: BinaryFn, x: TensorType) -> bool:
    return x.dtype.is_integer and f.name in ("add", "sub", "mul", "and", "or", "xor", "max", "min")


@rule
def meet_constants(f: BinaryFn, x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """f(f(x, a), b) = f(x, f(a, b)) for functions of integers that may be regrouped"""
    return rewrites(
        binary(f, binary(f, x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary(f, x, broadcast(reshape(binary(f, a, b), o), s)),
        regroups(f, x.type),
    )
