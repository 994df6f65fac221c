"""Laws of casts, all of them right."""

import typing

from satura.language import (
    FLOATS,
    BinaryFn,
    DType,
    Law,
    Padding,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    cast,
    pad,
    rewrites,
    rule,
    unary,
)


@attribute_function
def is_number(t: DType) -> bool:
    """Whether t is a type that is computed with, and not bool."""
    return t is not DType.BOOL and not t.is_narrow


@rule
def truth_is_unequal(x: Tensor) -> Law:
    """cast(x, bool) = not(x == 0), NaN included"""
    return rewrites(cast(x, DType.BOOL), unary("not", binary("eq", x, 0)), is_number(x.type.dtype))


@attribute_function
def width(t: DType) -> int:
    return t.bounds[1].bit_length() + (1 if t.is_signed else 0)


@attribute_function
def keeps_low_bits(x: TensorType, a: DType, b: DType) -> bool:
    """Whether all are integers, and b has no more bits than a."""
    if not (x.dtype.is_integer and a.is_integer and b.is_integer):
        return False
    return width(b) <= width(a)


@rule
def keep_low_bits(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for integers, when b has no more bits than a"""
    return rewrites(cast(cast(x, a), b), cast(x, b), keeps_low_bits(x.type, a, b))


@attribute_function
def holds(t: DType, of: DType) -> bool:
    """Whether t has every number of `of`; both are types that are computed with."""
    if of.is_narrow or t.is_narrow or DType.BOOL in (of, t):
        return False
    if of.is_integer and t.is_integer:
        return t.bounds[0] <= of.bounds[0] and of.bounds[1] <= t.bounds[1]
    if of.is_integer:
        digits = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}[t]
        return of.bounds[1].bit_length() <= digits and t is not DType.F16
    wider = {DType.F64: (DType.F32, DType.F16, DType.BF16), DType.F32: (DType.F16, DType.BF16)}
    return of is t or of in wider.get(t, ())


@rule
def skip_what_holds_all(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), when a has every number of x's integers and is one, too"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        holds(a, x.type.dtype) & x.type.dtype.is_integer & a.is_integer,
    )


@attribute_function
def compares(f: BinaryFn) -> bool:
    return f.name in ("lt", "le", "eq")


@rule
def compare_before_cast(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """f(cast(x, t), cast(y, t)) = f(x, y), for comparisons, when t has every number of x's dtype"""
    return rewrites(
        binary(f, cast(x, t), cast(y, t)),
        binary(f, x, y),
        compares(f) & holds(t, x.type.dtype),
        x.type.dtype == y.type.dtype,
    )


@attribute_function
def of_low_bits(f: BinaryFn, of: DType, t: DType) -> bool:
    """Whether the low bits of f depend on low bits alone, and t has no more bits."""
    if f.name not in ("add", "sub", "mul", "and", "or", "xor"):
        return False
    return of.is_integer and t.is_integer and not t.is_narrow and t.itemsize <= of.itemsize


@rule
def narrow_before(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(x, y), t) = f(cast(x, t), cast(y, t)), for integers t that are not wider"""
    return rewrites(
        cast(binary(f, x, y), t),
        binary(f, cast(x, t), cast(y, t)),
        of_low_bits(f, x.type.dtype, t),
    )


@attribute_function
def never_overflows(f: BinaryFn, of: DType) -> bool:
    return f.name in ("mod", "fmod", "max", "min", "and", "or", "xor") and of.is_integer


@rule
def widen_before(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(x, y), t) = f(cast(x, t), cast(y, t)), for integers t that have all of x's"""
    return rewrites(
        cast(binary(f, x, y), t),
        binary(f, cast(x, t), cast(y, t)),
        never_overflows(f, x.type.dtype) & t.is_integer & holds(t, x.type.dtype),
    )


@rule
def truncate_positive(x: Tensor, t: DType) -> Law:
    """cast(floor(relu(x)), t) = cast(relu(x), t), to integers"""
    positive = unary("relu", x)
    return rewrites(cast(unary("floor", positive), t), cast(positive, t), t.is_integer)


@attribute_function
def rounds(f: UnaryFn) -> bool:
    return f.name in ("floor", "ceil", "round")


@rule
def round_whole_numbers(f: UnaryFn, x: Tensor, t: DType) -> Law:
    """f(cast(x, t)) = cast(x, t), for roundings, when x are integers or bools"""
    return rewrites(
        unary(f, cast(x, t)), cast(x, t), typing.cast(bool, rounds(f) & ~x.type.dtype.is_float)
    )


@attribute_function
def are_floats(of: DType, t: DType) -> bool:
    return of in FLOATS and t in FLOATS


@rule
def nan_of_cast(x: Tensor, t: DType) -> Law:
    """isnan(cast(x, t)) = isnan(x), among floats"""
    return rewrites(unary("isnan", cast(x, t)), unary("isnan", x), are_floats(x.type.dtype, t))


@attribute_function
def keeps_zero_alone(f: UnaryFn) -> bool:
    """Whether f(x) is 0 only where x is."""
    return f.name in ("neg", "abs", "sign")


@rule
def truth_through(f: UnaryFn, x: Tensor) -> Law:
    """cast(f(x), bool) = cast(x, bool), for neg, abs and sign"""
    return rewrites(cast(unary(f, x), DType.BOOL), cast(x, DType.BOOL), keeps_zero_alone(f))


@rule
def pad_zero_before_cast(x: Tensor, t: DType, p: Padding) -> Law:
    """pad(cast(x, t), 0) = cast(pad(x, 0), t), among numbers"""
    return rewrites(
        pad(cast(x, t), 0, p),
        cast(pad(x, 0, p), t),
        is_number(x.type.dtype) & is_number(t),
    )
