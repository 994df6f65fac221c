"""BERT-like encoders as exporters write them, with symbolic batch and sequence length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from .tokens import TokenWriter


@dataclass(frozen=True)
class Encoder:
    """Sizes of an encoder; `fused_norm` writes LayerNormalization nodes instead of their parts."""

    layers: int
    hidden: int
    heads: int
    inner: int
    vocabulary: int = 30522
    positions: int = 512
    fused_norm: bool = False
    epsilon: float = 1e-12


BERT_BASE = Encoder(layers=12, hidden=768, heads=12, inner=3072)
DEEP = Encoder(layers=24, hidden=256, heads=4, inner=1024)
MINILM = Encoder(layers=6, hidden=384, heads=12, inner=1536, fused_norm=True)


class EncoderWriter(TokenWriter):
    """Attention, feed-forward and normalisation, shapes computed by Shape chains."""

    def __init__(self, name: str, sizes: Encoder) -> None:
        super().__init__(name)
        self.sizes = sizes

    def extent(self, x: str, axis: int) -> str:
        """Shape, Gather, Unsqueeze: one extent as a 1-d tensor."""
        chosen = self.node("Gather", self.node("Shape", x), self.index(axis), axis=0)
        return self.node("Unsqueeze", chosen, self.integers(0))

    def viewed(self, x: str, *tail: int) -> str:
        """x reshaped to [batch, seq, *tail], the target shape joined at run time."""
        parts = [self.extent(x, 0), self.extent(x, 1), *(self.integers(dim) for dim in tail)]
        return self.node("Reshape", x, self.node("Concat", *parts, axis=0))

    def normalised(self, x: str) -> str:
        """Layer normalisation, as `sizes` want it written."""
        return self.layer_norm(x, self.sizes.hidden, self.sizes.epsilon, self.sizes.fused_norm)

    def heads(self, x: str, perm: list[int]) -> str:
        """A linear layer whose result is split in heads and transposed."""
        hidden, heads = self.sizes.hidden, self.sizes.heads
        y = self.linear(x, hidden, hidden)
        return self.node("Transpose", self.viewed(y, heads, hidden // heads), perm=perm)

    def attention(self, x: str, mask: str) -> str:
        """Multi-head self-attention with an additive mask."""
        hidden = self.sizes.hidden
        query = self.heads(x, [0, 2, 1, 3])
        key = self.heads(x, [0, 2, 3, 1])
        value = self.heads(x, [0, 2, 1, 3])
        root = float(np.sqrt(hidden // self.sizes.heads))
        scores = self.node("Div", self.node("MatMul", query, key), self.scalar(root))
        weights = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        mixed = self.node("MatMul", weights, value, power=0.5)
        joined = self.viewed(self.node("Transpose", mixed, perm=[0, 2, 1, 3]), hidden)
        self.power[joined] = 0.5
        return self.linear(joined, hidden, hidden)

    def embeddings(self, ids: str, types: str) -> str:
        """Word + type + position embeddings, normalised."""
        hidden = self.sizes.hidden
        words = self.constant(self.normal((self.sizes.vocabulary, hidden)), "words")
        kinds = self.constant(self.normal((2, hidden), 0.3), "types")
        places = self.constant(self.normal((self.sizes.positions, hidden), 0.5), "positions")
        order = self.constant(np.arange(self.sizes.positions)[None], "order")
        positions = self.node(
            "Slice", order, self.integers(0), self.extent(ids, 1), self.integers(1)
        )
        word = self.node("Gather", words, ids, axis=0)
        kind = self.node("Gather", kinds, types, axis=0)
        place = self.node("Gather", places, positions, axis=0)
        return self.normalised(self.add(self.add(word, kind), place))

    def additive_mask(self, mask: str) -> str:
        """(1 - mask) * -1e9 as [batch, 1, 1, seq]"""
        wide = self.node(
            "Unsqueeze", self.node("Unsqueeze", mask, self.integers(1)), self.integers(2)
        )
        kept = self.node("Cast", wide, to=TensorProto.FLOAT)
        return self.node("Mul", self.node("Sub", self.scalar(1.0), kept), self.scalar(-1e9))

    def encode(self, ids: str, mask: str, types: str) -> str:
        """The last hidden state, [batch, seq, hidden]."""
        x = self.embeddings(ids, types)
        additive = self.additive_mask(mask)
        for _ in range(self.sizes.layers):
            x = self.normalised(self.add(self.attention(x, additive), x))
            wide = self.gelu(self.linear(x, self.sizes.hidden, self.sizes.inner))
            x = self.normalised(self.add(self.linear(wide, self.sizes.inner, self.sizes.hidden), x))
        return x

    def sentence(self, x: str, mask: str) -> str:
        """Mean over the unmasked positions, scaled to length one."""
        last = self.node("Unsqueeze", mask, self.integers(-1))
        wide = self.node("Expand", last, self.node("Shape", x))
        weight = self.node("Cast", wide, to=TensorProto.FLOAT)
        total = self.node("ReduceSum", self.node("Mul", x, weight), self.integers(1), keepdims=0)
        count = self.node("ReduceSum", weight, self.integers(1), keepdims=0)
        mean = self.node("Div", total, self.node("Clip", count, self.scalar(1e-9)))
        length = self.node("ReduceL2", mean, axes=[1], keepdims=1)
        safe = self.node("Clip", length, self.scalar(1e-12))
        return self.node("Div", mean, self.node("Expand", safe, self.node("Shape", mean)))


def bert(sizes: Encoder = BERT_BASE) -> onnx.ModelProto:
    """input_ids, attention_mask, token_type_ids [batch, seq] to the last hidden state."""
    net = EncoderWriter("bert", sizes)
    inputs = [
        net.input(name, ["batch", "seq"], TensorProto.INT64)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    net.output(net.encode(*inputs), "last_hidden_state", ["batch", "seq", sizes.hidden])
    return net.model()


def minilm(sizes: Encoder = MINILM) -> onnx.ModelProto:
    """input_ids, attention_mask [batch, seq] to one unit vector per sentence."""
    net = EncoderWriter("minilm", sizes)
    ids = net.input("input_ids", ["batch", "seq"], TensorProto.INT64)
    mask = net.input("attention_mask", ["batch", "seq"], TensorProto.INT64)
    zero = onnx.helper.make_tensor("zero", TensorProto.INT64, [1], [0])
    types = net.node("ConstantOfShape", net.node("Shape", ids), value=zero)
    x = net.encode(ids, mask, types)
    net.output(net.sentence(x, mask), "sentence_embedding", ["batch", sizes.hidden])
    return net.model()
