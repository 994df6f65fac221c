"""Mobile convolutions and attention over unfolded patches (MobileViT), in exported form."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from .layers import Convolution
from .tokens import TokenWriter

PATCH = 2
EXPANSION = 4


@dataclass(frozen=True)
class Mobile:
    """Sizes of a network: channels of the stem and of five stages.

    The last three stages have a transformer each, of `widths` and `layers`.
    """

    size: int = 256
    channels: tuple[int, ...] = (16, 32, 48, 64, 80, 96)
    widths: tuple[int, ...] = (96, 120, 144)
    layers: tuple[int, ...] = (6, 8, 6)
    heads: int = 4
    last: int = 384
    classes: int = 1000


class MobileWriter(TokenWriter):
    """Convs with their batch normalisation folded into weight and bias, as PyTorch exports them."""

    def conv_silu(
        self, x: str, channels: int, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> str:
        """Conv and SiLU."""
        border = kernel // 2
        shape = Convolution(
            channels, filters, kernel, stride, border, border, groups=groups, bias=True
        )
        return self.silu(self.conv(x, shape))

    def mobile(self, x: str, channels: int, filters: int, stride: int = 1) -> str:
        """Expand, depthwise 3x3, project; plus x where the shapes agree."""
        wide = EXPANSION * channels
        y = self.conv_silu(x, channels, wide)
        y = self.conv_silu(y, wide, wide, 3, stride, groups=wide)
        y = self.conv(y, Convolution(wide, filters, bias=True))
        return self.add(x, y) if stride == 1 and channels == filters else y

    def unfolded(self, x: str, width: int, side: int) -> str:
        """[1, width, side, side] to [pixels of a patch, patches, width]"""
        count = side // PATCH
        rows = self.transposed(self.reshaped(x, width * count, PATCH, count, PATCH), 0, 2, 1, 3)
        patches = self.reshaped(rows, 1, width, count**2, PATCH**2)
        return self.reshaped(self.transposed(patches, 0, 3, 2, 1), PATCH**2, count**2, width)

    def folded(self, x: str, width: int, side: int) -> str:
        """The inverse of `unfolded`."""
        count = side // PATCH
        patches = self.transposed(self.reshaped(x, 1, PATCH**2, count**2, width), 0, 3, 2, 1)
        rows = self.reshaped(patches, width * count, count, PATCH, PATCH)
        return self.reshaped(self.transposed(rows, 0, 2, 1, 3), 1, width, side, side)

    def layer(self, x: str, tokens: int, width: int, heads: int) -> str:
        """Attention among `tokens` and a feed-forward network, each normalised first and added."""
        normal = self.layer_norm(x, width)
        query, key, value = (self.split_heads(normal, tokens, width, heads) for _ in range(3))
        scores = self.scores(query, key, width // heads)
        x = self.add(x, self.attended(scores, value, tokens, width))
        wide = self.silu(self.linear(self.layer_norm(x, width), width, 2 * width))
        return self.add(x, self.linear(wide, 2 * width, width))

    def transformer(
        self, x: str, channels: int, width: int, side: int, layers: int, heads: int
    ) -> str:
        """Convs around layers over patches, joined with x and fused."""
        local = self.conv_silu(x, channels, channels, 3)
        tokens = self.unfolded(self.conv(local, Convolution(channels, width)), width, side)
        for _ in range(layers):
            tokens = self.layer(tokens, (side // PATCH) ** 2, width, heads)
        image = self.folded(self.layer_norm(tokens, width), width, side)
        projected = self.conv_silu(image, width, channels)
        return self.conv_silu(self.concat([x, projected], axis=1), 2 * channels, channels, 3)


def mobilevit(sizes: Mobile = Mobile()) -> onnx.ModelProto:
    """Mobile convs, then three stages with a transformer each, pooled logits."""
    net = MobileWriter("mobilevit")
    stem, first, second, *later = sizes.channels
    x = net.input("image", [1, 3, sizes.size, sizes.size])
    x = net.conv_silu(x, 3, stem, 3, 2)
    x = net.mobile(x, stem, first)
    x = net.mobile(x, first, second, 2)
    x = net.mobile(net.mobile(x, second, second), second, second)
    channels, side = second, sizes.size // 4
    for filters, width, layers in zip(later, sizes.widths, sizes.layers, strict=True):
        side //= 2
        x = net.mobile(x, channels, filters, 2)
        x = net.transformer(x, filters, width, side, layers, sizes.heads)
        channels = filters
    x = net.conv_silu(x, channels, sizes.last)
    net.output(net.classifier(x, sizes.last, sizes.classes), "logits", [1, sizes.classes])
    return net.model()
