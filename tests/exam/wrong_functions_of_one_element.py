"""Laws of functions of one element, all of them wrong."""

from satura.language import (
    Law,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    rewrites,
    rule,
    select,
    unary,
)


# i8, x = [12]: 12 * 12 = 144 wraps to -112; left abs(-112) = 112, right -112.
@rule
def abs_of_square(x: Tensor) -> Law:
    """abs(x * x) = x * x: a square is never negative"""
    return rewrites(unary("abs", binary("mul", x, x)), binary("mul", x, x))


# f32, x = y = [1.0]: left neg(0.0) = -0.0, right 1 - 1 = 0.0.
@rule
def negated_difference(x: Tensor, y: Tensor) -> Law:
    """-(x - y) = y - x, on floats, which do not wrap"""
    return rewrites(unary("neg", binary("sub", x, y)), binary("sub", y, x), x.type.dtype.is_float)


# f32, x = [1e-30]: x * x underflows to 0, left 0.0, right 1e-30 (and 1e30 gives inf).
@rule
def sqrt_of_square(x: Tensor) -> Law:
    """sqrt(x * x) = abs(x)"""
    return rewrites(unary("sqrt", binary("mul", x, x)), unary("abs", x))


# f32, x = [-1.0]: log gives NaN, so left is NaN, right -1.0.
@rule(reassociates=True)
def exp_of_log(x: Tensor) -> Law:
    """exp(log(x)) = x, up to rounding"""
    return rewrites(unary("exp", unary("log", x)), x)


@attribute_function
def is_odd(f: UnaryFn) -> bool:
    """Whether f(-x) = -f(x)."""
    return f.name in ("sign", "round", "floor", "ceil")


# floor, f32, x = [0.5]: left floor(-0.5) = -1, right -floor(0.5) = -0.0.
@rule
def negate_after_odd(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = -f(x), for sign and the roundings"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(f, x)), is_odd(f))


# f32, x = [2.5]: left 2.0 (to even), right floor(3.0) = 3.0.
@rule
def round_by_floor(x: Tensor) -> Law:
    """round(x) = floor(x + 1/2)"""
    return rewrites(unary("round", x), unary("floor", binary("add", x, 0.5)))


# f32, x = [-0.0]: sign(-0.0) is 0.0, abs(-0.0) is 0.0: left 0.0 * 0.0 = 0.0, right -0.0.
@rule
def sign_times_magnitude(x: Tensor) -> Law:
    """sign(x) * abs(x) = x"""
    return rewrites(binary("mul", unary("sign", x), unary("abs", x)), x)


# i32 (or bool), x = [1]: the left side is typed (eq takes all), isnan takes floats alone.
@rule
def unequal_to_itself(x: Tensor) -> Law:
    """not(x == x) = isnan(x)"""
    return rewrites(unary("not", binary("eq", x, x)), unary("isnan", x))


# f32, x = [1.0]: left 0.7616, right 2 * 0.7311 - 1 = 0.4621: the doubled argument is forgotten.
@rule(reassociates=True)
def tanh_by_sigmoid(x: Tensor) -> Law:
    """tanh(x) = 2 * sigmoid(x) - 1, up to rounding"""
    return rewrites(unary("tanh", x), binary("sub", binary("mul", unary("sigmoid", x), 2.0), 1.0))


# f32, x = [nan]: left NaN (relu keeps it), right select(NaN > 0 is false) gives 0.0.
@rule
def relu_as_select(x: Tensor) -> Law:
    """relu(x) = x where 0 < x, else 0"""
    return rewrites(unary("relu", x), select(binary("lt", 0, x), x, 0))
