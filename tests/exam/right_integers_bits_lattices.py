"""Laws of integers, bits and lattices, all of them right."""

from satura.language import (
    BinaryFn,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Term,
    attribute_function,
    binary,
    broadcast,
    equates,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


def full(c: Term | Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


@rule
def factor_out(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """x * y + x * z = x * (y + z) on integers, a ring modulo 2^n; both ways"""
    return equates(
        binary("add", binary("mul", x, y), binary("mul", x, z)),
        binary("mul", x, binary("add", y, z)),
        x.type.dtype.is_integer,
    )


@rule
def cancel_exclusive_or(x: Tensor, y: Tensor) -> Law:
    """(x ^ y) ^ y = x on integers and bools"""
    return rewrites(binary("xor", binary("xor", x, y), y), x)


@rule
def complement_and_one(x: Tensor) -> Law:
    """~x + 1 = -x on integers, unsigned ones and the least included"""
    return rewrites(binary("add", unary("bitnot", x), 1), unary("neg", x))


DUALS = {"max": "min", "min": "max", "and": "or", "or": "and"}


@attribute_function
def dual(f: BinaryFn) -> BinaryFn:
    if f.name not in DUALS:
        raise Refuse(f"{f} is no lattice operation")
    return BinaryFn(DUALS[f.name])


@attribute_function
def absorbing(f: BinaryFn, type_: TensorType) -> BinaryFn:
    """The operation that f absorbs: none where NaN wins over both."""
    refuse_unless(f.name in DUALS and not type_.dtype.is_float, f"{f} does not absorb")
    return BinaryFn(DUALS[f.name])


@rule
def absorb(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(x, g(x, y)) = x for dual lattice operations of integers and bools"""
    return rewrites(binary(f, x, binary(absorbing(f, x.type), x, y)), x)


@rule
def distribute_lattice(f: BinaryFn, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """f(x, g(y, z)) = g(f(x, y), f(x, z)) for dual lattice operations, also of floats: orders are
    distributive, and a NaN makes both sides NaN"""
    return rewrites(
        binary(f, x, binary(dual(f), y, z)),
        binary(dual(f), binary(f, x, y), binary(f, x, z)),
    )


@attribute_function
def shifts_together(a: Scalar, b: Scalar) -> Scalar:
    """a + b, or the width, by which all shifts give 0."""
    refuse_unless(int(a.value) >= 0 and int(b.value) >= 0, "a shift by less than 0 gives 0")
    return Scalar.of(min(int(a.value) + int(b.value), 8 * a.dtype.itemsize), a.dtype)


@rule
def compose_left_shifts(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x << a) << b = x << min(a + b, width), for a and b that are not negative"""
    return rewrites(
        binary("shl", binary("shl", x, full(a, ones, s)), full(b, ones, s)),
        binary("shl", x, full(scalar(shifts_together(a, b)), ones, s)),
    )


@attribute_function
def below_power(c: Scalar) -> Scalar:
    """c - 1 of c = 2^k, positive."""
    refuse_unless(c.dtype.is_integer, "no integer")
    value = int(c.value)
    refuse_unless(value > 0 and value & (value - 1) == 0, "no power of two")
    return Scalar.of(value - 1, c.dtype)


@rule
def modulo_as_mask(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x mod 2^k = x & (2^k - 1) on integers, as mod has the sign of 2^k"""
    return rewrites(
        binary("mod", x, full(c, ones, s)),
        binary("and", x, full(scalar(below_power(c)), ones, s)),
    )


@attribute_function
def place_of_bit(c: Scalar) -> Scalar:
    """k, where bit k of c is the only one: -128 in i8 is bit 7."""
    refuse_unless(c.dtype.is_integer, "no integer")
    code = int(c.value) % (1 << 8 * c.dtype.itemsize)
    refuse_unless(code != 0 and code & (code - 1) == 0, "not one bit")
    return Scalar.of(code.bit_length() - 1, c.dtype)


@rule
def multiply_by_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * c = x << k on integers, when c has one bit, number k: the least has, too"""
    return rewrites(
        binary("mul", x, full(c, ones, s)),
        binary("shl", x, full(scalar(place_of_bit(c)), ones, s)),
    )


@rule
def absolute_of_negation(x: Tensor) -> Law:
    """abs(-x) = abs(x) on signed types: both wrap for the least; unsigned ones have no such law"""
    return rewrites(unary("abs", unary("neg", x)), unary("abs", x), x.type.dtype.is_signed)
