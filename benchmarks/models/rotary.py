"""Rotary position embedding, alone and in causal attention, with symbolic batch and length."""

from __future__ import annotations

import numpy as np
import onnx

from .writer import GraphWriter

END = np.iinfo(np.int64).max


class RotaryWriter(GraphWriter):
    """Tensors are [batch, heads, seq, width]."""

    def __init__(self, name: str, heads: int, width: int) -> None:
        super().__init__(name)
        self.shape: list[int | str] = ["batch", heads, "seq", width]
        self.width = width

    def sliced(self, x: str, start: int, end: int) -> str:
        """x[..., start:end]"""
        bounds = (self.integers(start), self.integers(end), self.integers(3))
        return self.node("Slice", x, *bounds)

    def rotate_half(self, x: str) -> str:
        """[-second half, first half] along the last axis"""
        second = self.node("Neg", self.sliced(x, self.width // 2, END))
        first = self.sliced(x, 0, self.width // 2)
        return self.node("Concat", second, first, axis=-1)

    def rotated(self, x: str, cos: str, sin: str) -> str:
        """x cos + rotate_half(x) sin"""
        plain = self.node("Mul", x, cos)
        return self.node("Add", plain, self.node("Mul", self.rotate_half(x), sin))

    def tables(self) -> tuple[str, str]:
        """The inputs cos and sin [1, seq, width], with an axis for the heads."""
        cos, sin = (self.input(name, [1, "seq", self.width]) for name in ("cos", "sin"))
        axis = self.integers(1)
        return self.node("Unsqueeze", cos, axis), self.node("Unsqueeze", sin, axis)


def rope(heads: int = 32, width: int = 128) -> onnx.ModelProto:
    """The rotary embedding of q and k."""
    net = RotaryWriter("rope", heads, width)
    query, key = net.input("q", net.shape), net.input("k", net.shape)
    cos, sin = net.tables()
    net.output(net.rotated(query, cos, sin), "q_rotated", net.shape)
    net.output(net.rotated(key, cos, sin), "k_rotated", net.shape)
    return net.model()


def rope_attention(heads: int = 32, width: int = 128) -> onnx.ModelProto:
    """softmax(rope(q) rope(k)ᵀ / sqrt(width) + mask) v"""
    net = RotaryWriter("rope_attention", heads, width)
    query, key, value = (net.input(name, net.shape) for name in "qkv")
    cos, sin = net.tables()
    mask = net.input("mask", [1, 1, "seq", "seq"])
    turned = net.node("Transpose", net.rotated(key, cos, sin), perm=[0, 1, 3, 2])
    scores = net.node("MatMul", net.rotated(query, cos, sin), turned)
    scaled = net.node("Mul", scores, net.scalar(width**-0.5))
    weights = net.node("Softmax", net.node("Add", scaled, mask), axis=-1)
    net.output(net.node("MatMul", weights, value), "mixed", net.shape)
    return net.model()
