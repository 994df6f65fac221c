"""Laws of unary functions and roundings, all of them wrong."""

from satura.language import DType, Law, Tensor, binary, cast, rewrites, rule, select, unary


# f32[1] x = y = [1.0]: the left side is -(1.0 - 1.0) = -0.0, the right side 1.0 - 1.0 = 0.0.
@rule
def negated_difference(x: Tensor, y: Tensor) -> Law:
    """neg(x - y) = y - x"""
    return rewrites(unary("neg", binary("sub", x, y)), binary("sub", y, x))


# f32[1] x = [-0.0]: -0.0 + 0.0 is 0.0, the right side -0.0.
@rule
def drop_added_zero(x: Tensor) -> Law:
    """x + 0.0 = x"""
    return rewrites(binary("add", x, 0.0), x)


# f32[1] x = [inf]: inf - inf is NaN, isnan(inf) is false, so the right side is 0.0.
@rule
def difference_with_itself(x: Tensor) -> Law:
    """x - x = 0.0, but NaN where x is"""
    return rewrites(binary("sub", x, x), select(unary("isnan", x), x, 0.0), x.type.dtype.is_float)


# f32[1] x = [NaN]: relu(NaN) is NaN; 0 < NaN is false, so the right side is 0.0.
@rule
def relu_by_choice(x: Tensor) -> Law:
    """relu(x) = x where 0 < x, else 0"""
    return rewrites(unary("relu", x), select(binary("lt", 0, x), x, 0))


# u8[1] x = [1]: abs(1) = 1; neg(1) wraps to 255, and max(1, 255) = 255.
@rule
def abs_as_maximum(x: Tensor) -> Law:
    """abs(x) = max(x, neg(x))"""
    return rewrites(unary("abs", x), binary("max", x, unary("neg", x)))


# f32[1] x = [NaN]: sign(NaN) is NaN; both comparisons are false, so the right side is 0.0.
@rule
def sign_from_comparisons(x: Tensor) -> Law:
    """sign(x) = (0 < x) - (x < 0), for what has a sign"""
    t = x.type.dtype
    return rewrites(
        unary("sign", x),
        binary("sub", cast(binary("lt", 0, x), t), cast(binary("lt", x, 0), t)),
        t.is_signed,
    )


# f32[1] x = [1e-30]: x * x underflows to 0.0, its root is 0.0; abs(x) = 1e-30.
@rule
def root_of_square(x: Tensor) -> Law:
    """sqrt(x * x) = abs(x)"""
    return rewrites(unary("sqrt", binary("mul", x, x)), unary("abs", x))


# f32[1] x = [0.5]: round is to even, so 0.0; floor(0.5 + 0.5) = 1.0.
@rule
def round_by_floor(x: Tensor) -> Law:
    """round(x) = floor(x + 0.5)"""
    return rewrites(unary("round", x), unary("floor", binary("add", x, 0.5)))


# f32[1] x = [1.5]: floor(-1.5) = -2.0; -floor(1.5) = -1.0.
@rule
def negation_out_of_floor(x: Tensor) -> Law:
    """floor(neg(x)) = neg(floor(x))"""
    return rewrites(unary("floor", unary("neg", x)), unary("neg", unary("floor", x)))


# f32[1] x = [1e10]: the cast to i32 saturates, so the left side is 2147483648.0; the right side is
# 1e10. (x = [NaN]: 0.0 and NaN.)
@rule
def floor_of_positive_by_casts(x: Tensor) -> Law:
    """cast(cast(relu(x), i32)) = floor(relu(x)): truncation is floor where nothing is negative"""
    positive = unary("relu", x)
    return rewrites(
        cast(cast(positive, DType.I32), x.type.dtype),
        unary("floor", positive),
        x.type.dtype.is_float,
    )
