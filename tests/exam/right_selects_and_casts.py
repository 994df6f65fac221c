"""Laws of selects and casts, all of them right."""

import typing

from satura.language import (
    FLOATS,
    BinaryFn,
    DType,
    Law,
    Tensor,
    Varying,
    attribute_function,
    binary,
    cast,
    equates,
    rewrites,
    rule,
    select,
    unary,
)


@rule
def select_as_blend(c: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, x, y) = x * c + y * (1 - c), on integers"""
    mask = cast(c, x.type.dtype)
    return rewrites(
        select(c, x, y),
        binary("add", binary("mul", x, mask), binary("mul", y, binary("sub", 1, mask))),
        x.type.dtype.is_integer,
        typing.cast(bool, ~x.type.dtype.is_narrow),
    )


@rule
def nested_selects(c: Tensor, d: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, select(d, x, y), y) = select(c and d, x, y)"""
    return equates(select(c, select(d, x, y), y), select(binary("and", c, d), x, y))


@rule
def select_of_equals(x: Tensor, y: Tensor) -> Law:
    """x where x == y, else y = y, but on floats, where zeros of both signs are equal"""
    return rewrites(select(binary("eq", x, y), x, y), y, typing.cast(bool, ~x.type.dtype.is_float))


@rule
def magnitude_by_select(x: Tensor) -> Law:
    """-x where x < 0, else x = abs(x), on integers, the least one and unsigned ones included"""
    return rewrites(
        select(binary("lt", x, 0), unary("neg", x), x),
        unary("abs", x),
        x.type.dtype.is_integer,
    )


@rule
def binary_into_select(f: BinaryFn, c: Tensor, x: Varying, y: Tensor, z: Tensor) -> Law:
    """f(select(c, x, y), z) = select(c, f(x, z), f(y, z))"""
    return rewrites(binary(f, select(c, x, y), z), select(c, binary(f, x, z), binary(f, y, z)))


@attribute_function
def are_integers(*types: DType) -> bool:
    """Whether all are integers that are computed with."""
    return all(t.is_integer and not t.is_narrow for t in types)


@rule
def merge_integer_casts(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), on integers, when b has no more bytes than a"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        are_integers(x.type.dtype, a, b),
        b.itemsize <= a.itemsize,
    )


@attribute_function
def needs_low_bits(f: BinaryFn) -> bool:
    """Whether the low bits of a result depend on the low bits of the operands alone."""
    return f.name in ("add", "sub", "mul", "and", "or", "xor")


@rule
def narrow_before(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(x, y), t) = f(cast(x, t), cast(y, t)), for sums, products and bits, when t is no
    wider"""
    return rewrites(
        cast(binary(f, x, y), t),
        binary(f, cast(x, t), cast(y, t)),
        needs_low_bits(f),
        are_integers(x.type.dtype, t),
        t.itemsize <= x.type.dtype.itemsize,
    )


@attribute_function
def is_choice_of_floats(f: BinaryFn, a: DType, b: DType) -> bool:
    """Whether f is max or min of floats that are computed with."""
    return f.name in ("max", "min") and a in FLOATS and b in FLOATS


@rule
def round_before_choice(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(max(x, y), t) = max(cast(x, t), cast(y, t)), on floats: rounding is monotone"""
    return rewrites(
        cast(binary(f, x, y), t),
        binary(f, cast(x, t), cast(y, t)),
        is_choice_of_floats(f, x.type.dtype, t),
    )


@rule
def truth_as_comparison(x: Tensor) -> Law:
    """cast(x, bool) = not(x == 0), on numbers; NaN is true on both sides"""
    return rewrites(
        cast(x, DType.BOOL),
        unary("not", binary("eq", x, 0)),
        typing.cast(
            bool, (x.type.dtype.is_integer | x.type.dtype.is_float) & ~x.type.dtype.is_narrow
        ),
    )


@attribute_function
def holds(a: DType, t: DType) -> bool:
    """Whether each integer of t is a number of a."""
    if a.is_narrow or t.is_narrow or not t.is_integer:
        return False
    least, most = t.bounds
    if a.is_integer:
        return a.bounds[0] <= least and most <= a.bounds[1]
    digits = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}
    return a in digits and most <= 1 << digits[a]


@rule
def cast_there_and_back(x: Tensor, a: DType) -> Law:
    """cast(cast(x, a), t) = x, for integers x of type t, when a holds all of them"""
    return rewrites(cast(cast(x, a), x.type.dtype), x, holds(a, x.type.dtype))


@rule
def floor_before_unsigned(x: Tensor, t: DType) -> Law:
    """cast(floor(x), t) = cast(x, t), to unsigned integers: what is negative is 0 in both"""
    return rewrites(
        cast(unary("floor", x), t),
        cast(x, t),
        t.is_integer,
        typing.cast(bool, ~t.is_signed),
        typing.cast(bool, ~t.is_narrow),
    )
