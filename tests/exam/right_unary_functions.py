"""Laws of unary functions, all of them right."""

import typing

from satura.language import (
    Law,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    both,
    rewrites,
    rule,
    unary,
)


@rule
def abs_of_negation(x: Tensor) -> Law:
    """abs(neg(x)) = abs(x), where there are negative numbers; the least integer stays itself"""
    return rewrites(unary("abs", unary("neg", x)), unary("abs", x), x.type.dtype.is_signed)


@attribute_function
def is_idempotent(f: UnaryFn) -> bool:
    """Whether f(f(x)) = f(x)."""
    return f.name in ("abs", "relu", "sign", "floor", "ceil", "round")


@rule
def apply_once(f: UnaryFn, x: Tensor) -> Law:
    """f(f(x)) = f(x), for idempotent functions"""
    return rewrites(unary(f, unary(f, x)), unary(f, x), is_idempotent(f))


@rule
def floor_and_ceil(x: Tensor) -> Law:
    """floor(neg(x)) = neg(ceil(x)), and neg(floor(x)) = ceil(neg(x))"""
    return both(
        rewrites(unary("floor", unary("neg", x)), unary("neg", unary("ceil", x))),
        rewrites(unary("neg", unary("floor", x)), unary("ceil", unary("neg", x))),
    )


@attribute_function
def is_odd(f: UnaryFn) -> bool:
    """Whether f(-x) = -f(x), up to rounding and the sign of zeros."""
    return f.name in (
        "tanh",
        "erf",
        "sin",
        "tan",
        "asin",
        "atan",
        "sinh",
        "asinh",
        "atanh",
        "round",
    )


@rule(reassociates=True)
def negation_out_of_odd(f: UnaryFn, x: Tensor) -> Law:
    """f(neg(x)) = neg(f(x)), for odd functions"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(f, x)), is_odd(f))


@attribute_function
def is_even(f: UnaryFn) -> bool:
    """Whether f(-x) = f(x)."""
    return f.name in ("cos", "cosh", "isnan", "isinf")


@rule(reassociates=True)
def drop_abs_under_even(f: UnaryFn, x: Tensor) -> Law:
    """f(abs(x)) = f(x), for even functions"""
    return rewrites(unary(f, unary("abs", x)), unary(f, x), is_even(f))


@attribute_function
def is_total(f: UnaryFn) -> bool:
    """Whether f gives NaN for NaN, and for nothing else."""
    return f.name in (
        "neg",
        "abs",
        "relu",
        "sign",
        "floor",
        "ceil",
        "round",
        "exp",
        "tanh",
        "sigmoid",
        "erf",
        "atan",
        "sinh",
        "cosh",
        "asinh",
    )


@rule
def nan_of_total(f: UnaryFn, x: Tensor) -> Law:
    """isnan(f(x)) = isnan(x), for functions that give NaN for NaN alone"""
    return rewrites(unary("isnan", unary(f, x)), unary("isnan", x), is_total(f))


@rule
def relu_is_maximum(x: Tensor) -> Law:
    """max(x, 0) = relu(x): of -0.0 and 0.0 the larger is 0.0"""
    return rewrites(binary("max", x, 0), unary("relu", x))


@rule
def sign_of_unsigned(x: Tensor) -> Law:
    """sign(x) = min(x, 1), for unsigned integers"""
    return rewrites(
        unary("sign", x),
        binary("min", x, 1),
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_signed),
    )
