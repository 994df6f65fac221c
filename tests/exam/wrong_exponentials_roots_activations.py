"""Laws of exponentials, roots, powers and activations, all of them wrong."""

from satura.language import (
    Approximate,
    Axes,
    Law,
    Scalar,
    Shape,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    reduce,
    reshape,
    rewrites,
    rule,
    unary,
)


@attribute_function
def is_odd(f: UnaryFn) -> bool:
    return f.name in ("sin", "tan", "tanh", "sinh", "cosh", "asin", "atan", "asinh", "atanh", "erf")


# f32: x = -1: log(-1) = NaN, so NaN; the right side is -1.
@rule(reassociates=True)
def exp_of_log(x: Tensor) -> Law:
    """exp(log(x)) = x, up to rounding"""
    return rewrites(unary("exp", unary("log", x)), x)


# f32: x = -1000: exp = 0, log(0) = -inf; the right side is -1000.
@rule(reassociates=True)
def log_of_exp(x: Approximate) -> Law:
    """log(exp(x)) = x, up to rounding"""
    return rewrites(unary("log", unary("exp", x)), x)


# f32: x = y = -1: sqrt(-1) * sqrt(-1) = NaN; sqrt(1) = 1.
@rule(reassociates=True)
def product_of_roots(x: Tensor, y: Tensor) -> Law:
    """sqrt(x) * sqrt(y) = sqrt(x * y), up to rounding"""
    return rewrites(
        binary("mul", unary("sqrt", x), unary("sqrt", y)), unary("sqrt", binary("mul", x, y))
    )


# f32: x = -inf: pow(-inf, 0.5) = inf; sqrt(-inf) = NaN.
@rule(reassociates=True)
def pow_as_root(x: Tensor) -> Law:
    """pow(x, 0.5) = sqrt(x), up to rounding"""
    return rewrites(binary("pow", x, 0.5), unary("sqrt", x))


# f32: x = y = -1: log(1) = 0; log(-1) + log(-1) = NaN.
@rule(reassociates=True)
def log_of_product(x: Tensor, y: Tensor) -> Law:
    """log(x * y) = log(x) + log(y), up to rounding"""
    return rewrites(
        unary("log", binary("mul", x, y)), binary("add", unary("log", x), unary("log", y))
    )


# f32: x = -2, a = 2, b = 0.5: pow(4, 0.5) = 2; pow(-2, 1) = -2.
@rule(reassociates=True)
def power_of_power(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """pow(pow(x, a), b) = pow(x, a * b) on floats, up to rounding"""
    return rewrites(
        binary(
            "pow", binary("pow", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("pow", x, broadcast(reshape(binary("mul", a, b), ones), s)),
        x.type.dtype.is_float,
    )


# f32: x = 20: sigmoid(-20) = 2.06e-9; sigmoid(20) rounds to 1, so 1 - 1 = 0. Not marked as rounded.
@rule
def sigmoid_of_negation(x: Tensor) -> Law:
    """sigmoid(-x) = 1 - sigmoid(x)"""
    return rewrites(unary("sigmoid", unary("neg", x)), binary("sub", 1.0, unary("sigmoid", x)))


# f = cosh, f32: x = 1: cosh(-1) = 1.54; -cosh(1) = -1.54: cosh is even.
@rule(reassociates=True)
def odd_function(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = -f(x) for an odd f, up to rounding"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(f, x)), is_odd(f))


# f32: x = 1000: the left side is finite, 1000 + log(1) = 1000; the right one log(inf) = inf.
@rule(reassociates=True)
def short_softplus(x: Tensor) -> Law:
    """relu(x) + log(1 + exp(-abs(x))) = log(1 + exp(x)), up to rounding"""
    return rewrites(
        binary(
            "add",
            unary("relu", x),
            unary("log", binary("add", 1.0, unary("exp", unary("neg", unary("abs", x))))),
        ),
        unary("log", binary("add", 1.0, unary("exp", x))),
    )


# f64: x = 1: erf(0.7071067811865476) = 0.6827; tanh(0.7978845608) = 0.6622: far more than rounding.
@rule(reassociates=True)
def erf_by_tanh(x: Tensor) -> Law:
    """erf(x * 0.7071067811865476) = tanh(x * 0.7978845608028654), as in gelu, up to rounding"""
    return rewrites(
        unary("erf", binary("mul", x, 0.7071067811865476)),
        unary("tanh", binary("mul", x, 0.7978845608028654)),
    )


# f32[2], axis 0: x = [1000, 0]: exp([0, -1000]) / 1 = [1, 0]; exp(1000) / inf = NaN.
@rule(reassociates=True)
def softmax_without_max(x: Tensor, a: Axes, s: Shape) -> Law:
    """exp(x - max(x)) / sum(exp(x - max(x))) = exp(x) / sum(exp(x)), up to rounding"""
    e = unary("exp", binary("sub", x, broadcast(reduce("max", x, a), s)))
    plain = unary("exp", x)
    return rewrites(
        binary("div", e, broadcast(reduce("sum", e, a), s)),
        binary("div", plain, broadcast(reduce("sum", plain, a), s)),
    )
