"""Laws of functions up to rounding, all of them right."""

from satura.language import (
    Approximate,
    Law,
    Scalar,
    Shape,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    reshape,
    rewrites,
    rule,
    unary,
)

ODD = ("sin", "tan", "tanh", "sinh", "asin", "atan", "asinh", "atanh", "erf")


@attribute_function
def is_odd(f: UnaryFn) -> bool:
    return f.name in ODD


@attribute_function
def is_even(f: UnaryFn) -> bool:
    return f.name in ("cos", "cosh")


@attribute_function
def is_moderate(c: Scalar) -> bool:
    return c.type.dtype.is_float and abs(float(c.value)) <= 16


@attribute_function
def is_moderate_factor(c: Scalar) -> bool:
    return c.type.dtype.is_float and 1 / 16 <= abs(float(c.value)) <= 16


@rule(reassociates=True)
def tanh_by_sigmoid(x: Tensor) -> Law:
    """tanh(x) = sigmoid(x * 2) * 2 - 1, up to rounding"""
    return rewrites(
        unary("tanh", x),
        binary("sub", binary("mul", unary("sigmoid", binary("mul", x, 2.0)), 2.0), 1.0),
    )


@rule(reassociates=True)
def sigmoid_of_negation(x: Approximate) -> Law:
    """sigmoid(-x) = 1 - sigmoid(x), up to rounding"""
    return rewrites(unary("sigmoid", unary("neg", x)), binary("sub", 1.0, unary("sigmoid", x)))


@rule(reassociates=True)
def swish_as_quotient(x: Tensor) -> Law:
    """x * sigmoid(x) = x / (1 + exp(-x)), up to rounding"""
    return rewrites(
        binary("mul", x, unary("sigmoid", x)),
        binary("div", x, binary("add", 1.0, unary("exp", unary("neg", x)))),
    )


@rule(reassociates=True)
def odd_function(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = -f(x) for an odd f, up to rounding"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(f, x)), is_odd(f))


@rule(reassociates=True)
def even_function(f: UnaryFn, x: Tensor) -> Law:
    """f(abs(x)) = f(x) for an even f, up to rounding"""
    return rewrites(unary(f, unary("abs", x)), unary(f, x), is_even(f))


@rule(reassociates=True)
def log_of_root(x: Tensor) -> Law:
    """log(sqrt(x)) = log(x) * 0.5, up to rounding"""
    return rewrites(unary("log", unary("sqrt", x)), binary("mul", unary("log", x), 0.5))


@rule(reassociates=True)
def quotient_by_root(x: Tensor, y: Tensor) -> Law:
    """x / sqrt(y) = x * (1 / sqrt(y)), up to rounding"""
    root = unary("sqrt", y)
    return rewrites(binary("div", x, root), binary("mul", x, binary("div", 1.0, root)))


@rule(reassociates=True)
def sine_over_cosine(x: Tensor) -> Law:
    """sin(x) / cos(x) = tan(x), up to rounding"""
    return rewrites(binary("div", unary("sin", x), unary("cos", x)), unary("tan", x))


@rule(reassociates=True)
def exp_of_negation(x: Tensor) -> Law:
    """exp(-x) = 1 / exp(x), up to rounding"""
    return rewrites(unary("exp", unary("neg", x)), binary("div", 1.0, unary("exp", x)))


@rule(reassociates=True)
def fold_batch_norm(x: Tensor, m: Scalar, c: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x - m) * c + b = x * c + (b - m * c), up to rounding, for moderate constants"""
    return rewrites(
        binary(
            "add",
            binary(
                "mul",
                binary("sub", x, broadcast(reshape(m, ones), s)),
                broadcast(reshape(c, ones), s),
            ),
            broadcast(reshape(b, ones), s),
        ),
        binary(
            "add",
            binary("mul", x, broadcast(reshape(c, ones), s)),
            broadcast(reshape(binary("sub", b, binary("mul", m, c)), ones), s),
        ),
        is_moderate(m),
        is_moderate_factor(c),
        is_moderate(b),
    )
