"""Laws of unary and binary functions of floats that break at special values, all of them wrong."""

from satura.language import (
    BinaryFn,
    Law,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    equates,
    rewrites,
    rule,
    select,
    unary,
)


# x = NaN (f32): lt(0, NaN) is false, so the left side is 0.0; relu(NaN) is NaN.
@rule
def relu_from_select(x: Tensor) -> Law:
    """select(0 < x, x, 0) = relu(x)"""
    return rewrites(select(binary("lt", 0.0, x), x, 0.0), unary("relu", x))


# x = 1.0, y = 1.0 (f32): -(1 - 1) = -0.0; 1 - 1 = 0.0.
@rule
def negated_difference(x: Tensor, y: Tensor) -> Law:
    """-(x - y) = y - x"""
    return rewrites(unary("neg", binary("sub", x, y)), binary("sub", y, x))


# x = 0.0 (f32): -x = -0.0; 0 - 0.0 = 0.0.
@rule
def negation_as_difference(x: Tensor) -> Law:
    """-x = 0 - x"""
    return rewrites(unary("neg", x), binary("sub", 0, x))


# x = -0.0 (f32): sign(-0.0) is 0.0, abs(-0.0) is 0.0, their product 0.0 and not -0.0.
@rule
def sign_times_size(x: Tensor) -> Law:
    """sign(x) * abs(x) = x"""
    return rewrites(binary("mul", unary("sign", x), unary("abs", x)), x)


# x = 0.5 (f32): rint(0.5) = 0.0 (to even); floor(0.5 + 0.5) = 1.0.
@rule
def round_from_floor(x: Tensor) -> Law:
    """round(x) = floor(x + 0.5)"""
    return rewrites(unary("round", x), unary("floor", binary("add", x, 0.5)))


# x = 0.0, y = -0.0 (f32): they are equal, so the left side is x = 0.0; the right side is -0.0.
@rule
def select_of_equals(x: Tensor, y: Tensor) -> Law:
    """select(x == y, x, y) = y"""
    return rewrites(select(binary("eq", x, y), x, y), y)


# x = 1.0, y = NaN (f32): max is NaN; 1 < NaN is false, so the right side is 1.0.
@rule
def max_as_select(x: Tensor, y: Tensor) -> Law:
    """max(x, y) = select(x < y, y, x), on floats"""
    return rewrites(binary("max", x, y), select(binary("lt", x, y), y, x), x.type.dtype.is_float)


@attribute_function
def bounded_part(f: BinaryFn) -> BinaryFn:
    """min for max and the other way round."""
    return BinaryFn({"max": "min", "min": "max"}.get(f.name, f.name))


@attribute_function
def is_bound(f: BinaryFn) -> bool:
    return f.name in ("max", "min")


# f = max, x = 1.0, y = NaN (f32): min(1, NaN) = NaN, max(1, NaN) = NaN; the right side is 1.0.
@rule
def absorb_bound(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """max(x, min(x, y)) = x and min(x, max(x, y)) = x"""
    return rewrites(binary(f, x, binary(bounded_part(f), x, y)), x, is_bound(f))


# x = inf, y = -inf, z = inf (f32): max(x, y) + z = inf; max(inf + inf, -inf + inf) = max(inf, NaN)
# is NaN. (i8: x = 127, y = 0, z = 1: -128 on the left, max(-128, 1) = 1 on the right.)
@rule
def add_over_max(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """max(x, y) + z = max(x + z, y + z), on floats"""
    return equates(
        binary("add", binary("max", x, y), z),
        binary("max", binary("add", x, z), binary("add", y, z)),
        z.type.dtype.is_float,
    )


@attribute_function
def keeps_nan(f: UnaryFn) -> bool:
    """Whether f(x) is NaN just where x is."""
    return f.name in ("exp", "tanh", "atan", "sin", "cos", "neg", "abs")


# f = sin, x = inf (f32): sin(inf) is NaN, so the left side is true; isnan(inf) is false.
@rule
def nan_through_function(f: UnaryFn, x: Tensor) -> Law:
    """isnan(f(x)) = isnan(x), for functions that are defined everywhere"""
    return rewrites(unary("isnan", unary(f, x)), unary("isnan", x), keeps_nan(f))
