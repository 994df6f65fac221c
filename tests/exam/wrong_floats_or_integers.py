"""Laws of what is true of floats and false of integers, or the reverse, all of them wrong."""

from satura.language import (
    Axes,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    reduce,
    reshape,
    rewrites,
    rule,
    unary,
)


# i8, x = 100, y = 2: 100 * 2 = 200 wraps to -56, abs is 56; abs(100) * abs(2) wraps to -56.
@rule
def size_of_product(x: Tensor, y: Tensor) -> Law:
    """abs(x * y) = abs(x) * abs(y)"""
    return rewrites(
        unary("abs", binary("mul", x, y)), binary("mul", unary("abs", x), unary("abs", y))
    )


# i8, x = [-128, 0]: -x = [-128, 0], whose max is 0; min(x) = -128, and -(-128) is -128.
@rule
def max_of_negated(x: Tensor, axes: Axes) -> Law:
    """max(-x) = -min(x), along axes"""
    return rewrites(
        reduce("max", unary("neg", x), axes),
        unary("neg", reduce("min", x, axes)),
        x.type.dtype.is_signed,
    )


# i8, x = 127, y = -1: 127 < -1 is false; 127 - -1 wraps to -128, which is less than 0.
@rule
def less_by_difference(x: Tensor, y: Tensor) -> Law:
    """x < y = (x - y) < 0"""
    return rewrites(binary("lt", x, y), binary("lt", binary("sub", x, y), 0))


# f32, x = y = inf: inf == inf is true; inf - inf is NaN, and NaN == 0 is false.
@rule
def equal_by_difference(x: Tensor, y: Tensor) -> Law:
    """(x - y == 0) = (x == y), on any numbers"""
    return rewrites(binary("eq", binary("sub", x, y), 0), binary("eq", x, y))


# i8, x = -128, y = 2: -x = -128, -128 / 2 = -64; -(-128 / 2) = 64.
# (u8, x = 1, y = 2: 255 / 2 = 127, -(0) = 0.)
@rule
def negation_out_of_quotient(x: Tensor, y: Tensor) -> Law:
    """(-x) / y = -(x / y)"""
    return rewrites(binary("div", unary("neg", x), y), unary("neg", binary("div", x, y)))


@attribute_function
def is_not_zero(c: Scalar) -> bool:
    return bool(c.value != 0)


# i32, x = [1, 1], c = 2: 1/2 + 1/2 = 0; (1 + 1) / 2 = 1.
@rule(reassociates=True)
def quotient_out_of_sum(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """sum(x / c) = sum(x) / c, when c is not 0"""
    total = reduce("sum", x, axes)
    return rewrites(
        reduce("sum", binary("div", x, broadcast(reshape(c, ones), s)), axes),
        binary("div", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        is_not_zero(c),
    )


# u8, x = 1: -1 wraps to 255, max(1, 255) = 255; abs(1) = 1.
@rule
def size_as_max(x: Tensor) -> Law:
    """max(x, -x) = abs(x)"""
    return rewrites(binary("max", x, unary("neg", x)), unary("abs", x))


# f32, x = 0.5: 0.5 mod 1 = 0.5, not 0.
@rule
def modulo_one(x: Tensor) -> Law:
    """x mod 1 = 0"""
    return rewrites(binary("mod", x, 1), binary("mul", x, 0))


# f32: x = 2.0**-30, y = 1.0, z = -1.0: (x + 1) - 1 = 0.0; x + (1 - 1) = 2.0**-30.
@rule
def regroup_sum(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x + y) + z = x + (y + z)"""
    return rewrites(binary("add", binary("add", x, y), z), binary("add", x, binary("add", y, z)))


# i32, x = 7, c = 2: (7 / 2) * 2 = 6, not 7. On floats 0.1f * 3 / 3 is off by rounding only.
@rule(reassociates=True)
def multiply_back(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """(x / c) * c = x, when c is a number other than 0"""
    everywhere = broadcast(reshape(c, ones), s)
    return rewrites(binary("mul", binary("div", x, everywhere), everywhere), x, is_not_zero(c))
