"""Lowerings of activation functions, as their definitions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from math import pi, sqrt

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, computed_wide, lowering


def activation(op_type: str, is_wide: bool = True) -> Callable[[Callable[..., Value]], None]:
    """Register a formula of x. Its other parameters are attributes, with their defaults.

    One that `is_wide` computes f16 and bf16 in f32.
    """

    def register(formula: Callable[..., Value]) -> None:
        _, *others = signature(formula).parameters.values()

        def lower(node: Context) -> int:
            numbers = (node.number(each.name, each.default) for each in others)
            return formula(node.tensor(0), *numbers).index

        lowering(op_type)(computed_wide(lower) if is_wide else lower)

    return register


@activation("LeakyRelu", is_wide=False)
def leaky_relu(x: Value, alpha: float = 0.01) -> Value:
    """alpha·x where x < 0, else x"""
    return (x * alpha).where(x < 0, x)


@lowering("PRelu")
def parametric_relu(node: Context) -> int:
    """slope·x where x < 0, else x"""
    x = node.tensor(0)
    return (x.like(node.tensor(1)) * x).where(x < 0, x).index


@activation("ThresholdedRelu", is_wide=False)
def thresholded_relu(x: Value, alpha: float = 1.0) -> Value:
    """x where x > alpha, else 0"""
    return x.where(x > alpha, 0)


@activation("Elu")
def elu(x: Value, alpha: float = 1.0) -> Value:
    """alpha·(exp(x) - 1) where x < 0, else x"""
    return ((x.unary("exp") - 1) * alpha).where(x < 0, x)


@activation("Selu")
def selu(
    x: Value, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Value:
    """gamma·(alpha·exp(x) - alpha) where x <= 0, else gamma·x"""
    return ((x.unary("exp") * alpha - alpha) * gamma).where(x <= 0, x * gamma)


@activation("Celu")
def celu(x: Value, alpha: float = 1.0) -> Value:
    """max(x, 0) + min(0, alpha·(exp(x / alpha) - 1))"""
    low = ((x / alpha).unary("exp") - 1) * alpha
    return x.binary("max", 0) + low.binary("min", 0)


@activation("HardSigmoid")
def hard_sigmoid(x: Value, alpha: float = 0.2, beta: float = 0.5) -> Value:
    """max(0, min(1, alpha·x + beta))"""
    return (x * alpha + beta).clipped(1)


@activation("HardSwish")
def hard_swish(x: Value) -> Value:
    """x · max(0, min(1, x/6 + 1/2))"""
    return x * (x * (1 / 6) + 0.5).clipped(1)


@activation("Softplus")
def softplus(x: Value) -> Value:
    """log(1 + exp(x)) as max(x, 0) + log(1 + e) with e = exp(-|x|).

    Where e is small, 1 + e rounds to 1: log(1 + e) is 2·atanh(e / (e + 2)).
    """
    fading = (-abs(x)).unary("exp")
    rest = (fading / (fading + 2)).unary("atanh") * 2
    return x.binary("max", 0) + rest


@activation("Softsign")
def softsign(x: Value) -> Value:
    """x / (1 + |x|)"""
    return x / (abs(x) + 1)


@activation("Mish")
def mish(x: Value) -> Value:
    """x · tanh(log(1 + e)) with e = exp(x), which is x · n / (n + 2) with n = e·(e + 2).

    Beyond 20 the quotient is 1 in every type, and n does not overflow up to there.
    """
    grown = x.binary("min", 20).unary("exp")
    above = grown * (grown + 2)
    return x * (above / (above + 2))


@lowering("Swish")
@computed_wide
def swish(node: Context) -> int:
    """x · sigmoid(alpha·x)"""
    x = node.tensor(0)
    inner = x * node.number("alpha", 1.0) if node.has("alpha") else x
    return (x * inner.unary("sigmoid")).index


@activation("Shrink", is_wide=False)
def shrink(x: Value, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """x + bias where x < -lambd, x - bias where x > lambd, else 0"""
    inner = (x - bias).where(x > lambd, 0)
    return (x + bias).where(x < -lambd, inner)


@lowering("Gelu")
@computed_wide
def gelu(node: Context) -> int:
    """x/2 · (1 + erf(x/√2)), or with tanh(√(2/π)·(x + 0.044715·x³)) in erf's place"""
    x = node.tensor(0)
    if node.text("approximate", "none") == "tanh":
        curve = ((x + x * x * x * 0.044715) * sqrt(2 / pi)).unary("tanh")
    else:
        curve = (x / sqrt(2)).unary("erf")
    return (x * 0.5 * (curve + 1)).index
