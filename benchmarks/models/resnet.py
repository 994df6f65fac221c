"""ResNet-50 v1.5 (the stride sits on the 3x3 conv) in three spellings of the same function."""

from __future__ import annotations

import numpy as np
import onnx

from .layers import Convolution, ConvWriter

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


class ResNetWriter(ConvWriter):
    """Channels-first, borders in the convs' attributes, BatchNormalization nodes."""

    def block_conv(self, x: str, shape: Convolution) -> str:
        """Conv and batch normalisation."""
        return self.batch_norm(self.conv(x, shape), shape.filters)

    def stem_pool(self, x: str) -> str:
        """3x3 max pool of stride 2; of values >= 0: a border of 0 is one of -inf."""
        return self.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])

    def head(self, x: str, channels: int, classes: int) -> str:
        """Logits."""
        return self.classifier(x, channels, classes)

    def image_shape(self, size: int) -> list[int]:
        """Shape of the graph input."""
        return [1, 3, size, size]


class PaddedWriter(ResNetWriter):
    """Channels-first, every border an explicit Pad node."""

    def block_conv(self, x: str, shape: Convolution) -> str:
        return self.batch_norm(self.conv(x, shape, explicit_pad=True), shape.filters)

    def stem_pool(self, x: str) -> str:
        return self.node("MaxPool", self.pad(x, 1, 1), kernel_shape=[3, 3], strides=[2, 2])


class TensorFlowWriter(ResNetWriter):
    """As a TensorFlow export: channels-last tensors, Transposes around each Conv, pads in NHWC,
    batch normalisation as Mul and Add."""

    def _channels_first(self, x: str) -> str:
        return self.node("Transpose", x, perm=[0, 3, 1, 2])

    def _channels_last(self, x: str) -> str:
        return self.node("Transpose", x, perm=[0, 2, 3, 1])

    def block_conv(self, x: str, shape: Convolution) -> str:
        if shape.lo or shape.hi:
            x = self.pad(x, shape.lo, shape.hi, channels_last=True)
        borderless = Convolution(shape.channels, shape.filters, shape.kernel, shape.stride)
        y = self._channels_last(self.conv(self._channels_first(x), borderless))
        norm = self.norm(y, shape.filters)
        scale = norm.scale / np.sqrt(norm.variance + np.float32(norm.epsilon))
        shift = norm.shift - norm.mean * scale
        power = norm.power(self.power[y])
        scaled = self.node("Mul", y, self.constant(scale, "scale"), power=power)
        return self.node("Add", scaled, self.constant(shift, "shift"), power=power)

    def stem_pool(self, x: str) -> str:
        padded = self.pad(x, 1, 1, channels_last=True)
        pool = self.node(
            "MaxPool", self._channels_first(padded), kernel_shape=[3, 3], strides=[2, 2]
        )
        return self._channels_last(pool)

    def head(self, x: str, channels: int, classes: int) -> str:
        pooled = self.node("ReduceMean", x, axes=[1, 2], keepdims=0)
        deviation = (channels * self.power[pooled]) ** -0.5
        weight = self.normal((classes, channels), deviation).T
        logits = self.node("MatMul", pooled, self.constant(weight, "weight"), power=1.0)
        return self.add(logits, self.constant(self.normal((classes,), 0.1), "bias"))

    def image_shape(self, size: int) -> list[int]:
        return [1, size, size, 3]


WRITERS = {"plain": ResNetWriter, "pad": PaddedWriter, "tf": TensorFlowWriter}


def resnet(
    spelling: str = "plain",
    size: int = 224,
    stem: int = 64,
    stages: tuple[tuple[int, int], ...] = STAGES,
    classes: int = 1000,
) -> onnx.ModelProto:
    """A bottleneck ResNet; `stages` are (width, blocks), `spelling` is plain, pad or tf.

    The spellings have the same weights, so they compute the same function.
    """
    net = WRITERS[spelling]("resnet", opset=13 if spelling == "tf" else 17)
    x = net.input("image", net.image_shape(size))
    x = net.relu(net.block_conv(x, Convolution(3, stem, 7, 2, 3, 3)))
    x = net.stem_pool(x)
    channels = stem
    for stage, (width, blocks) in enumerate(stages):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _bottleneck(net, x, channels, width, stride, projected=not block)
            channels = 4 * width
    net.output(net.head(x, channels, classes), "logits", [1, classes])
    return net.model()


def _bottleneck(
    net: ResNetWriter, x: str, channels: int, width: int, stride: int, projected: bool
) -> str:
    """relu(1x1, 3x3 and 1x1 convs of x + x), where x may take a 1x1 conv too."""
    y = net.relu(net.block_conv(x, Convolution(channels, width)))
    y = net.relu(net.block_conv(y, Convolution(width, width, 3, stride, 1, 1)))
    y = net.block_conv(y, Convolution(width, 4 * width))
    shortcut = x
    if projected:
        shortcut = net.block_conv(x, Convolution(channels, 4 * width, stride=stride))
    return net.relu(net.add(y, shortcut), share=1.0)  # x is positive, so the sum mostly is
