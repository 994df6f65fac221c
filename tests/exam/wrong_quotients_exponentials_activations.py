"""Laws of quotients, exponentials, logarithms, powers and activations, all of them wrong."""

from satura.language import Constant, Law, Tensor, binary, constant, rewrites, rule, unary


# f32[1] x = [5.0], c = [3.0]: 5 / 3 rounds to 1.6666666, 5 * fl(1 / 3) to 1.6666667.
@rule
def divide_by_reciprocal(x: Tensor, c: Constant) -> Law:
    """x / c = x * (1 / c), for constants of floats"""
    return rewrites(
        binary("div", x, constant(c)),
        binary("mul", x, binary("div", 1.0, constant(c))),
        c.type.dtype.is_float,
    )


# i8[1] x = [100], y = [16], z = [17]: 100 / 16 = 6, 6 / 17 = 0; 16 * 17 wraps to 16, 100 / 16 = 6.
@rule
def merge_divisions(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x / y) / z = x / (y * z), for integers"""
    return rewrites(
        binary("div", binary("div", x, y), z),
        binary("div", x, binary("mul", y, z)),
        x.type.dtype.is_integer,
    )


# f32[1] x = [0.3]: the rounded square of a rounded exp is not the rounded exp of 0.6.
@rule
def square_of_exp(x: Tensor) -> Law:
    """exp(x) * exp(x) = exp(x + x)"""
    e = unary("exp", x)
    return rewrites(binary("mul", e, e), unary("exp", binary("add", x, x)))


# f32[1] x = y = [-2.0]: log(4) = 1.386; log(-2) + log(-2) is NaN.
@rule(reassociates=True)
def log_of_product(x: Tensor, y: Tensor) -> Law:
    """log(x * y) = log(x) + log(y)"""
    return rewrites(
        unary("log", binary("mul", x, y)), binary("add", unary("log", x), unary("log", y))
    )


# f32[1] x = [-1000.0]: exp gives 0.0 and log(0) is -inf; the right side is -1000.0.
@rule(reassociates=True)
def log_undoes_exp(x: Tensor) -> Law:
    """log(exp(x)) = x"""
    return rewrites(unary("log", unary("exp", x)), x)


# f32[1] x = y = [-2.0]: the root of -2 is NaN, and so is the left side; the root of 4 is 2.0.
@rule(reassociates=True)
def merge_roots(x: Tensor, y: Tensor) -> Law:
    """sqrt(x) * sqrt(y) = sqrt(x * y)"""
    return rewrites(
        binary("mul", unary("sqrt", x), unary("sqrt", y)), unary("sqrt", binary("mul", x, y))
    )


# f32[1] x = [-2.0], y = [2.0]: pow gives 4.0; log(-2) is NaN.
@rule(reassociates=True)
def power_by_exp(x: Tensor, y: Tensor) -> Law:
    """pow(x, y) = exp(y * log(x)), for floats"""
    return rewrites(
        binary("pow", x, y),
        unary("exp", binary("mul", y, unary("log", x))),
        x.type.dtype.is_float,
    )


# f32[1] x = [1.0]: sigmoid(1) = 0.731; 0.5 * (tanh(1) + 1) = 0.881. (tanh(x / 2) would be right.)
@rule(reassociates=True)
def sigmoid_by_tanh(x: Tensor) -> Law:
    """sigmoid(x) = 0.5 * (tanh(x) + 1)"""
    return rewrites(unary("sigmoid", x), binary("mul", 0.5, binary("add", unary("tanh", x), 1.0)))


# f32[1] x = [20.0]: sigmoid(20) rounds to 1.0, so the left side is 0.0; the right side is 2.06e-09.
@rule
def complement_of_sigmoid(x: Tensor) -> Law:
    """1 - sigmoid(x) = sigmoid(neg(x))"""
    return rewrites(binary("sub", 1.0, unary("sigmoid", x)), unary("sigmoid", unary("neg", x)))


# f32[1] x = [1000.0]: tanh gives 1.0; exp(1000) is inf, and inf / inf is NaN.
@rule(reassociates=True)
def tanh_by_exp(x: Tensor) -> Law:
    """tanh(x) = (exp(x) - exp(neg(x))) / (exp(x) + exp(neg(x)))"""
    e, i = unary("exp", x), unary("exp", unary("neg", x))
    return rewrites(unary("tanh", x), binary("div", binary("sub", e, i), binary("add", e, i)))
