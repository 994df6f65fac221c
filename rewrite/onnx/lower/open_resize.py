"""Resampling along an axis whose extents depend on sizes: positions are computed by the program."""

from __future__ import annotations

from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


class _Line:
    """A vector of f64 with an element per element of the result, in arithmetic with numbers too."""

    def __init__(self, node: Context, index: int) -> None:
        self.node, self.index = node, index

    def _with(self, f: str, other: _Line | float, swapped: bool = False) -> _Line:
        build = self.node.build
        given = other.index if isinstance(other, _Line) else build.number(other, self.index)
        pair = (given, self.index) if swapped else (self.index, given)
        return _Line(self.node, build.binary(f, *pair))

    def __add__(self, other: _Line | float) -> _Line:
        return self._with("add", other)

    def __sub__(self, other: _Line | float) -> _Line:
        return self._with("sub", other)

    def __rsub__(self, other: float) -> _Line:
        return self._with("sub", other, swapped=True)

    def __mul__(self, other: _Line | float) -> _Line:
        return self._with("mul", other)

    def __truediv__(self, other: _Line | float) -> _Line:
        return self._with("div", other)

    def function(self, f: str) -> _Line:
        return _Line(self.node, self.node.build.unary(f, self.index))

    def clipped(self, top: _Line) -> _Line:
        """Between 0 and `top`."""
        return self._with("min", top)._with("max", 0.0)

    def where(self, size: _Line, number: float, other: float) -> _Line:
        """`other` where `size` is `number`, else this."""
        is_number = size._with("eq", number).index
        given = self.node.build.number(other, self.index)
        return _Line(self.node, self.node.build.select(is_number, given, self.index))


def line_of(node: Context, outer: Dim) -> _Line:
    """0, 1, … for each element of an axis of the result."""
    return _Line(node, node.build.iota((outer,), 0, DType.F64))


def size_along(line: _Line, dim: Dim) -> _Line:
    """The number `dim` in each element."""
    return _Line(line.node, line.node.build.size_of([dim], line.index))


def position(x: _Line, extent: _Line, outer: _Line, scale: float | None, mode: str) -> _Line:
    """For each element of the result its position in the input; no scale is that of the sizes."""
    factor = outer / extent if scale is None else extent * 0.0 + scale
    if mode == "asymmetric":
        return x / factor
    if mode == "align_corners":
        width = factor * extent
        return (x * (extent - 1.0) / (width - 1.0)).where(width, 1.0, 0.0)
    half = (x + 0.5) / factor - 0.5
    return half.where(outer, 1.0, 0.0) if mode == "pytorch_half_pixel" else half


def nearest(at: _Line, rounding: str) -> _Line:
    """The element that nearest takes at a position."""
    if rounding in ("floor", "ceil"):
        return at.function(rounding)
    if rounding == "round_prefer_floor":
        return (at - 0.5).function("ceil")
    return (at + 0.5).function("floor")


def weights(ratio: _Line, cubic: float | None) -> list[tuple[float, _Line]]:
    """Per tap how far it is from the element below, and its weight; linear without `cubic`."""
    rest = 1.0 - ratio
    if cubic is None:
        return [(0.0, rest), (1.0, ratio)]
    a = cubic

    def inner(x: _Line) -> _Line:
        return (x * (a + 2) - (a + 3)) * x * x + 1.0

    def outside(x: _Line) -> _Line:
        return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a

    return [
        (-1.0, outside(ratio + 1.0)), (0.0, inner(ratio)), (1.0, inner(rest)),
        (2.0, outside(rest + 1.0)),
    ]  # fmt: skip


def gather_weighted(x: int, axis: int, at: _Line, weight: _Line | None) -> int:
    """The elements of x at whole positions along an axis, times their weights."""
    build = at.node.build
    part = build.gather(x, build.cast(at.index, DType.I64), axis)
    if weight is None:
        return part
    vector = build.cast(weight.index, build.dtype(x))
    return build.binary("mul", part, build.along(vector, axis, build.shape(part)))
