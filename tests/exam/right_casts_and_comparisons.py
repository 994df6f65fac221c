"""Laws of casts, and of comparisons of what is cast, all of them right."""

import typing

from satura.language import (
    BinaryFn,
    DType,
    Law,
    Tensor,
    attribute_function,
    binary,
    cast,
    replaces,
    rewrites,
    rule,
    unary,
)


@attribute_function
def is_plain_integer(t: DType) -> bool:
    """Whether t is an integer of at least 8 bits."""
    return t.is_integer and not t.is_narrow


@attribute_function
def is_plain(t: DType) -> bool:
    """Whether t is a float, an integer or bool that is computed with."""
    return not t.is_narrow


@attribute_function
def holds_integers(a: DType, b: DType) -> bool:
    """Whether the integers b have every number of the integers a."""
    if not (a.is_integer and b.is_integer) or a.is_narrow or b.is_narrow:
        return False
    return b.bounds[0] <= a.bounds[0] and a.bounds[1] <= b.bounds[1]


@attribute_function
def holds_floats(a: DType, b: DType) -> bool:
    """Whether the floats b have every number of the floats a."""
    wider = {
        DType.F16: (DType.F16, DType.F32, DType.F64),
        DType.BF16: (DType.BF16, DType.F32, DType.F64),
        DType.F32: (DType.F32, DType.F64),
        DType.F64: (DType.F64,),
    }
    return b in wider.get(a, ())


@rule
def through_wider_integers(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), where the integers a have every number of x"""
    return rewrites(cast(cast(x, a), b), cast(x, b), holds_integers(x.type.dtype, a), is_plain(b))


@rule
def through_wider_floats(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), where the floats a have every number of x"""
    return rewrites(cast(cast(x, a), b), cast(x, b), holds_floats(x.type.dtype, a), is_plain(b))


@attribute_function
def keeps_low_bits(a: DType, b: DType) -> bool:
    """Whether the integers b have no more bits than the integers a."""
    if not (a.is_integer and b.is_integer) or a.is_narrow or b.is_narrow:
        return False
    return b.itemsize <= a.itemsize


@rule
def low_bits_of_low_bits(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), of integers, where b has no more bits than a"""
    return rewrites(
        cast(cast(x, a), b), cast(x, b), is_plain_integer(x.type.dtype), keeps_low_bits(a, b)
    )


@rule
def drop_cast_to_itself(x: Tensor, t: DType) -> Law:
    """cast(x, t) = x, for x of t"""
    return replaces(cast(x, t), x, x.type.dtype == t)


@rule
def relu_under_unsigned(x: Tensor, t: DType) -> Law:
    """cast(relu(x), t) = cast(x, t), from floats to unsigned integers: it saturates at 0"""
    return rewrites(
        cast(unary("relu", x), t),
        cast(x, t),
        x.type.dtype.is_float,
        typing.cast(bool, is_plain_integer(t) & ~t.is_signed),
    )


@rule
def bool_and_back(x: Tensor, t: DType) -> Law:
    """cast(cast(x, t), bool) = x, for bools"""
    return rewrites(cast(cast(x, t), DType.BOOL), x, x.type.dtype == DType.BOOL, is_plain(t))


@rule
def truth_of_numbers(x: Tensor) -> Law:
    """cast(x, bool) = not(x == 0), for numbers; NaN is true, -0.0 is not"""
    t = x.type.dtype
    return rewrites(
        cast(x, DType.BOOL),
        unary("not", binary("eq", x, 0)),
        t.is_float | t.is_integer,
        is_plain(t),
    )


@attribute_function
def is_of_low_bits(f: BinaryFn) -> bool:
    """Whether the low bits of f(x, y) depend on those of x and y alone."""
    return f.name in ("add", "sub", "mul", "and", "or", "xor")


@rule
def truncate_operands(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(x, y), t) = f(cast(x, t), cast(y, t)), of integers, where t has no more bits"""
    return rewrites(
        cast(binary(f, x, y), t),
        binary(f, cast(x, t), cast(y, t)),
        is_of_low_bits(f),
        keeps_low_bits(x.type.dtype, t),
    )


@attribute_function
def compares(f: BinaryFn) -> bool:
    """Whether f compares."""
    return f.name in ("lt", "le", "eq")


@rule
def compare_uncast(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """f(cast(x, t), cast(y, t)) = f(x, y), for comparisons, where t has every number of x and y"""
    return rewrites(
        binary(f, cast(x, t), cast(y, t)),
        binary(f, x, y),
        compares(f),
        x.type == y.type,
        holds_integers(x.type.dtype, t) | holds_floats(x.type.dtype, t),
    )
