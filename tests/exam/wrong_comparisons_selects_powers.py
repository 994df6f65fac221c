"""Laws of comparisons, selects and powers, all of them wrong."""

import typing

from satura.language import (
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


# f32, x = y = [inf]: left NaN == 0 is false, right inf == inf is true.
@rule
def equal_by_difference(x: Tensor, y: Tensor) -> Law:
    """(x - y) == 0 = (x == y)"""
    return rewrites(binary("eq", binary("sub", x, y), 0), binary("eq", x, y))


# i8, x = [-128], y = [1]: -129 wraps to 127, left false, right true.
@rule
def less_by_difference(x: Tensor, y: Tensor) -> Law:
    """(x - y) < 0 = (x < y), on signed integers"""
    return rewrites(
        binary("lt", binary("sub", x, y), 0),
        binary("lt", x, y),
        x.type.dtype.is_integer & x.type.dtype.is_signed,
    )


@attribute_function
def is_positive(c: Scalar) -> bool:
    """Whether 0 < c."""
    return bool(typing.cast(float, c.value) > 0)


# i8, c = 2, x = [100], y = [1]: left max(-56, 2) = 2, right 100 * 2 = -56.
@rule
def scale_out_of_max(x: Tensor, y: Tensor, c: Scalar, u: Shape, s: Shape) -> Law:
    """max(x * c, y * c) = max(x, y) * c, for a positive c"""
    return rewrites(
        binary(
            "max",
            binary("mul", x, broadcast(reshape(c, u), s)),
            binary("mul", y, broadcast(reshape(c, u), s)),
        ),
        binary("mul", binary("max", x, y), broadcast(reshape(c, u), s)),
        is_positive(c),
    )


# f32, c = [true], x = [1], y = [inf]: left 1.0, right 1 * 1 + inf * 0 = NaN.
@rule(reassociates=True)
def select_as_blend(c: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, x, y) = x * c + y * (1 - c), up to rounding"""
    mask = cast(c, x.type.dtype)
    return rewrites(
        select(c, x, y),
        binary("add", binary("mul", x, mask), binary("mul", y, binary("sub", 1, mask))),
        typing.cast(bool, ~x.type.dtype.is_narrow),
    )


# f32, x = [0.0], y = [-0.0]: they are equal, left 0.0, right -0.0.
@rule
def select_of_equals(x: Tensor, y: Tensor) -> Law:
    """x where x == y, else y = y"""
    return rewrites(select(binary("eq", x, y), x, y), y)


# f32, x = [-0.0]: -0.0 < 0 is false, left -0.0, right 0.0.
@rule
def magnitude_by_select(x: Tensor) -> Law:
    """-x where x < 0, else x = abs(x)"""
    return rewrites(select(binary("lt", x, 0), unary("neg", x), x), unary("abs", x))


@attribute_function
def exponents(a: Scalar, b: Scalar) -> Scalar:
    """a * b."""
    refuse_unless(a.dtype.is_float)
    return Scalar.of(float(a.value) * float(b.value), a.dtype)


# f32, a = 2, b = 0.5, x = [-2]: left sqrt(4) = 2, right pow(-2, 1) = -2.
@rule(reassociates=True)
def compose_powers(x: Tensor, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """pow(pow(x, a), b) = pow(x, a * b), up to rounding"""
    return rewrites(
        binary("pow", binary("pow", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("pow", x, broadcast(reshape(scalar(exponents(a, b)), u), s)),
    )


# f32, x = [3], y = [7]: right rounds twice, and is another float than 3 / 7.
@rule
def quotient_as_product(x: Tensor, y: Tensor) -> Law:
    """x / y = x * (1 / y), on floats"""
    return rewrites(
        binary("div", x, y), binary("mul", x, binary("div", 1.0, y)), x.type.dtype.is_float
    )


# c = [false], d = [true]: left y, right x.
@rule
def nested_selects(c: Tensor, d: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, select(d, x, y), y) = select(c or d, x, y)"""
    return rewrites(select(c, select(d, x, y), y), select(binary("or", c, d), x, y))


# f32, x = [nan], y = [1.0]: left not(false) = true, right false.
@rule
def not_less(x: Tensor, y: Tensor) -> Law:
    """not(x < y) or (x == y) = y <= x"""
    return rewrites(
        binary("or", unary("not", binary("lt", x, y)), binary("eq", x, y)), binary("le", y, x)
    )
