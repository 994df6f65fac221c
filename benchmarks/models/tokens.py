"""Layers of transformers over the last axis, in the parts that exporters write them in."""

from __future__ import annotations

import numpy as np

from .layers import ConvWriter


class TokenWriter(ConvWriter):
    """A ConvWriter with layers over tokens [batch, tokens, width]."""

    def reshaped(self, x: str, *shape: int) -> str:
        """A Reshape to constant extents; -1 stands for what is left."""
        return self.node("Reshape", x, self.integers(*shape))

    def transposed(self, x: str, *perm: int) -> str:
        return self.node("Transpose", x, perm=list(perm))

    def sliced(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        """A Slice of one axis."""
        bounds = (start, end, axis, step)
        return self.node("Slice", x, *(self.integers(bound) for bound in bounds))

    def layer_norm(self, x: str, width: int, epsilon: float = 1e-5, fused: bool = False) -> str:
        """Normalisation over the last axis, then a scale and shift; in parts unless `fused`."""
        scale = self.constant(self.uniform((width,), 0.8, 1.2), "scale")
        shift = self.constant(self.normal((width,), 0.1), "shift")
        if fused:
            operands = (x, scale, shift)
            return self.node("LayerNormalization", *operands, axis=-1, epsilon=epsilon, power=1.0)
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        squared = self.node("Pow", centred, self.scalar(2.0))
        variance = self.node("ReduceMean", squared, axes=[-1])
        deviation = self.node("Sqrt", self.node("Add", variance, self.scalar(epsilon)))
        normal = self.node("Div", centred, deviation, power=1.0)
        return self.add(self.mul(normal, scale), shift)

    def gelu(self, x: str) -> str:
        """x (1 + erf(x / sqrt 2)) / 2"""
        erf = self.node("Erf", self.node("Div", x, self.scalar(float(np.sqrt(2)))))
        product = self.node("Mul", x, self.node("Add", erf, self.scalar(1.0)))
        return self.node("Mul", product, self.scalar(0.5), power=0.5)

    def silu(self, x: str) -> str:
        """x sigmoid(x)"""
        return self.node("Mul", x, self.node("Sigmoid", x), power=0.4 * self.power[x])

    def feed_forward(self, x: str, width: int, inner: int) -> str:
        """Two linear layers with a GELU between them."""
        return self.linear(self.gelu(self.linear(x, width, inner)), inner, width)

    def split_heads(self, x: str, tokens: int, width: int, heads: int) -> str:
        """A linear layer whose result becomes [batch, heads, tokens, width / heads]."""
        parts = self.reshaped(self.linear(x, width, width), -1, tokens, heads, width // heads)
        return self.transposed(parts, 0, 2, 1, 3)

    def scores(self, query: str, key: str, width: int) -> str:
        """query keyᵀ / sqrt(width), for heads `width` wide."""
        products = self.node("MatMul", query, self.transposed(key, 0, 1, 3, 2))
        return self.node("Div", products, self.scalar(width**0.5))

    def attended(self, scores: str, value: str, tokens: int, width: int) -> str:
        """softmax(scores) value with its heads joined, and a linear layer."""
        weights = self.node("Softmax", scores, axis=-1)
        mixed = self.node("MatMul", weights, value, power=0.5)
        joined = self.reshaped(self.transposed(mixed, 0, 2, 1, 3), -1, tokens, width)
        return self.linear(joined, width, width)

    def flattened(self, x: str, channels: int) -> str:
        """[1, channels, height, width] as tokens [1, height · width, channels]"""
        return self.transposed(self.reshaped(x, 1, channels, -1), 0, 2, 1)

    def unflattened(self, x: str, channels: int, side: int) -> str:
        """Tokens [1, side · side, channels] as an image [1, channels, side, side]."""
        return self.reshaped(self.transposed(x, 0, 2, 1), 1, channels, side, side)
