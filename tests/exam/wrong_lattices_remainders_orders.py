"""Laws of lattices, remainders, casts and orders, all of them wrong."""

import typing

from satura.language import (
    BinaryFn,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Term,
    attribute_function,
    binary,
    broadcast,
    cast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


def full(c: Term | Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


@attribute_function
def dual(f: BinaryFn) -> BinaryFn:
    duals = {"max": "min", "min": "max", "and": "or", "or": "and"}
    refuse_unless(f.name in duals, "no lattice")
    return BinaryFn(duals[f.name])


# f = max, x = f32 1, y = NaN: min(1, NaN) = NaN wins, max(1, NaN) = NaN; the right side is 1.
@rule
def absorb(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(x, g(x, y)) = x for the lattice operations f and g: max and min, and and or"""
    return rewrites(binary(f, x, binary(dual(f), x, y)), x)


# x = f32 NaN, y = 1: NaN < 1 is false: 1; min(NaN, 1) = NaN. Also x = -0.0, y = 0.0: 0.0, min is
# -0.0.
@rule
def choose_smaller(x: Tensor, y: Tensor) -> Law:
    """select(x < y, x, y) = min(x, y)"""
    return rewrites(select(binary("lt", x, y), x, y), binary("min", x, y))


@attribute_function
def divides(a: Scalar, b: Scalar) -> bool:
    """Whether b is a multiple of a, both positive integers."""
    return (
        a.dtype.is_integer and int(a.value) > 0 < int(b.value) and int(b.value) % int(a.value) == 0
    )


# x = i8 3, a = 2, b = 4: (3 mod 2) mod 4 = 1; 3 mod 4 = 3. (b has to divide a.)
@rule
def modulo_of_modulo(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x mod a) mod b = x mod b, when one divides the other"""
    return rewrites(
        binary("mod", binary("mod", x, full(a, ones, s)), full(b, ones, s)),
        binary("mod", x, full(b, ones, s)),
        divides(a, b),
    )


# x = i8 2, a = -1, b = 1: pow(2, -1) = 0 (the truncated quotient), 0 * 2 = 0; pow(2, 0) = 1.
@rule
def product_of_powers(x: Tensor, a: Tensor, b: Tensor) -> Law:
    """pow(x, a) * pow(x, b) = pow(x, a + b) on integers, which do not round"""
    return rewrites(
        binary("mul", binary("pow", x, a), binary("pow", x, b)),
        binary("pow", x, binary("add", a, b)),
        x.type.dtype.is_integer,
    )


# x = i8 -128, y = 2: -(-128 / 2) = 64; (-x) wraps to -128, -128 / 2 = -64. (Right on floats.)
@rule
def negate_quotient(x: Tensor, y: Tensor) -> Law:
    """-(x / y) = (-x) / y"""
    return rewrites(unary("neg", binary("div", x, y)), binary("div", unary("neg", x), y))


# x = u8 0, d = u16: ~0 = 255, cast to 255; ~u16(0) = 65535. (Right for signed x, or narrower d.)
@rule
def complement_after_cast(x: Tensor, d: DType) -> Law:
    """cast(~x, d) = ~cast(x, d) for integers of any width"""
    return rewrites(
        cast(unary("bitnot", x), d),
        unary("bitnot", cast(x, d)),
        typing.cast(bool, d.is_integer & ~d.is_narrow),
    )


# x = y = i8 100, d = i16: 100 + 100 = 200 in i16; in i8 it wraps to -56, cast to -56.
@rule
def add_before_widening(x: Tensor, y: Tensor, d: DType) -> Law:
    """cast(x, d) + cast(y, d) = cast(x + y, d) on integers, when d is at least as wide"""
    return rewrites(
        binary("add", cast(x, d), cast(y, d)),
        cast(binary("add", x, y), d),
        typing.cast(
            bool,
            x.type.dtype.is_integer
            & ~x.type.dtype.is_narrow
            & (x.type == y.type)
            & d.is_integer
            & (d.itemsize >= x.type.dtype.itemsize),
        ),
    )


@attribute_function
def compares(f: BinaryFn, x: TensorType, d: DType) -> bool:
    """Whether f compares, and d has as many bytes as x."""
    numbers = x.dtype.is_integer and not x.dtype.is_narrow
    return f.name in ("lt", "le", "eq") and numbers and d.itemsize >= x.dtype.itemsize


# x = i8 -1, y = i8 1, d = u8: 255 < 1 is false; -1 < 1 is true.
# Also x = i32 16777216, y = i32 16777217, d = f32: equal after the cast.
@rule
def compare_before_cast(f: BinaryFn, x: Tensor, y: Tensor, d: DType) -> Law:
    """cast(x, d) < cast(y, d) is x < y, for integers and a d of as many bytes; also <= and =="""
    return rewrites(
        binary(f, cast(x, d), cast(y, d)),
        binary(f, x, y),
        compares(f, x.type, d) & (x.type == y.type),
    )
