"""ResNet-50-v2: batch normalisation and Relu stand before each conv, and the raw sum is kept."""

from __future__ import annotations

import onnx

from .layers import Convolution, ConvWriter
from .resnet import STAGES


class PreactivationWriter(ConvWriter):
    """Blocks whose sum is read by the next block's normalisation and by its shortcut."""

    def activated(self, x: str, channels: int) -> str:
        """BatchNormalization and Relu."""
        return self.relu(self.batch_norm(x, channels))

    def bottleneck(
        self, x: str, channels: int, width: int, stride: int = 1, projected: bool = False
    ) -> str:
        """x plus 1x1, 3x3 and 1x1 convs of it; a projected shortcut reads the activated x."""
        active = self.activated(x, channels)
        y = self.conv(active, Convolution(channels, width))
        y = self.conv(self.activated(y, width), Convolution(width, width, 3, stride, 1, 1))
        y = self.conv(self.activated(y, width), Convolution(width, 4 * width))
        if projected:
            x = self.conv(active, Convolution(channels, 4 * width, stride=stride))
        return self.add(y, x)


def resnet_v2(
    size: int = 224,
    stem: int = 64,
    stages: tuple[tuple[int, int], ...] = STAGES,
    classes: int = 1000,
) -> onnx.ModelProto:
    """A pre-activation bottleneck ResNet; `stages` are (width, blocks)."""
    net = PreactivationWriter("resnet_v2")
    x = net.conv(net.input("image", [1, 3, size, size]), Convolution(3, stem, 7, 2, 3, 3))
    x = net.activated(x, stem)
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = stem
    for stage, (width, blocks) in enumerate(stages):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = net.bottleneck(x, channels, width, stride, projected=not block)
            channels = 4 * width
    x = net.activated(x, channels)
    net.output(net.classifier(x, channels, classes), "logits", [1, classes])
    return net.model()
