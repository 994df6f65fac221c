"""Laws of constants and casts, all of them right."""

import typing

from satura.language import (
    Approximate,
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
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
)


@attribute_function
def strictly_below(lo: Scalar, hi: Scalar) -> bool:
    return bool(typing.cast(float, lo.value) < typing.cast(float, hi.value))


@rule
def exchange_ordered_bounds(x: Tensor, lo: Scalar, hi: Scalar, o: Shape, s: Shape) -> Law:
    """min(max(x, lo), hi) = max(min(x, hi), lo), when lo < hi"""
    return rewrites(
        binary("min", binary("max", x, broadcast(reshape(lo, o), s)), broadcast(reshape(hi, o), s)),
        binary("max", binary("min", x, broadcast(reshape(hi, o), s)), broadcast(reshape(lo, o), s)),
        strictly_below(lo, hi),
    )


@attribute_function
def is_above(c: Scalar, t: DType) -> bool:
    """Whether t has no number above c."""
    plain = c.dtype.is_float and t.is_integer and not t.is_narrow
    return plain and float(c.value) >= t.bounds[1]


@rule
def upper_bound_before_saturation(x: Tensor, c: Scalar, t: DType, o: Shape, s: Shape) -> Law:
    """cast(min(x, c), t) = cast(x, t) from floats to integers t that end at c or below"""
    return rewrites(
        cast(binary("min", x, broadcast(reshape(c, o), s)), t), cast(x, t), is_above(c, t)
    )


@attribute_function
def regroups(f: BinaryFn, dtype: DType) -> bool:
    """Whether f(f(x, y), z) = f(x, f(y, z)) bit for bit."""
    exact = f.name in ("add", "mul") and dtype.is_integer
    return exact or f.name in ("max", "min", "and", "or", "xor")


@rule
def combine_constants(f: BinaryFn, x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """f(f(x, a), b) = f(x, f(a, b)) for f that regroup exactly"""
    return rewrites(
        binary(f, binary(f, x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary(f, x, broadcast(reshape(binary(f, a, b), o), s)),
        regroups(f, x.type.dtype),
    )


@attribute_function
def is_power(c: Scalar) -> bool:
    return c.dtype.is_integer and int(c.value) > 0 and int(c.value) & (int(c.value) - 1) == 0


@attribute_function
def mask(c: Scalar) -> Scalar:
    refuse_unless(c.dtype.is_integer and int(c.value) > 0)
    return Scalar.of(int(c.value) - 1, c.dtype)


@attribute_function
def log2(c: Scalar) -> Scalar:
    refuse_unless(c.dtype.is_integer and int(c.value) > 0)
    return Scalar.of(int(c.value).bit_length() - 1, c.dtype)


@rule
def modulo_as_mask(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x mod c = x & (c - 1) for powers of two c: the remainder has the sign of c"""
    return rewrites(
        binary("mod", x, broadcast(reshape(c, o), s)),
        binary("and", x, broadcast(reshape(scalar(mask(c)), o), s)),
        is_power(c),
    )


@rule
def product_as_shift(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x * c = x << log2(c) for powers of two c"""
    return rewrites(
        binary("mul", x, broadcast(reshape(c, o), s)),
        binary("shl", x, broadcast(reshape(scalar(log2(c)), o), s)),
        is_power(c),
    )


@rule
def unsigned_quotient_as_shift(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c = x >> log2(c) for powers of two c, on unsigned integers"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, o), s)),
        binary("shr", x, broadcast(reshape(scalar(log2(c)), o), s)),
        typing.cast(bool, is_power(c) & ~x.type.dtype.is_signed),
    )


@attribute_function
def both_shifts(a: Scalar, b: Scalar) -> Scalar:
    """By how much a signed number is shifted in all: never by its width, which would give 0."""
    refuse_unless(a.dtype.is_integer and a.dtype.is_signed)
    width = 8 * a.dtype.itemsize
    refuse_unless(0 <= int(a.value) < width and 0 <= int(b.value) < width)
    return Scalar.of(min(int(a.value) + int(b.value), width - 1), a.dtype)


@rule
def two_signed_shifts(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """(x >> a) >> b = x >> min(a + b, width - 1) on signed integers"""
    return rewrites(
        binary("shr", binary("shr", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary("shr", x, broadcast(reshape(scalar(both_shifts(a, b)), o), s)),
    )


@attribute_function
def one_less(c: Scalar) -> Scalar:
    refuse_unless(c.dtype.is_integer and int(c.value) > c.dtype.bounds[0])
    return Scalar.of(int(c.value) - 1, c.dtype)


@rule
def strict_bound_as_weak(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """(x < c) = (x <= c - 1) on integers, unless c is the least"""
    return rewrites(
        binary("lt", x, broadcast(reshape(c, o), s)),
        binary("le", x, broadcast(reshape(scalar(one_less(c)), o), s)),
    )


@rule
def constant_across_integer_equality(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """(x + a == b) = (x == b - a) on integers, which wrap"""
    return rewrites(
        binary("eq", binary("add", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary("eq", x, broadcast(reshape(binary("sub", b, a), o), s)),
        x.type.dtype.is_integer,
    )


@attribute_function
def are_moderate(a: Scalar, b: Scalar) -> bool:
    """Whether neither they nor their product take numbers far from where they were."""
    return a.dtype in (DType.F32, DType.F64) and all(
        1e-3 <= abs(float(c.value)) <= 1e3 for c in (a, b)
    )


@rule(reassociates=True)
def merge_factors(x: Approximate, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """(x * a) * b = x * (a * b), up to rounding, for x that are rounded already"""
    return rewrites(
        binary("mul", binary("mul", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary("mul", x, broadcast(reshape(binary("mul", a, b), o), s)),
        are_moderate(a, b),
    )


@attribute_function
def is_one(c: Scalar) -> bool:
    return not c.dtype.is_narrow and bool(c.value == 1)


@attribute_function
def is_plain_zero(c: Scalar) -> bool:
    return not any(c.bits)


@rule
def select_one_or_zero(c: Tensor, one: Scalar, zero: Scalar, o: Shape, s: Shape) -> Law:
    """select(c, 1, 0) = cast(c)"""
    return rewrites(
        select(c, broadcast(reshape(one, o), s), broadcast(reshape(zero, o), s)),
        cast(c, one.dtype),
        is_one(one) & is_plain_zero(zero),
    )
