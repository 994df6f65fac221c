"""MobileNetV2 and DeepLabV3 on it, as Hugging Face's TensorFlow-padded models are exported."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from .layers import Convolution, ConvWriter

EXPANSION = 6


@dataclass(frozen=True)
class Backbone:
    """Channels of stem and inverted residuals, and the stride of each residual."""

    channels: tuple[int, ...]
    strides: tuple[int, ...]


V2 = Backbone(
    channels=(16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320),
    strides=(2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1),
)


class MobileNetWriter(ConvWriter):
    """Conv, BatchNormalization and ReLU6, with TensorFlow's "same" borders as Pad nodes.

    `extent` follows the height (= width) of the tensor that is being built.
    """

    extent: int

    def layer(
        self,
        x: str,
        channels: int,
        filters: int,
        kernel: int = 1,
        stride: int = 1,
        dilation: int = 1,
        depthwise: bool = False,
    ) -> str:
        """Conv and BatchNormalization; the border makes the result ceil(extent / stride) wide."""
        border = max(kernel - (self.extent % stride or stride), 0)
        lo = border // 2 * dilation
        hi = (border - border // 2) * dilation
        groups = channels if depthwise else 1
        shape = Convolution(channels, filters, kernel, stride, lo, hi, dilation, groups)
        self.extent = -(-self.extent // stride)
        return self.batch_norm(self.conv(x, shape, explicit_pad=True), filters, epsilon=1e-3)

    def residual(self, x: str, channels: int, filters: int, stride: int, dilation: int) -> str:
        """Expand, depthwise 3x3, project; plus x where the shapes agree."""
        wide = channels * EXPANSION
        y = self.relu6(self.layer(x, channels, wide))
        y = self.relu6(self.layer(y, wide, wide, 3, stride, dilation, depthwise=True))
        y = self.layer(y, wide, filters)
        return self.add(x, y) if stride == 1 and channels == filters else y

    def features(self, x: str, size: int, backbone: Backbone, output_stride: int) -> str:
        """The backbone; strides beyond `output_stride` become dilations."""
        stem = 2 * backbone.channels[0]
        self.extent = size
        x = self.relu6(self.layer(x, 3, stem, 3, 2))
        x = self.relu6(self.layer(x, stem, stem, 3, depthwise=True))
        x = self.layer(x, stem, backbone.channels[0])
        reached, dilation = 2, 1
        pairs = zip(backbone.channels[:-1], backbone.channels[1:], strict=True)
        for (channels, filters), stride in zip(pairs, backbone.strides, strict=True):
            if reached == output_stride:
                x = self.residual(x, channels, filters, 1, dilation)
                dilation *= stride
            else:
                x = self.residual(x, channels, filters, stride, 1)
                reached *= stride
        return x

    def head_layer(self, x: str, channels: int, filters: int) -> str:
        """1x1 Conv, BatchNormalization, Relu."""
        y = self.conv(x, Convolution(channels, filters))
        return self.relu(self.batch_norm(y, filters))


def mobilenet_v2(
    size: int = 224, backbone: Backbone = V2, last: int = 1280, classes: int = 1001
) -> onnx.ModelProto:
    """MobileNetV2 for classification."""
    net = MobileNetWriter("mobilenetv2")
    x = net.input("image", [1, 3, size, size])
    x = net.features(x, size, backbone, output_stride=32)
    x = net.relu6(net.layer(x, backbone.channels[-1], last))
    net.output(net.classifier(x, last, classes), "logits", [1, classes])
    return net.model()


def deeplab_v3(
    size: int = 257, backbone: Backbone = V2, width: int = 256, classes: int = 21
) -> onnx.ModelProto:
    """DeepLabV3 on MobileNetV2 at output stride 8: pooled and 1x1 features, projected."""
    net = MobileNetWriter("deeplabv3_mobilenetv2")
    x = net.input("image", [1, 3, size, size])
    x = net.features(x, size, backbone, output_stride=8)
    channels = backbone.channels[-1]
    pooled = net.head_layer(net.node("GlobalAveragePool", x), channels, width)
    spread = net.node(
        "Resize",
        pooled,
        "",
        "",
        net.integers(1, width, net.extent, net.extent),
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )
    local = net.head_layer(x, channels, width)
    y = net.head_layer(net.concat([spread, local], axis=1), 2 * width, width)
    logits = net.conv(y, Convolution(width, classes, bias=True))
    net.output(logits, "logits", [1, classes, net.extent, net.extent])
    return net.model()
