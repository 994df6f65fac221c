"""Kernel, strides, dilations and borders of ONNX's convolutions and pools, resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.types.dims import Dim


@dataclass(frozen=True)
class Geometry:
    """A window over the spatial axes; a border may be negative, which is a crop."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    lo: tuple[int, ...]
    hi: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements the window spans per axis."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def geometry(node: Context, spatial: Sequence[Dim], kernel: Sequence[int]) -> Geometry:
    """The node's window, with pads from `pads` or `auto_pad`, ceil_mode not yet regarded."""
    axes = len(kernel)
    strides = node.integers("strides") or (1,) * axes
    dilations = node.integers("dilations") or (1,) * axes
    pads = node.integers("pads") or (0,) * (2 * axes)
    given = node.integers("kernel_shape") or tuple(kernel)
    if tuple(given) != tuple(kernel):
        raise node.wrong(f"kernel_shape is {list(given)}, the weights have {list(kernel)}")
    if len(spatial) != axes or len(strides) != axes or len(dilations) != axes:
        raise node.wrong(f"{axes} kernel axes do not fit {len(spatial)} spatial axes and strides")
    if len(pads) != 2 * axes or min(*kernel, *strides, *dilations) < 1:
        raise node.wrong("kernel, strides and dilations must be positive, pads two per axis")
    auto = node.text("auto_pad", "NOTSET")
    if auto == "VALID":
        pads = (0,) * (2 * axes)
    elif auto.startswith("SAME"):
        pads = _same_pads(node, spatial, kernel, strides, dilations, auto == "SAME_UPPER")
    return Geometry(tuple(kernel), strides, dilations, pads[:axes], pads[axes:])


def _same_pads(
    node: Context,
    spatial: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    upper: bool,
) -> tuple[int, ...]:
    """Pads such that the result has ceil(extent / stride) elements."""
    lo, hi = [], []
    for extent, k, stride, dilation in zip(spatial, kernel, strides, dilations, strict=True):
        total = dilation * (k - 1)
        if stride != 1:
            (size,) = node.static([extent], "a spatial extent under auto_pad")
            total = max(0, (-(-size // stride) - 1) * stride + total + 1 - size)
        smaller = total // 2
        lo.append(smaller if upper else total - smaller)
        hi.append(total - lo[-1])
    return (*lo, *hi)
