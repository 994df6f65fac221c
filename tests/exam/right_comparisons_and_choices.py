"""Laws of comparisons, choices and truth values, all of them right."""

import typing

from satura.language import (
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    cast,
    equates,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


@rule
def weak_order(x: Tensor, y: Tensor) -> Law:
    """(x < y) or (x == y) = x <= y"""
    return equates(binary("or", binary("lt", x, y), binary("eq", x, y)), binary("le", x, y))


@rule
def strict_order(x: Tensor, y: Tensor) -> Law:
    """x < y = (x <= y) and not(x == y)"""
    return equates(
        binary("lt", x, y), binary("and", binary("le", x, y), unary("not", binary("eq", x, y)))
    )


@rule
def select_of_equals(x: Tensor, y: Tensor) -> Law:
    """select(x == y, x, y) = y, where equal elements have equal bits: not on floats"""
    return rewrites(select(binary("eq", x, y), x, y), y, typing.cast(bool, ~x.type.dtype.is_float))


@rule
def smaller_by_select(x: Tensor, y: Tensor) -> Law:
    """select(x < y, x, y) = min(x, y), on integers"""
    return equates(select(binary("lt", x, y), x, y), binary("min", x, y), x.type.dtype.is_integer)


@rule
def unequal_bools(x: Tensor, y: Tensor) -> Law:
    """x xor y = not(x == y), on bools"""
    return equates(
        binary("xor", x, y), unary("not", binary("eq", x, y)), x.type.dtype == DType.BOOL
    )


@attribute_function
def is_number(t: DType) -> bool:
    return t is not DType.BOOL and not t.is_narrow


@rule
def product_of_bools(c: Tensor, d: Tensor, t: DType) -> Law:
    """cast(c and d, t) = cast(c, t) * cast(d, t), on bools"""
    return rewrites(
        cast(binary("and", c, d), t),
        binary("mul", cast(c, t), cast(d, t)),
        c.type.dtype == DType.BOOL,
        is_number(t),
    )


@rule
def complement_of_bool(c: Tensor, t: DType) -> Law:
    """cast(not c, t) = 1 - cast(c, t)"""
    return rewrites(cast(unary("not", c), t), binary("sub", 1, cast(c, t)), is_number(t))


@attribute_function
def one_and_zero(a: Scalar, b: Scalar) -> bool:
    """Whether a is 1 and b is 0, and not -0.0."""
    return a == Scalar.of(1, a.dtype) and b == Scalar.of(0, b.dtype)


@rule
def select_as_cast(c: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """select(c, 1, 0) = cast(c)"""
    return rewrites(
        select(c, broadcast(reshape(a, ones), s), broadcast(reshape(b, ones), s)),
        cast(c, a.dtype),
        one_and_zero(a, b),
    )


@attribute_function
def can_be_told_apart(a: Scalar, b: Scalar) -> bool:
    """Whether a equals itself, and not b."""
    return bool(a.value == a.value) and not bool(a.value == b.value)


@rule
def condition_back(c: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(select(c, a, b) == a) = c, for constants a and b that compare as unlike, and a that is no
    NaN"""
    first, second = broadcast(reshape(a, ones), s), broadcast(reshape(b, ones), s)
    return rewrites(binary("eq", select(c, first, second), first), c, can_be_told_apart(a, b))


@rule
def function_of_select(c: Tensor, f: UnaryFn, x: Tensor, y: Tensor) -> Law:
    """select(c, f(x), f(y)) = f(select(c, x, y)), when x and y are of one type"""
    return rewrites(
        select(c, unary(f, x), unary(f, y)),
        unary(f, select(c, x, y)),
        x.type.dtype == y.type.dtype,
    )


@rule
def select_twice(c: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """select(c, select(c, x, y), z) = select(c, x, z)"""
    return rewrites(select(c, select(c, x, y), z), select(c, x, z))


@rule
def select_by_both(c: Tensor, d: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, select(d, x, y), y) = select(c and d, x, y)"""
    return equates(select(c, select(d, x, y), y), select(binary("and", c, d), x, y))
