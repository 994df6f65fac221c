"""Layers of convolutional networks, in the spellings that exporters give them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .writer import Array, GraphWriter


@dataclass(frozen=True)
class Convolution:
    """Shape of a square 2-d convolution; `lo` and `hi` are its zero border at each spatial end."""

    channels: int
    filters: int
    kernel: int = 1
    stride: int = 1
    lo: int = 0
    hi: int = 0
    dilation: int = 1
    groups: int = 1
    bias: bool = False


@dataclass(frozen=True)
class Norm:
    """Parameters of an inference batch normalisation."""

    scale: Array
    shift: Array
    mean: Array
    variance: Array
    epsilon: float

    def power(self, before: float) -> float:
        """Power of the normalised tensor."""
        spread = (before + np.square(self.mean)) / (self.variance + self.epsilon)
        return float(np.mean(np.square(self.scale) * spread + np.square(self.shift)))


class ConvWriter(GraphWriter):
    """A GraphWriter with convolutional layers, channels-first."""

    def pad(self, x: str, lo: int, hi: int, value: float = 0.0, channels_last: bool = False) -> str:
        """A Pad node over the two spatial axes."""
        before, after = ([0, lo, lo, 0], [0, hi, hi, 0]) if channels_last else (
            [0, 0, lo, lo], [0, 0, hi, hi]
        )  # fmt: skip
        return self.node(
            "Pad", x, self.integers(*before, *after), self.scalar(value), mode="constant"
        )

    def conv(self, x: str, shape: Convolution, explicit_pad: bool = False) -> str:
        """A Conv of power one; with `explicit_pad` its border is a Pad node of its own."""
        inner = shape.channels // shape.groups
        fan = inner * shape.kernel**2
        kernel = (shape.filters, inner, shape.kernel, shape.kernel)
        weight = self.normal(kernel, (fan * self.power[x]) ** -0.5)
        operands = [x, self.constant(weight, "weight")]
        if shape.bias:
            operands.append(self.constant(self.normal((shape.filters,), 0.1), "bias"))
        lo, hi = shape.lo, shape.hi
        if explicit_pad and (lo or hi):
            operands[0] = self.pad(x, lo, hi)
            lo = hi = 0
        return self.node(
            "Conv",
            *operands,
            kernel_shape=[shape.kernel] * 2,
            strides=[shape.stride] * 2,
            pads=[lo, lo, hi, hi],
            dilations=[shape.dilation] * 2,
            group=shape.groups,
            power=1.0,
        )

    def norm(self, x: str, channels: int, epsilon: float = 1e-5) -> Norm:
        """Statistics that fit x, and a scale and shift."""
        deviation = self.power[x] ** 0.5
        return Norm(
            scale=self.uniform((channels,), 0.6, 1.2),
            shift=self.normal((channels,), 0.2),
            mean=self.normal((channels,), 0.1 * deviation),
            variance=self.uniform((channels,), 0.8, 1.2) * np.float32(self.power[x]),
            epsilon=epsilon,
        )

    def batch_norm(self, x: str, channels: int, epsilon: float = 1e-5) -> str:
        """A BatchNormalization node."""
        norm = self.norm(x, channels, epsilon)
        parameters = [
            self.constant(norm.scale, "scale"),
            self.constant(norm.shift, "shift"),
            self.constant(norm.mean, "mean"),
            self.constant(norm.variance, "variance"),
        ]
        power = norm.power(self.power[x])
        return self.node("BatchNormalization", x, *parameters, epsilon=epsilon, power=power)

    def relu6(self, x: str) -> str:
        """Clip to [0, 6]."""
        bounds = self.scalar(0.0), self.scalar(6.0)
        return self.node("Clip", x, *bounds, power=self.power[x] / 2)

    def leaky_relu(self, x: str, slope: float) -> str:
        return self.node("LeakyRelu", x, alpha=slope, power=self.power[x] * (1 + slope**2) / 2)

    def upsampled(self, x: str) -> str:
        """Nearest Resize by two in both spatial axes."""
        scales = self.constant(np.array([1, 1, 2, 2], np.float32), "scales")
        return self.node(
            "Resize",
            x,
            "",
            scales,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )

    def classifier(self, x: str, channels: int, classes: int) -> str:
        """Global average pool, Flatten, Gemm."""
        pooled = self.node("GlobalAveragePool", x)
        return self.gemm(self.node("Flatten", pooled, axis=1), channels, classes)
