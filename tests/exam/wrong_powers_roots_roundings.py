"""Laws of powers, roots, roundings and circular functions, all of them wrong."""

import numpy as np

from satura.language import (
    FLOATS,
    Approximate,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


# f32, x = y = -1: log(1) = 0; log(-1) is NaN.
@rule(reassociates=True)
def log_of_product(x: Approximate, y: Approximate) -> Law:
    """log(x * y) = log(x) + log(y)"""
    return rewrites(
        unary("log", binary("mul", x, y)), binary("add", unary("log", x), unary("log", y))
    )


# f32, x = 1e30: x * x = inf, sqrt(inf) = inf; abs(x) = 1e30. (x = 1e-30: 0 and 1e-30.)
@rule
def root_of_square(x: Tensor) -> Law:
    """sqrt(x * x) = abs(x)"""
    return rewrites(unary("sqrt", binary("mul", x, x)), unary("abs", x))


# f32, x = -inf: C's pow(-inf, 0.5) is inf; sqrt(-inf) is NaN.
@rule(reassociates=True)
def root_from_power(x: Tensor) -> Law:
    """pow(x, 0.5) = sqrt(x)"""
    return rewrites(binary("pow", x, 0.5), unary("sqrt", x))


@attribute_function
def product_of(a: Scalar, b: Scalar) -> Scalar:
    return Scalar.of(np.multiply(a.array, b.array), a.dtype)


@attribute_function
def is_float(a: Scalar) -> bool:
    return a.dtype in FLOATS and bool(np.isfinite(float(a.value)))


# f32, x = -2, a = 2, b = 0.5: pow(4, 0.5) = 2; pow(-2, 1) = -2.
@rule(reassociates=True)
def merge_powers(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """pow(pow(x, a), b) = pow(x, a * b), for finite floats"""
    return rewrites(
        binary(
            "pow", binary("pow", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("pow", x, broadcast(reshape(product_of(a, b), ones), s)),
        is_float(a) & is_float(b),
    )


# i32, x = 2, y = 3, z = -1: 2 ** (3 - 1) = 4; 8 * (2 ** -1) = 8 * 0 = 0.
@rule
def split_power(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """pow(x, y + z) = pow(x, y) * pow(x, z), on integers"""
    return rewrites(
        binary("pow", x, binary("add", y, z)),
        binary("mul", binary("pow", x, y), binary("pow", x, z)),
        x.type.dtype.is_integer,
    )


# f32, x = 3: sin(3) = 0.1411, asin of it is 0.1416, and not 3.
@rule(reassociates=True)
def arc_of_sine(x: Tensor) -> Law:
    """asin(sin(x)) = x"""
    return rewrites(unary("asin", unary("sin", x)), x)


# f32, x = 7.6504974365234375, y = 0.45002928376197815: x is a little less than 17 * y, but x / y is
# rounded up to 17: the left side is 0.4500289, the right side -4.8e-07. (And 5 mod inf = 5, while
# inf * floor(5 / inf) is NaN.)
@rule(reassociates=True)
def modulo_from_floor(x: Tensor, y: Tensor) -> Law:
    """x mod y = x - y * floor(x / y), on floats"""
    return rewrites(
        binary("mod", x, y),
        binary("sub", x, binary("mul", y, unary("floor", binary("div", x, y)))),
        x.type.dtype.is_float,
    )


# f32, x = -2.0**-30: x + 1 is rounded to 1, whose floor is 1; floor(x) = -1, -1 + 1 = 0.
@rule
def whole_out_of_floor(x: Tensor) -> Law:
    """floor(x + 1) = floor(x) + 1"""
    return rewrites(unary("floor", binary("add", x, 1.0)), binary("add", unary("floor", x), 1.0))


# f32, x = inf: sin and cos of it are NaN, as is the left side; the right side is 1.
@rule(reassociates=True)
def one_on_circle(x: Tensor) -> Law:
    """sin(x)² + cos(x)² = 1"""
    return rewrites(
        binary(
            "add",
            binary("mul", unary("sin", x), unary("sin", x)),
            binary("mul", unary("cos", x), unary("cos", x)),
        ),
        binary("pow", x, 0.0),
    )


# f32, c = true, x = 1, y = inf: 1 on the left; 1 * 1 + 0 * inf is NaN on the right.
@rule(reassociates=True)
def select_by_arithmetic(c: Tensor, x: Approximate, y: Approximate) -> Law:
    """select(c, x, y) = c * x + (1 - c) * y"""
    mask = cast(c, x.type.dtype)
    return rewrites(
        select(c, x, y),
        binary("add", binary("mul", mask, x), binary("mul", binary("sub", 1, mask), y)),
    )
