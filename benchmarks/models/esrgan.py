"""ESRGAN's generator (RRDBNet): dense blocks that grow by concat, then two nearest upsamplings."""

from __future__ import annotations

import onnx

from .layers import Convolution, ConvWriter

SLOPE = 0.2
RESIDUAL = 0.2


class DenseWriter(ConvWriter):
    """3x3 convs with an explicit Pad of 1, LeakyRelu, scaled residuals."""

    def conv3(self, x: str, channels: int, filters: int) -> str:
        shape = Convolution(channels, filters, 3, lo=1, hi=1, bias=True)
        return self.conv(x, shape, explicit_pad=True)

    def activated(self, x: str, channels: int, filters: int) -> str:
        return self.leaky_relu(self.conv3(x, channels, filters), SLOPE)

    def residual(self, x: str, y: str) -> str:
        """x + 0.2 y"""
        return self.add(self.mul(y, self.scalar(RESIDUAL)), x)

    def dense_block(self, x: str, width: int, growth: int) -> str:
        """Five convs, each on the concat of x and all results before it."""
        features = [x]
        for step in range(4):
            joined = self.concat(features, axis=1) if step else x
            features.append(self.activated(joined, width + step * growth, growth))
        last = self.conv3(self.concat(features, axis=1), width + 4 * growth, width)
        return self.residual(x, last)


def rrdb_net(
    blocks: int = 3, height: int = 90, width: int = 62, channels: int = 64, growth: int = 32
) -> onnx.ModelProto:
    """RRDBNet with `blocks` residual-in-residual dense blocks; the result is four times as big."""
    net = DenseWriter("esrgan_rrdb")
    image = net.input("image", [1, 3, height, width])
    first = net.conv3(image, 3, channels)
    x = first
    for _ in range(blocks):
        y = x
        for _ in range(3):
            y = net.dense_block(y, channels, growth)
        x = net.residual(x, y)
    x = net.add(first, net.conv3(x, channels, channels))
    for _ in range(2):
        x = net.activated(net.upsampled(x), channels, channels)
    x = net.activated(x, channels, channels)
    net.output(net.conv3(x, channels, 3), "upscaled", [1, 3, 4 * height, 4 * width])
    return net.model()
