"""A segmentation transformer with spatial-reduction attention (SegFormer), in exported form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from .layers import Convolution
from .tokens import TokenWriter

EXPANSION = 4


@dataclass(frozen=True)
class Pyramid:
    """Sizes of a network; the tuples have an entry per stage, `reductions` are those of keys."""

    size: int = 256
    widths: tuple[int, ...] = (32, 64, 160, 256)
    depths: tuple[int, ...] = (3, 3, 6, 3)
    heads: tuple[int, ...] = (1, 2, 5, 8)
    reductions: tuple[int, ...] = (8, 4, 2, 1)
    decoder: int = 256
    classes: int = 150


class PyramidWriter(TokenWriter):
    """Blocks over tokens [1, side · side, width]."""

    def patches(self, x: str, channels: int, width: int, first: bool) -> str:
        """Tokens of overlapping patches, normalised."""
        kernel, stride, border = (7, 4, 3) if first else (3, 2, 1)
        shape = Convolution(channels, width, kernel, stride, border, border, bias=True)
        return self.layer_norm(self.flattened(self.conv(x, shape), width), width)

    def reduced(self, x: str, width: int, side: int, reduction: int) -> str:
        """Tokens of a grid that a strided conv makes `reduction` times as small, normalised."""
        image = self.unflattened(x, width, side)
        small = self.conv(image, Convolution(width, width, reduction, reduction, bias=True))
        return self.layer_norm(self.flattened(small, width), width)

    def attention(self, x: str, width: int, heads: int, side: int, reduction: int) -> str:
        """Attention of all tokens to those of the reduced grid."""
        query = self.split_heads(x, side**2, width, heads)
        source = self.reduced(x, width, side, reduction) if reduction > 1 else x
        tokens = (side // reduction) ** 2
        key, value = (self.split_heads(source, tokens, width, heads) for _ in range(2))
        return self.attended(self.scores(query, key, width // heads), value, side**2, width)

    def mixed(self, x: str, width: int, side: int) -> str:
        """A feed-forward network with a depthwise 3x3 conv before its GELU."""
        wide = EXPANSION * width
        image = self.unflattened(self.linear(x, width, wide), wide, side)
        shape = Convolution(wide, wide, 3, lo=1, hi=1, groups=wide, bias=True)
        tokens = self.flattened(self.conv(image, shape), wide)
        return self.linear(self.gelu(tokens), wide, width)

    def block(self, x: str, width: int, heads: int, side: int, reduction: int) -> str:
        """Attention and feed-forward network, each normalised first and added."""
        y = self.attention(self.layer_norm(x, width), width, heads, side, reduction)
        x = self.add(x, y)
        return self.add(x, self.mixed(self.layer_norm(x, width), width, side))

    def decoded(self, features: Sequence[str], sizes: Pyramid) -> str:
        """The feature maps, projected, resized to the first and fused: logits per pixel."""
        first, width = sizes.size // 4, sizes.decoder
        maps = []
        for stage, (image, channels) in enumerate(zip(features, sizes.widths, strict=True)):
            side = first >> stage
            tokens = self.linear(self.flattened(image, channels), channels, width)
            small = self.unflattened(tokens, width, side)
            maps.append(self.stretched(small, (1, width, first, first)))
        joined = self.concat(maps[::-1], axis=1)
        fused = self.conv(joined, Convolution(len(maps) * width, width))
        active = self.relu(self.batch_norm(fused, width))
        return self.conv(active, Convolution(width, sizes.classes, bias=True))

    def stretched(self, x: str, shape: Sequence[int]) -> str:
        """A bilinear Resize to `shape`."""
        return self.node(
            "Resize",
            x,
            "",
            "",
            self.integers(*shape),
            mode="linear",
            coordinate_transformation_mode="half_pixel",
        )


def segformer(sizes: Pyramid = Pyramid()) -> onnx.ModelProto:
    """Four stages of blocks, each on patches of the last one's map, and a decoder on all maps."""
    net = PyramidWriter("segformer")
    x = net.input("image", [1, 3, sizes.size, sizes.size])
    channels, features = 3, []
    stages = zip(sizes.widths, sizes.depths, sizes.heads, sizes.reductions, strict=True)
    for stage, (width, depth, heads, reduction) in enumerate(stages):
        side = sizes.size // 4 >> stage
        tokens = net.patches(x, channels, width, first=not stage)
        for _ in range(depth):
            tokens = net.block(tokens, width, heads, side, reduction)
        x = net.unflattened(net.layer_norm(tokens, width), width, side)
        features.append(x)
        channels = width
    shape = [1, sizes.classes, sizes.size // 4, sizes.size // 4]
    net.output(net.decoded(features, sizes), "logits", shape)
    return net.model()
