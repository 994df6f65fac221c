"""Laws of comparisons, choices and bounds, all of them right."""

import math

from satura.language import (
    BinaryFn,
    DType,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


@rule
def compare_negated(x: Tensor, y: Tensor) -> Law:
    """neg(x) < neg(y) = y < x, for floats"""
    return rewrites(
        binary("lt", unary("neg", x), unary("neg", y)),
        binary("lt", y, x),
        x.type.dtype.is_float,
    )


@rule
def less_or_equal(x: Tensor, y: Tensor) -> Law:
    """x < y or x == y = x <= y: a NaN is in neither"""
    return rewrites(binary("or", binary("lt", x, y), binary("eq", x, y)), binary("le", x, y))


@attribute_function
def is_order(f: BinaryFn) -> bool:
    """Whether f is an order."""
    return f.name in ("lt", "le")


@rule
def below_both(f: BinaryFn, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """f(x, y) and f(x, z) = f(x, min(y, z)), for orders: a NaN makes both sides false"""
    return rewrites(
        binary("and", binary(f, x, y), binary(f, x, z)),
        binary(f, x, binary("min", y, z)),
        is_order(f),
    )


@attribute_function
def are_in_order(a: Scalar, b: Scalar) -> bool:
    """Whether a < b, or both are the same number: 0.0 and -0.0 are not, here."""
    for c in (a, b):
        if not (c.dtype.is_float or c.dtype.is_integer) or c.dtype.is_narrow:
            raise Refuse("no plain numbers")
    if a.dtype != b.dtype:
        raise Refuse("of two types")
    if a.dtype.is_integer:
        return int(a.value) <= int(b.value)
    low, high = float(a.value), float(b.value)
    return low < high or (a.bits == b.bits and not math.isnan(low))


@rule
def exchange_ordered_bounds(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """min(max(x, a everywhere), b everywhere) = max(min(x, b everywhere), a everywhere), if a <=
    b"""
    low, high = broadcast(reshape(a, ones), s), broadcast(reshape(b, ones), s)
    return rewrites(
        binary("min", binary("max", x, low), high),
        binary("max", binary("min", x, high), low),
        are_in_order(a, b),
    )


@rule
def unary_out_of_select(f: UnaryFn, c: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, f(x), f(y)) = f(select(c, x, y)), for x and y of one type: isnan forgets it"""
    return rewrites(
        select(c, unary(f, x), unary(f, y)), unary(f, select(c, x, y)), x.type == y.type
    )


@rule
def smaller_by_choice(x: Tensor, y: Tensor) -> Law:
    """select(x < y, x, y) = min(x, y), for integers"""
    return rewrites(select(binary("lt", x, y), x, y), binary("min", x, y), x.type.dtype.is_integer)


@attribute_function
def dual(f: BinaryFn) -> BinaryFn:
    """The other function of a lattice."""
    pairs = {"max": "min", "min": "max", "and": "or", "or": "and"}
    if f.name not in pairs:
        raise Refuse(f"{f} is of no lattice")
    return BinaryFn(pairs[f.name])


@rule
def absorb(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(x, g(x, y)) = x, for f and g of a lattice, where there is no NaN"""
    return rewrites(
        binary(f, x, binary(dual(f), x, y)),
        x,
        x.type.dtype.is_integer | (x.type.dtype == DType.BOOL),
    )


@rule
def choose_true(c: Tensor, d: Tensor) -> Law:
    """select(c, true, d) = c or d"""
    return rewrites(select(c, True, d), binary("or", c, d))


@rule
def equality_of_bools(x: Tensor, y: Tensor) -> Law:
    """x == y = not(x xor y), for bools"""
    return rewrites(
        binary("eq", x, y), unary("not", binary("xor", x, y)), x.type.dtype == DType.BOOL
    )
