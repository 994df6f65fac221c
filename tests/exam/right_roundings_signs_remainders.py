"""Laws of roundings, signs, quotients and remainders, all of them right."""

import typing

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
    equates,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


@attribute_function
def joint_divisor(a: Scalar, b: Scalar) -> Scalar:
    t = a.type.dtype
    if not t.is_integer or t.is_narrow or int(a.value) <= 0 or int(b.value) <= 0:
        raise Refuse("no positive integers")
    joint = int(a.value) * int(b.value)
    if joint > t.bounds[1]:
        raise Refuse("their product is too large")
    return Scalar.of(joint, t)


@attribute_function
def is_settled_remainder(f: BinaryFn, t: DType) -> bool:
    return f.name == "fmod" or (f.name == "mod" and t.is_integer)


@attribute_function
def rounds(f: UnaryFn) -> bool:
    return f.name in ("floor", "ceil", "round")


@attribute_function
def is_product_or_quotient(f: BinaryFn) -> bool:
    return f.name in ("mul", "div")


@attribute_function
def carries_signs(f: BinaryFn, t: DType) -> bool:
    return f.name == "mul" or (f.name in ("div", "fmod") and t.is_float)


@attribute_function
def other_remainder(f: BinaryFn) -> BinaryFn:
    if f.name not in ("mod", "fmod"):
        raise Refuse("no remainder")
    return BinaryFn("mod" if f.name == "fmod" else "fmod")


@attribute_function
def is_negative_quotient(c: Scalar) -> bool:
    return c.type.dtype.is_float and float(c.value) < 0


@rule
def ceil_by_floor_of_negation(x: Tensor) -> Law:
    """ceil(x) = -floor(-x), both ways"""
    return equates(unary("ceil", x), unary("neg", unary("floor", unary("neg", x))))


@rule
def round_of_negation(x: Tensor) -> Law:
    """round(-x) = -round(x)"""
    return rewrites(unary("round", unary("neg", x)), unary("neg", unary("round", x)))


@rule
def fmod_by_negation(x: Tensor, y: Tensor) -> Law:
    """x fmod -y = x fmod y, where numbers have signs"""
    return rewrites(
        binary("fmod", x, unary("neg", y)), binary("fmod", x, y), x.type.dtype.is_signed
    )


@rule
def divide_by_negative(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = -(x / -c), where c is a negative float"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, ones), s)),
        unary("neg", binary("div", x, broadcast(reshape(unary("neg", c), ones), s))),
        is_negative_quotient(c),
    )


@rule
def join_quotients(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), on integers where a and b are positive and a * b does not wrap"""
    return rewrites(
        binary(
            "div", binary("div", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("div", x, broadcast(reshape(scalar(joint_divisor(a, b)), ones), s)),
    )


@rule
def remainder_of_remainder(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(f(x, y), y) = f(x, y), for fmod, and mod of integers"""
    return rewrites(
        binary(f, binary(f, x, y), y), binary(f, x, y), is_settled_remainder(f, x.type.dtype)
    )


@rule
def remainders_without_signs(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """x mod y = x fmod y, both ways, on unsigned integers"""
    return rewrites(
        binary(f, x, y),
        binary(other_remainder(f), x, y),
        x.type.dtype.is_integer,
        typing.cast(bool, ~x.type.dtype.is_signed),
    )


@rule
def abs_of_product(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """abs(f(x, y)) = f(abs(x), abs(y)), for products and quotients of floats"""
    return rewrites(
        unary("abs", binary(f, x, y)),
        binary(f, unary("abs", x), unary("abs", y)),
        is_product_or_quotient(f),
        x.type.dtype.is_float,
    )


@rule
def negation_out_of_first(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(-x, y) = -f(x, y), for products, and quotients and fmod of floats"""
    return rewrites(
        binary(f, unary("neg", x), y), unary("neg", binary(f, x, y)), carries_signs(f, x.type.dtype)
    )


@rule
def negated_difference(x: Tensor, y: Tensor) -> Law:
    """-(x - y) = y - x, on integers"""
    return rewrites(unary("neg", binary("sub", x, y)), binary("sub", y, x), x.type.dtype.is_integer)


@rule
def round_once(f: UnaryFn, g: UnaryFn, x: Tensor) -> Law:
    """f(g(x)) = g(x), where both round to whole numbers"""
    return rewrites(unary(f, unary(g, x)), unary(g, x), rounds(f), rounds(g))


@rule
def abs_of_root(x: Tensor) -> Law:
    """abs(sqrt(abs(x))) = sqrt(abs(x)): abs leaves no -0.0"""
    root = unary("sqrt", unary("abs", x))
    return rewrites(unary("abs", root), root)
