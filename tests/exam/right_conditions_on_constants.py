"""Laws of constants with conditions on their values, and of powers, all of them right."""

import typing

import numpy as np

from satura.language import (
    FLOATS,
    Axes,
    Axis,
    Constant,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    constant,
    gather,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


@attribute_function
def one_of(type_: TensorType) -> Scalar:
    return Scalar.of(1, type_.dtype)


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


@rule
def power_of_nothing(x: Tensor) -> Law:
    """pow(x, 0) = 1, also of NaN and of 0"""
    return rewrites(
        binary("pow", x, 0),
        broadcast(reshape(scalar(one_of(x.type)), units(x.type)), Shape(x.type.shape)),
    )


@rule
def square_of_integers(x: Tensor) -> Law:
    """pow(x, 2) = x * x, on integers"""
    return rewrites(binary("pow", x, 2), binary("mul", x, x), x.type.dtype.is_integer)


@rule
def inverse_of_integers(x: Tensor) -> Law:
    """pow(x, -1) = 1 / x, on integers: both are 0 but for 1 and -1"""
    return rewrites(binary("pow", x, -1), binary("div", 1, x), x.type.dtype.is_integer)


@rule
def divide_by_minus_one(x: Tensor) -> Law:
    """x / -1 = -x"""
    return rewrites(binary("div", x, -1), unary("neg", x))


@attribute_function
def is_neutral(c: Constant) -> bool:
    """Whether all elements are -0.0, or 0 of integers."""
    zero = Scalar.of(-0.0 if c.type.dtype.is_float else 0, c.type.dtype)
    return c.array.tobytes() == zero.bits * c.size


@rule
def add_nothing(x: Tensor, c: Constant) -> Law:
    """x + c = x, for constants of -0.0, and of 0 on integers"""
    return rewrites(binary("add", x, constant(c)), x, is_neutral(c))


@attribute_function
def holds(c: Constant) -> bool:
    return bool(c.array.all())


@rule
def select_by_constant(x: Tensor, y: Tensor, c: Constant) -> Law:
    """select(c, x, y) = x, when all elements of c are true"""
    return rewrites(select(constant(c), x, y), x, holds(c))


@attribute_function
def counts(c: Constant, type_: TensorType, axis: Axis) -> bool:
    """Whether c is 0, 1, … up to the end of the axis."""
    n = type_.shape[axis.index]
    if c.type.rank != 1 or not isinstance(n, int) or c.type.shape[0] != n:
        return False
    return bool(np.array_equal(c.array, np.arange(n)))


@rule
def gather_everything(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, c, axis) = x, when c counts the axis"""
    return rewrites(gather(x, constant(c), axis), x, counts(c, x.type, axis))


@attribute_function
def are_ordered(lo: Scalar, hi: Scalar) -> bool:
    return bool(typing.cast(float, lo.value) < typing.cast(float, hi.value))


@rule
def exchange_bounds(x: Tensor, lo: Scalar, hi: Scalar, ones: Shape, s: Shape) -> Law:
    """max(min(x, hi), lo) = min(max(x, lo), hi), when lo < hi"""
    low, high = broadcast(reshape(lo, ones), s), broadcast(reshape(hi, ones), s)
    return rewrites(
        binary("max", binary("min", x, high), low),
        binary("min", binary("max", x, low), high),
        are_ordered(lo, hi),
    )


@attribute_function
def is_positive(c: Scalar) -> bool:
    """Whether c is a finite float above 0."""
    return c.dtype in FLOATS and 0 < float(c.value) < float("inf")


@rule
def scale_out_of_relu(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """relu(x * c) = relu(x) * c, for finite floats c > 0"""
    factor = broadcast(reshape(c, ones), s)
    return rewrites(
        unary("relu", binary("mul", x, factor)),
        binary("mul", unary("relu", x), factor),
        is_positive(c),
    )


@rule
def scale_out_of_max(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """max(x * c) = max(x) * c, for finite floats c > 0"""
    most = reduce("max", x, axes)
    return rewrites(
        reduce("max", binary("mul", x, broadcast(reshape(c, ones), s)), axes),
        binary("mul", most, broadcast(reshape(c, ones), Shape(most.type.shape))),
        is_positive(c),
    )


@attribute_function
def all_ones(c: Scalar) -> bool:
    """Whether all bits are 1."""
    return c.dtype.is_integer and not c.dtype.is_narrow and c.bits == b"\xff" * c.dtype.itemsize


@rule
def xor_with_all_ones(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x ^ c = ~x, when all bits of c are 1"""
    return rewrites(
        binary("xor", x, broadcast(reshape(c, ones), s)), unary("bitnot", x), all_ones(c)
    )


@attribute_function
def one_less(c: Scalar) -> Scalar:
    """c - 1, of integers that are not the least."""
    if not c.dtype.is_integer or int(c.value) == c.dtype.bounds[0]:
        raise Refuse(f"there is nothing below {c}")
    return Scalar.of(int(c.value) - 1, c.dtype)


@rule
def strict_to_weak(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x < c = x <= c - 1, for integers c that are not the least"""
    return rewrites(
        binary("lt", x, broadcast(reshape(c, ones), s)),
        binary("le", x, broadcast(reshape(one_less(c), ones), s)),
    )
