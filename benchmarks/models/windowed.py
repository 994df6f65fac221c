"""A hierarchical transformer with attention over shifted windows (Swin), in exported form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from .layers import Convolution
from .tokens import TokenWriter
from .writer import Array

END = np.iinfo(np.int64).max
MASKED = -100.0
EXPANSION = 4


@dataclass(frozen=True)
class Windowed:
    """Sizes of a network: blocks and heads per stage; each stage is twice as wide as the last."""

    size: int = 224
    patch: int = 4
    window: int = 7
    width: int = 96
    depths: tuple[int, ...] = (4, 4, 4, 4)
    heads: tuple[int, ...] = (3, 6, 12, 24)
    classes: int = 1000


@dataclass(frozen=True)
class Stage:
    """Extents within a stage: side of the token grid, side of a window, width and heads."""

    side: int
    window: int
    width: int
    heads: int

    @property
    def tokens(self) -> int:
        """Tokens of a window."""
        return self.window**2

    @property
    def windows(self) -> int:
        """Windows along a side."""
        return self.side // self.window

    def shift(self, block: int) -> int:
        """Half a window in every second block, unless there is one window only."""
        return self.window // 2 if block % 2 and self.windows > 1 else 0

    def position_index(self) -> Array:
        """Row of the bias table for each pair of tokens of a window."""
        places = np.stack(np.unravel_index(np.arange(self.tokens), (self.window,) * 2))
        apart = places[:, :, None] - places[:, None, :] + self.window - 1
        return np.asarray(apart[0] * (2 * self.window - 1) + apart[1])

    def mask(self, shift: int) -> Array:
        """[windows², 1, tokens, tokens]: parts what only a roll by `shift` brought together."""
        band = np.zeros(self.side, np.int64)
        band[-self.window :] = 1
        band[-shift:] = 2
        region = band[:, None] * 3 + band
        count, extent = self.windows, self.window
        parts = region.reshape(count, extent, count, extent).transpose(0, 2, 1, 3)
        labels = parts.reshape(-1, 1, self.tokens)
        differ = labels[:, :, :, None] != labels[:, :, None, :]
        return np.where(differ, np.float32(MASKED), np.float32(0))


class WindowedWriter(TokenWriter):
    """Blocks over tokens [1, side · side, width]."""

    def rolled(self, x: str, shift: int) -> str:
        """[1, side, side, width] rolled by -shift along both sides, as Slices and Concats."""
        for axis in (1, 2):
            tail, head = self.sliced(x, axis, shift, END), self.sliced(x, axis, 0, shift)
            x = self.concat([tail, head], axis=axis)
        return x

    def partition(self, x: str, stage: Stage) -> str:
        """[1, side, side, width] to [windows², tokens, width]"""
        count, extent, width = stage.windows, stage.window, stage.width
        parts = self.reshaped(x, 1, count, extent, count, extent, width)
        windows = self.transposed(parts, 0, 1, 3, 2, 4, 5)
        return self.reshaped(self.reshaped(windows, -1, extent, extent, width), -1,
                             stage.tokens, width)  # fmt: skip

    def reversed(self, x: str, stage: Stage) -> str:
        """[windows², tokens, width] to [1, side, side, width]"""
        count, extent, width = stage.windows, stage.window, stage.width
        windows = self.reshaped(x, -1, extent, extent, width)
        parts = self.reshaped(windows, 1, count, count, extent, extent, width)
        return self.reshaped(
            self.transposed(parts, 0, 1, 3, 2, 4, 5), 1, stage.side, stage.side, -1
        )

    def position_bias(self, stage: Stage) -> str:
        """[1, heads, tokens, tokens], gathered from a table by relative position."""
        table = self.constant(self.normal(((2 * stage.window - 1) ** 2, stage.heads)), "table")
        index = self.constant(stage.position_index().reshape(-1), "index")
        rows = self.node("Gather", table, index, axis=0)
        bias = self.reshaped(rows, stage.tokens, stage.tokens, -1)
        return self.node("Unsqueeze", self.transposed(bias, 2, 0, 1), self.integers(0))

    def attention(self, x: str, stage: Stage, shift: int) -> str:
        """Attention among the tokens of each window [windows², tokens, width]."""
        tokens, width, heads = stage.tokens, stage.width, stage.heads
        query, key, value = (self.split_heads(x, tokens, width, heads) for _ in range(3))
        scores = self.scores(query, key, width // heads)
        scores = self.node("Add", scores, self.position_bias(stage))
        if shift:
            count = stage.windows**2
            grouped = self.reshaped(scores, 1, count, heads, tokens, tokens)
            mask = self.constant(stage.mask(shift)[None], "mask")
            scores = self.reshaped(self.node("Add", grouped, mask), -1, heads, tokens, tokens)
        return self.attended(scores, value, tokens, width)

    def block(self, x: str, stage: Stage, shift: int) -> str:
        """Attention over windows and a feed-forward network, each normalised first and added."""
        side, width = stage.side, stage.width
        grid = self.reshaped(self.layer_norm(x, width), 1, side, side, width)
        moved = self.rolled(grid, shift) if shift else grid
        mixed = self.reversed(self.attention(self.partition(moved, stage), stage, shift), stage)
        back = self.rolled(mixed, side - shift) if shift else mixed
        x = self.add(x, self.reshaped(back, 1, side * side, width))
        return self.add(x, self.feed_forward(self.layer_norm(x, width), width, EXPANSION * width))

    def merged(self, x: str, stage: Stage) -> str:
        """Each 2 x 2 tokens as one: strided Slices, Concat, normalisation, a linear layer."""
        side, width = stage.side, stage.width
        grid = self.reshaped(x, 1, side, side, width)
        corners = [
            self.sliced(self.sliced(grid, 1, row, END, 2), 2, column, END, 2)
            for column in (0, 1)
            for row in (0, 1)
        ]
        joined = self.reshaped(self.concat(corners, axis=-1), 1, -1, 4 * width)
        weight = self.normal((4 * width, 2 * width), (4 * width) ** -0.5)
        normal = self.layer_norm(joined, 4 * width)
        return self.node("MatMul", normal, self.constant(weight, "weight"), power=1.0)


def swin(sizes: Windowed = Windowed()) -> onnx.ModelProto:
    """Patches, stages of blocks of which every second is shifted, pooled logits."""
    net = WindowedWriter("swin")
    side, width = sizes.size // sizes.patch, sizes.width
    image = net.input("image", [1, 3, sizes.size, sizes.size])
    patches = Convolution(3, width, sizes.patch, sizes.patch, bias=True)
    x = net.layer_norm(net.flattened(net.conv(image, patches), width), width)
    for index, (depth, heads) in enumerate(zip(sizes.depths, sizes.heads, strict=True)):
        stage = Stage(side, min(sizes.window, side), width, heads)
        for block in range(depth):
            x = net.block(x, stage, stage.shift(block))
        if index < len(sizes.depths) - 1:
            x = net.merged(x, stage)
            side, width = side // 2, 2 * width
    features = net.transposed(net.layer_norm(x, width), 0, 2, 1)
    pooled = net.node("GlobalAveragePool", features)
    logits = net.gemm(net.node("Flatten", pooled, axis=1), width, sizes.classes)
    net.output(logits, "logits", [1, sizes.classes])
    return net.model()
