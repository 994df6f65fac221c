"""Laws of elementwise functions, all of them right."""

import typing

from satura.language import (
    Axis,
    BinaryFn,
    Elementwise,
    Law,
    Operands,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    both,
    broadcast,
    family,
    gather,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


@rule
def select_smaller_integer(x: Tensor, y: Tensor) -> Law:
    """select(x < y, x, y) = min(x, y) on integers"""
    return rewrites(select(binary("lt", x, y), x, y), binary("min", x, y), x.type.dtype.is_integer)


@attribute_function
def zero(t: TensorType) -> Scalar:
    return Scalar.of(0, t.dtype)


@attribute_function
def units(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@rule
def exclusive_with_itself(x: Tensor) -> Law:
    """x ^ x = 0, or false"""
    return rewrites(
        binary("xor", x, x),
        broadcast(reshape(scalar(zero(x.type)), units(x.type)), Shape(x.type.shape)),
    )


@rule
def complement_and_one(x: Tensor) -> Law:
    """~x + 1 = -x, and ~(x - 1) = -x; the second one backwards, on integers"""
    return both(
        rewrites(binary("add", unary("bitnot", x), 1), unary("neg", x)),
        rewrites(unary("neg", x), unary("bitnot", binary("sub", x, 1)), x.type.dtype.is_integer),
    )


@family
def gather_before(f: Elementwise, xs: Operands[Tensor], i: Tensor, axis: Axis) -> Law:
    """gather(f(x…), i, axis) = f(gather(x, i, axis)…)"""
    return rewrites(gather(f(xs), i, axis), f(xs.each(gather, i, axis)))


@attribute_function
def dual(f: UnaryFn) -> UnaryFn:
    """What f is of the negated number, negated."""
    table = {"floor": "ceil", "ceil": "floor", "round": "round"}
    refuse_unless(f.name in table)
    return UnaryFn(table[f.name])


@rule
def negation_out_of_rounding(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = -g(x), where g rounds to the other side"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(dual(f), x)))


@attribute_function
def other(f: BinaryFn) -> BinaryFn:
    table = {"max": "min", "min": "max", "and": "or", "or": "and"}
    refuse_unless(f.name in table)
    return BinaryFn(table[f.name])


@rule
def absorb(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(x, g(x, y)) = x for max and min, and for & and |; of floats a NaN would stay"""
    return rewrites(
        binary(f, x, binary(other(f), x, y)), x, typing.cast(bool, ~x.type.dtype.is_float)
    )


@rule(reassociates=True)
def sigmoid_of_negated(x: Tensor) -> Law:
    """sigmoid(-x) = 1 - sigmoid(x), up to rounding"""
    return rewrites(unary("sigmoid", unary("neg", x)), binary("sub", 1.0, unary("sigmoid", x)))


@attribute_function
def spreads_nan(f: BinaryFn) -> bool:
    return f.name in ("max", "min")


@rule
def nan_of_larger(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """isnan(max(x, y)) = isnan(x) or isnan(y), and so for min"""
    return rewrites(
        unary("isnan", binary(f, x, y)),
        binary("or", unary("isnan", x), unary("isnan", y)),
        spreads_nan(f),
    )


@attribute_function
def compares(f: BinaryFn) -> bool:
    return f.name in ("eq", "lt", "le")


@rule
def compare_negated(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(-x, -y) = f(y, x) for the orders and equality of floats"""
    return rewrites(
        binary(f, unary("neg", x), unary("neg", y)),
        binary(f, y, x),
        compares(f),
        x.type.dtype.is_float,
    )


@rule
def relu_as_select(x: Tensor) -> Law:
    """relu(x) = select(x <= 0, 0, x)"""
    return rewrites(unary("relu", x), select(binary("le", x, 0), 0, x))
