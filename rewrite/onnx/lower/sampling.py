"""Lowering of GridSample: gathers from the image as rows of channels, times weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.broadcasting import fits
from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.resampling import keys_far, keys_near
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.dims import product as product_of
from satura.rewrite.types.tensor_type import DType

_MODES = {
    "bilinear": "linear", "linear": "linear", "nearest": "nearest",
    "bicubic": "cubic", "cubic": "cubic",
}  # fmt: skip
_CUBIC = -0.75


@dataclass(frozen=True)
class ImageAxis:
    """One spatial axis of the image and how positions beyond it are read."""

    build: Tensors
    extent: Dim
    border: str
    aligned: bool

    def position(self, place: Value) -> Value:
        """Where the coordinates `place` in [-1, 1] lie, in elements."""
        size, grown = self.size(place), place + 1
        return grown / 2 * (size - 1) if self.aligned else (grown * size - 1) / 2

    def size(self, like: Value) -> Value:
        return Value(self.build, self.build.size_of([self.extent], like.index))

    def clamped(self, place: Value) -> Value:
        """`place` moved to the nearest element of the axis."""
        return place.binary("max", 0).binary("min", self.size(place) - 1)

    def reflected(self, place: Value) -> Value:
        """`place` mirrored at either end until it lies within the axis."""
        low = 0.0 if self.aligned else -0.5
        period = ((self.size(place) - (1 if self.aligned else 0)) * 2).binary("max", 1)
        rest = abs(place - low).binary("mod", period)
        return rest.binary("min", period - rest) + low

    def inside(self, place: Value) -> Value:
        """Whether `place` is an element of the axis."""
        return place.binary("eq", self.clamped(place))

    def taps(self, mode: str, place: Value) -> list[tuple[Value, Value | None]]:
        """Positions of the elements around `place`, and their weights."""
        place = self.position(place)
        if mode == "nearest":
            place = place.unary("round")
        if self.border == "reflection":
            place = self.reflected(place)
        elif self.border == "border" and mode != "cubic":
            place = self.clamped(place)
        if mode == "nearest":
            return [(place, None)]
        if mode == "linear":
            return self.around(place)
        below = place.unary("floor")
        ratio = place - below
        rest = 1 - ratio
        weights = [
            (-1, keys_far(ratio + 1, _CUBIC)), (0, keys_near(ratio, _CUBIC)),
            (1, keys_near(rest, _CUBIC)), (2, keys_far(rest + 1, _CUBIC)),
        ]  # fmt: skip
        return [(below + offset if offset else below, weight) for offset, weight in weights]

    def around(self, place: Value) -> list[tuple[Value, Value | None]]:
        """The two elements around `place`, and their weights."""
        below = place.unary("floor")
        ratio = place - below
        return [(below, 1 - ratio), (below + 1, ratio)]


@lowering("GridSample")
@computed_wide
def grid_sample(node: Context) -> int:
    """The image at the positions of the grid, whose last axis counts the axes backwards."""
    build, x, grid = node.build, node[0], node[1]
    mode = _MODES[node.text("mode", "linear")]
    border = node.text("padding_mode", "zeros")
    batch, _, *spatial = build.shape(x)
    rank = len(spatial)
    if mode != "nearest" and not build.dtype(x).is_float:
        raise NoLowering
    fitting = (batch, *build.shape(grid)[1:-1], rank)
    if build.rank(grid) != rank + 2 or not fits(build.shape(grid), fitting):
        raise node.wrong(f"a grid {build.type(grid)} does not fit {build.type(x)}")
    grid = build.exactly(grid, fitting)
    axes = [ImageAxis(build, n, border, bool(node.integer("align_corners"))) for n in spatial]
    places = [
        Value(build, build.drop(build.one_axis_slice(grid, rank + 1, rank - 1 - at, 1), [rank + 1]))
        for at in range(rank)
    ]
    taps = [axis.taps(mode, place) for axis, place in zip(axes, places, strict=True)]
    return build.transpose(sampled(build, x, axes, taps), (0, rank + 1, *range(1, rank + 1)))


Taps = list[tuple[Value, Value | None]]
"""Positions along an axis, all of one shape that starts with the batch, and their weights."""


def sampled(build: Tensors, x: int, axes: list[ImageAxis], taps: list[Taps]) -> int:
    """The sum of the elements of x at the taps of all axes, times their weights; channels are
    behind the axes of the positions."""
    batch, channels, *spatial = build.shape(x)
    last = build.transpose(x, (0, *range(2, len(spatial) + 2), 1))
    rows = build.reshape(last, (product_of((batch, *spatial)), channels))
    terms = [_term(build, rows, axes, corner) for corner in product(*taps)]
    total = terms[0]
    for term in terms[1:]:
        total = build.binary("add", total, term)
    return total


def _term(
    build: Tensors, rows: int, axes: list[ImageAxis], corner: tuple[tuple[Value, Value | None], ...]
) -> int:
    """Elements at one corner around each position, times their weights; 0 in a border of zeros."""
    shape = build.shape(corner[0][0].index)
    flat = Value(build, build.iota(shape, 0, DType.I64))
    weight: Value | None = None
    inside: Value | None = None
    for axis, (place, factor) in zip(axes, corner, strict=True):
        if axis.border == "zeros":
            here = axis.inside(place)
            inside = here if inside is None else inside.binary("and", here)
        elif axis.border == "reflection":
            place = axis.reflected(place)
        number = axis.clamped(place).cast(DType.I64)
        flat = flat * axis.size(flat) + number
        if factor is not None:
            weight = factor if weight is None else weight * factor
    value = Value(build, build.gather(rows, flat.index, 0))

    def spread(x: Value) -> Value:
        return Value(
            build, build.expand(build.insert(x.index, len(shape)), build.shape(value.index))
        )

    if weight is not None:
        value = value * spread(weight).cast(build.dtype(value.index))
    return (value if inside is None else value.where(spread(inside), 0)).index
