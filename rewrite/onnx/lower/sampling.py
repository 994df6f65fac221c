"""Lowering of GridSample: gathers from the image as rows of channels, times weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.dims import product as product_of
from satura.rewrite.types.tensor_type import DType

_MODES = {
    "bilinear": "linear", "linear": "linear", "nearest": "nearest",
    "bicubic": "cubic", "cubic": "cubic",
}  # fmt: skip
_BORDERS = ("zeros", "border", "reflection")
_CUBIC = -0.75


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of the image and how positions beyond it are read."""

    build: Tensors
    extent: Dim
    border: str
    aligned: bool

    def position(self, place: int) -> int:
        """Where the coordinates `place` in [-1, 1] lie, in elements."""
        build, size = self.build, self.size(place)
        grown = build.apply_number("add", place, 1)
        if self.aligned:
            half = build.apply_number("div", grown, 2)
            return build.binary("mul", half, build.apply_number("sub", size, 1))
        moved = build.apply_number("sub", build.binary("mul", grown, size), 1)
        return build.apply_number("div", moved, 2)

    def size(self, like: int) -> int:
        return self.build.size_of([self.extent], like)

    def clamped(self, place: int) -> int:
        """`place` moved to the nearest element of the axis."""
        last = self.build.apply_number("sub", self.size(place), 1)
        return self.build.binary("min", self.build.apply_number("max", place, 0), last)

    def reflected(self, place: int) -> int:
        """`place` mirrored at either end until it lies within the axis."""
        build, low = self.build, 0.0 if self.aligned else -0.5
        width = build.apply_number("sub", self.size(place), 1 if self.aligned else 0)
        period = build.apply_number("max", build.apply_number("mul", width, 2), 1)
        distance = build.unary("abs", build.apply_number("sub", place, low))
        rest = build.binary("mod", distance, period)
        mirrored = build.binary("min", rest, build.binary("sub", period, rest))
        return build.apply_number("add", mirrored, low)

    def inside(self, place: int) -> int:
        """Whether `place` is an element of the axis."""
        build = self.build
        above = build.binary("le", build.number(0, place), place)
        return build.binary("and", above, build.binary("lt", place, self.size(place)))

    def taps(self, mode: str, place: int) -> list[tuple[int, int | None]]:
        """Positions of the elements around `place`, and their weights."""
        build = self.build
        place = self.position(place)
        if mode == "nearest":
            place = build.unary("round", place)
        if self.border == "reflection":
            place = self.reflected(place)
        elif self.border == "border" and mode != "cubic":
            place = self.clamped(place)
        if mode == "nearest":
            return [(place, None)]
        below = build.unary("floor", place)
        ratio = build.binary("sub", place, below)
        rest = build.binary("sub", build.number(1, ratio), ratio)
        if mode == "linear":
            weights = [(0, rest), (1, ratio)]
        else:
            weights = [
                (-1, _outer(build, build.apply_number("add", ratio, 1))),
                (0, _inner(build, ratio)),
                (1, _inner(build, rest)),
                (2, _outer(build, build.apply_number("add", rest, 1))),
            ]
        return [(build.apply_number("add", below, offset), weight) for offset, weight in weights]


def _inner(build: Tensors, x: int) -> int:
    """Keys' cubic filter for |x| <= 1: ((a + 2)·x - (a + 3))·x² + 1"""
    line = build.apply_number("sub", build.apply_number("mul", x, _CUBIC + 2), _CUBIC + 3)
    return build.apply_number("add", build.binary("mul", build.binary("mul", line, x), x), 1)


def _outer(build: Tensors, x: int) -> int:
    """Keys' cubic filter for 1 < |x| < 2: ((a·x - 5a)·x + 8a)·x - 4a"""
    result = build.apply_number("mul", x, _CUBIC)
    for term in (-5 * _CUBIC, 8 * _CUBIC):
        result = build.binary("mul", build.apply_number("add", result, term), x)
    return build.apply_number("sub", result, 4 * _CUBIC)


@lowering("GridSample")
@computed_wide
def grid_sample(node: Context) -> int:
    """The image at the positions of the grid, whose last axis counts the axes backwards."""
    build, x, grid = node.build, node[0], node[1]
    mode = _MODES.get(node.text("mode", "linear"))
    border = node.text("padding_mode", "zeros")
    if mode is None or border not in _BORDERS:
        raise node.wrong(f"there is no mode '{node.text('mode')}' or padding_mode '{border}'")
    batch, channels, *spatial = build.shape(x)
    rank = len(spatial)
    if mode != "nearest" and not build.dtype(x).is_float:
        raise NoLowering
    if build.rank(grid) != rank + 2 or build.shape(grid)[-1] != rank:
        raise node.wrong(f"a grid {build.type(grid)} does not fit {rank} spatial axes")
    axes = [_Axis(build, n, border, bool(node.integer("align_corners"))) for n in spatial]
    places = [
        build.drop(build.one_axis_slice(grid, rank + 1, rank - 1 - at, 1), [rank + 1])
        for at in range(rank)
    ]
    taps = [axis.taps(mode, place) for axis, place in zip(axes, places, strict=True)]
    last = build.transpose(x, (0, *range(2, rank + 2), 1))
    rows = build.reshape(last, (product_of((batch, *spatial)), channels))
    terms = [_term(build, rows, axes, corner) for corner in product(*taps)]
    total = terms[0]
    for term in terms[1:]:
        total = build.binary("add", total, term)
    return build.transpose(total, (0, rank + 1, *range(1, rank + 1)))


def _term(
    build: Tensors, rows: int, axes: list[_Axis], corner: tuple[tuple[int, int | None], ...]
) -> int:
    """Elements at one corner around each position, times their weights; 0 in a border of zeros."""
    shape = build.shape(corner[0][0])
    flat = build.iota(shape, 0, DType.I64)
    weight: int | None = None
    inside: int | None = None
    for axis, (place, factor) in zip(axes, corner, strict=True):
        if axis.border == "zeros":
            here = axis.inside(place)
            inside = here if inside is None else build.binary("and", inside, here)
        elif axis.border == "reflection":
            place = axis.reflected(place)
        number = build.cast(axis.clamped(place), DType.I64)
        flat = build.binary("mul", flat, axis.size(flat))
        flat = build.binary("add", flat, number)
        if factor is not None:
            weight = factor if weight is None else build.binary("mul", weight, factor)
    value = build.gather(rows, flat, 0)
    wide = build.shape(value)
    if weight is not None:
        spread = build.expand(build.insert(weight, len(shape)), wide)
        value = build.binary("mul", value, build.converted(spread, build.dtype(value)))
    if inside is None:
        return value
    spread = build.expand(build.insert(inside, len(shape)), wide)
    return build.select(spread, value, build.number(0, value))
