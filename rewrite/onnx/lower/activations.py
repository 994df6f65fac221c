"""Lowerings of activation functions, as their definitions."""

from __future__ import annotations

from math import pi, sqrt

from satura.rewrite.onnx.lower.context import Context, computed_wide, lowering
from satura.rewrite.onnx.lower.tensors import Tensors


@lowering("LeakyRelu")
def leaky_relu(node: Context) -> int:
    """alpha·x where x < 0, else x"""
    build, x = node.build, node[0]
    scaled = build.apply_number("mul", x, node.number("alpha", 0.01))
    return build.select(_negative(build, x), scaled, x)


@lowering("PRelu")
def parametric_relu(node: Context) -> int:
    """slope·x where x < 0, else x"""
    build, x = node.build, node[0]
    scaled = build.binary("mul", build.expand(node[1], build.shape(x)), x)
    return build.select(_negative(build, x), scaled, x)


@lowering("ThresholdedRelu")
def thresholded_relu(node: Context) -> int:
    """x where x > alpha, else 0"""
    build, x = node.build, node[0]
    above = build.binary("lt", build.number(node.number("alpha", 1.0), x), x)
    return build.select(above, x, build.number(0, x))


@lowering("Elu")
@computed_wide
def elu(node: Context) -> int:
    """alpha·(exp(x) - 1) where x < 0, else x"""
    build, x = node.build, node[0]
    grown = build.apply_number("sub", build.unary("exp", x), 1)
    low = build.apply_number("mul", grown, node.number("alpha", 1.0))
    return build.select(_negative(build, x), low, x)


@lowering("Selu")
@computed_wide
def selu(node: Context) -> int:
    """gamma·(alpha·exp(x) - alpha) where x <= 0, else gamma·x"""
    build, x = node.build, node[0]
    alpha, gamma = (
        node.number("alpha", 1.67326319217681884765625),
        node.number("gamma", 1.05070102214813232421875),
    )
    scaled = build.apply_number("mul", build.unary("exp", x), alpha)
    low = build.apply_number("mul", build.apply_number("sub", scaled, alpha), gamma)
    at_most_zero = build.binary("le", x, build.number(0, x))
    return build.select(at_most_zero, low, build.apply_number("mul", x, gamma))


@lowering("Celu")
@computed_wide
def celu(node: Context) -> int:
    """max(x, 0) + min(0, alpha·(exp(x / alpha) - 1))"""
    build, x = node.build, node[0]
    alpha = node.number("alpha", 1.0)
    grown = build.unary("exp", build.apply_number("div", x, alpha))
    low = build.apply_number("mul", build.apply_number("sub", grown, 1), alpha)
    return build.binary("add", build.apply_number("max", x, 0), build.apply_number("min", low, 0))


@lowering("HardSigmoid")
@computed_wide
def hard_sigmoid(node: Context) -> int:
    """max(0, min(1, alpha·x + beta))"""
    return _hard_sigmoid(node.build, node[0], node.number("alpha", 0.2), node.number("beta", 0.5))


@lowering("HardSwish")
@computed_wide
def hard_swish(node: Context) -> int:
    """x · max(0, min(1, x/6 + 1/2))"""
    return node.build.binary("mul", node[0], _hard_sigmoid(node.build, node[0], 1 / 6, 0.5))


def _hard_sigmoid(build: Tensors, x: int, alpha: float, beta: float) -> int:
    line = build.apply_number("add", build.apply_number("mul", x, alpha), beta)
    return build.apply_number("max", build.apply_number("min", line, 1), 0)


@lowering("Softplus")
@computed_wide
def softplus(node: Context) -> int:
    """log(1 + exp(x)) as max(x, 0) + log(1 + e) with e = exp(-|x|).

    Where e is small, 1 + e rounds to 1: log(1 + e) is 2·atanh(e / (e + 2)).
    """
    build, x = node.build, node[0]
    fading = build.unary("exp", build.unary("neg", build.unary("abs", x)))
    ratio = build.binary("div", fading, build.apply_number("add", fading, 2))
    rest = build.apply_number("mul", build.unary("atanh", ratio), 2)
    return build.binary("add", build.apply_number("max", x, 0), rest)


@lowering("Softsign")
@computed_wide
def softsign(node: Context) -> int:
    """x / (1 + |x|)"""
    build, x = node.build, node[0]
    return build.binary("div", x, build.apply_number("add", build.unary("abs", x), 1))


@lowering("Mish")
@computed_wide
def mish(node: Context) -> int:
    """x · tanh(log(1 + e)) with e = exp(x), which is x · n / (n + 2) with n = e·(e + 2).

    Beyond 20 the quotient is 1 in every type, and n does not overflow up to there.
    """
    build, x = node.build, node[0]
    grown = build.unary("exp", build.apply_number("min", x, 20))
    above = build.binary("mul", grown, build.apply_number("add", grown, 2))
    below = build.apply_number("add", above, 2)
    return build.binary("mul", x, build.binary("div", above, below))


@lowering("Swish")
@computed_wide
def swish(node: Context) -> int:
    """x · sigmoid(alpha·x)"""
    build, x = node.build, node[0]
    inner = build.apply_number("mul", x, node.number("alpha", 1.0)) if node.has("alpha") else x
    return build.binary("mul", x, build.unary("sigmoid", inner))


@lowering("Shrink")
def shrink(node: Context) -> int:
    """x + bias where x < -lambd, x - bias where x > lambd, else 0"""
    build, x = node.build, node[0]
    bias, bound = node.number("bias"), node.number("lambd", 0.5)
    high = build.binary("lt", build.number(bound, x), x)
    low = build.binary("lt", x, build.number(-bound, x))
    inner = build.select(high, build.apply_number("sub", x, bias), build.number(0, x))
    return build.select(low, build.apply_number("add", x, bias), inner)


@lowering("Gelu")
@computed_wide
def gelu(node: Context) -> int:
    """x/2 · (1 + erf(x/√2)), or with tanh(√(2/π)·(x + 0.044715·x³)) in erf's place"""
    build, x = node.build, node[0]
    if node.text("approximate", "none") == "tanh":
        cubed = build.binary("mul", build.binary("mul", x, x), x)
        inner = build.binary("add", x, build.apply_number("mul", cubed, 0.044715))
        curve = build.unary("tanh", build.apply_number("mul", inner, sqrt(2 / pi)))
    else:
        curve = build.unary("erf", build.apply_number("div", x, sqrt(2)))
    half = build.apply_number("mul", x, 0.5)
    return build.binary("mul", half, build.apply_number("add", curve, 1))


def _negative(build: Tensors, x: int) -> int:
    return build.binary("lt", x, build.number(0, x))
