"""Resampling along an axis whose extents depend on sizes: positions are computed by the program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType


class OpenLine:
    """A vector of f64 with an element per element of the result, in arithmetic with numbers too."""

    def __init__(self, node: Context, index: int) -> None:
        self.node, self.index = node, index

    def _with(self, f: str, other: OpenLine | float, swapped: bool = False) -> OpenLine:
        build = self.node.build
        given = other.index if isinstance(other, OpenLine) else build.number(other, self.index)
        pair = (given, self.index) if swapped else (self.index, given)
        return OpenLine(self.node, build.binary(f, *pair))

    def __add__(self, other: OpenLine | float) -> OpenLine:
        return self._with("add", other)

    def __sub__(self, other: OpenLine | float) -> OpenLine:
        return self._with("sub", other)

    def __rsub__(self, other: float) -> OpenLine:
        return self._with("sub", other, swapped=True)

    def __mul__(self, other: OpenLine | float) -> OpenLine:
        return self._with("mul", other)

    def __truediv__(self, other: OpenLine | float) -> OpenLine:
        return self._with("div", other)

    def function(self, f: str) -> OpenLine:
        return OpenLine(self.node, self.node.build.unary(f, self.index))

    def clipped(self, top: OpenLine) -> OpenLine:
        """Between 0 and `top`."""
        return self._with("min", top)._with("max", 0.0)

    def where(self, size: OpenLine, number: float, other: OpenLine | float) -> OpenLine:
        """`other` where `size` is `number`, else this."""
        build, is_number = self.node.build, size._with("eq", number).index
        given = other.index if isinstance(other, OpenLine) else build.number(other, self.index)
        return OpenLine(self.node, build.select(is_number, given, self.index))

    def outside(self, extent: OpenLine) -> int:
        """Where this is no position in an axis of `extent`."""
        below, above = self._with("lt", 0.0), (extent - 1.0)._with("lt", self)
        return self.node.build.binary("or", below.index, above.index)


def line_of(node: Context, outer: Dim) -> OpenLine:
    """0, 1, … for each element of an axis of the result."""
    return OpenLine(node, node.build.iota((outer,), 0, DType.F64))


def size_along(line: OpenLine, dim: Dim) -> OpenLine:
    """The number `dim` in each element."""
    return OpenLine(line.node, line.node.build.size_of([dim], line.index))


def position(
    x: OpenLine,
    extent: OpenLine,
    outer: OpenLine,
    scale: float | None,
    mode: str,
    roi: tuple[float, float],
) -> OpenLine:  # fmt: skip
    """For each element of the result its position in the input; no scale is that of the sizes."""
    if mode == "tf_crop_and_resize":
        (start, end), top = roi, extent - 1.0
        inner = top * start + x * (end - start) * top / (outer - 1.0)
        return inner.where(outer, 1.0, top * (start + end) / 2.0)
    factor = outer / extent if scale is None else extent * 0.0 + scale
    if mode == "asymmetric":
        return x / factor
    if mode == "align_corners":
        width = factor * extent
        return (x * (extent - 1.0) / (width - 1.0)).where(width, 1.0, 0.0)
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / factor
    half = (x + 0.5) / factor - 0.5
    if mode == "half_pixel_symmetric":
        return extent / 2.0 * (1.0 - outer / (factor * extent)) + half
    return half.where(outer, 1.0, 0.0) if mode == "pytorch_half_pixel" else half


def nearest(at: OpenLine, rounding: str) -> OpenLine:
    """The element that nearest takes at a position."""
    if rounding in ("floor", "ceil"):
        return at.function(rounding)
    if rounding == "round_prefer_floor":
        return (at - 0.5).function("ceil")
    return (at + 0.5).function("floor")


def inside(
    taps: Sequence[tuple[float, OpenLine]], below: OpenLine, extent: OpenLine
) -> list[tuple[float, OpenLine]]:
    """The taps with the weights of those outside spread over the others."""
    build = below.node.build
    kept = []
    for far, weight in taps:
        none = build.number(0.0, weight.index)
        chosen = build.select((below + far).outside(extent), none, weight.index)
        kept.append((far, OpenLine(below.node, chosen)))
    total = reduce(lambda total, weight: total + weight, (weight for _, weight in kept))
    return [(far, weight / total) for far, weight in kept]


def weights(ratio: OpenLine, cubic: float | None) -> list[tuple[float, OpenLine]]:
    """Per tap how far it is from the element below, and its weight; linear without `cubic`."""
    rest = 1.0 - ratio
    if cubic is None:
        return [(0.0, rest), (1.0, ratio)]
    a = cubic

    def inner(x: OpenLine) -> OpenLine:
        return (x * (a + 2) - (a + 3)) * x * x + 1.0

    def outside(x: OpenLine) -> OpenLine:
        return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a

    return [
        (-1.0, outside(ratio + 1.0)), (0.0, inner(ratio)), (1.0, inner(rest)),
        (2.0, outside(rest + 1.0)),
    ]  # fmt: skip


def gather_weighted(x: int, axis: int, at: OpenLine, weight: OpenLine | None) -> int:
    """The elements of x at whole positions along an axis, times their weights."""
    build = at.node.build
    part = build.gather(x, build.cast(at.index, DType.I64), axis)
    if weight is None:
        return part
    vector = build.cast(weight.index, build.dtype(x))
    return build.binary("mul", part, build.along(vector, axis, build.shape(part)))
