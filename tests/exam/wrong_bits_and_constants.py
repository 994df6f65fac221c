"""Laws of bits and of conditions on constants, all of them wrong."""

import numpy as np

from satura.language import (
    Constant,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    constant,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


# i32, x = 5: ~5 = -6, -(-6) = 6; 5 - 1 = 4. (It is x + 1.)
@rule
def negated_complement(x: Tensor) -> Law:
    """-(~x) = x - 1"""
    return rewrites(unary("neg", unary("bitnot", x)), binary("sub", x, 1))


# i32, x = 1, y = 2: ~(1 & 2) = ~0 = -1; ~1 & ~2 = -2 & -3 = -4. (`and` is not exchanged for `or`.)
@rule
def complement_into(x: Tensor, y: Tensor) -> Law:
    """~(x & y) = ~x & ~y"""
    return rewrites(
        unary("bitnot", binary("and", x, y)),
        binary("and", unary("bitnot", x), unary("bitnot", y)),
    )


@attribute_function
def differ(c: Scalar, d: Scalar) -> bool:
    """Whether the masks are other ones."""
    return c.bits != d.bits


# i32, x = y = 1, c = 1, d = 3: (1 & 1) | (1 & 3) = 1; 1 + 1 = 2. (The masks must share no bit.)
@rule
def join_fields(x: Tensor, y: Tensor, c: Scalar, d: Scalar, ones: Shape, s: Shape) -> Law:
    """(x & c) | (y & d) = (x & c) + (y & d), when the masks differ"""
    left = binary("and", x, broadcast(reshape(c, ones), s))
    right = binary("and", y, broadcast(reshape(d, ones), s))
    return rewrites(binary("or", left, right), binary("add", left, right), differ(c, d))


@attribute_function
def is_largest(c: Scalar) -> bool:
    """Whether c is the largest number of its type: all bits are 1."""
    return c.dtype.is_integer and int(c.value) == c.dtype.bounds[1]


# i8, x = -1, c = 127: -1 ^ 127 = -128; ~(-1) = 0. (127 is not all ones in a signed type.)
@rule
def xor_with_all_ones(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x ^ c = ~x, when c is the largest number of the type"""
    return rewrites(
        binary("xor", x, broadcast(reshape(c, ones), s)), unary("bitnot", x), is_largest(c)
    )


@attribute_function
def one_less(c: Scalar) -> Scalar:
    if not c.dtype.is_integer:
        raise Refuse("no integer")
    return Scalar.of(np.subtract(c.array, np.ones((), c.dtype.numpy)), c.dtype)


# u8, x = 3, c = 0: 3 < 0 is false; 0 - 1 wraps to 255, and 3 <= 255 is true.
@rule
def strict_to_weak(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x < c = x <= c - 1, on integers"""
    return rewrites(
        binary("lt", x, broadcast(reshape(c, ones), s)),
        binary("le", x, broadcast(reshape(one_less(c), ones), s)),
    )


@attribute_function
def is_zero(c: Constant) -> bool:
    """Whether all elements are 0."""
    return bool(np.all(c.array == 0))


# f32, x = [-0.0], value = [0.0]: -0.0 + 0.0 = 0.0, and not -0.0.
@rule
def add_zeros(x: Tensor, value: Constant) -> Law:
    """x + zeros = x"""
    return rewrites(binary("add", x, constant(value)), x, is_zero(value))


@attribute_function
def is_one(c: Constant) -> bool:
    """Whether all elements are 1."""
    return bool(c.array.all())


# f32, x = [3.0], value = [2.0]: 6.0; `all` says only that no element is 0.
@rule
def multiply_by_ones(x: Tensor, value: Constant) -> Law:
    """x * ones = x"""
    return rewrites(binary("mul", x, constant(value)), x, is_one(value))


@attribute_function
def holds(c: Constant) -> bool:
    return bool(c.array.any())


# bool value = [True, False], x = [1, 2], y = [3, 4]: [1, 4] on the left, [1, 2] on the right.
@rule
def select_by_constant(x: Tensor, y: Tensor, value: Constant) -> Law:
    """select(value, x, y) = x, when value holds"""
    return rewrites(select(constant(value), x, y), x, holds(value))


@attribute_function
def quotient(a: Constant, b: Constant) -> Constant:
    """a / b of integers."""
    if not a.type.dtype.is_integer or a.type != b.type or a.type.dtype.is_narrow:
        raise Refuse("no integers")
    if not b.array.all():
        raise Refuse("a division by 0")
    return Constant(np.floor_divide(a.array, b.array))


# i32, [-7] / [2]: truncated it is [-3]; NumPy's floor_divide gives [-4].
@rule
def fold_quotient(a: Constant, b: Constant) -> Law:
    """a / b of constants is a constant, on integers"""
    return rewrites(binary("div", constant(a), constant(b)), constant(quotient(a, b)))


@attribute_function
def not_ordered(lo: Scalar, hi: Scalar) -> bool:
    """Whether the bounds are no NaN."""
    return bool(lo.value == lo.value) and bool(hi.value == hi.value)


# f32, lo = 2, hi = 1, x = 0: max(min(0, 1), 2) = 2; min(max(0, 2), 1) = 1. (lo <= hi is not asked.)
@rule
def exchange_bounds(x: Tensor, lo: Scalar, hi: Scalar, ones: Shape, s: Shape) -> Law:
    """max(min(x, hi), lo) = min(max(x, lo), hi), when neither bound is NaN"""
    low, high = broadcast(reshape(lo, ones), s), broadcast(reshape(hi, ones), s)
    return rewrites(
        binary("max", binary("min", x, high), low),
        binary("min", binary("max", x, low), high),
        not_ordered(lo, hi),
    )
