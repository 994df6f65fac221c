"""Lowering of AffineGrid: the coordinates of an image's elements, moved by matrices."""

from __future__ import annotations

from functools import reduce

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.broadcasting import fits
from satura.rewrite.onnx.lower.context import Context, computed_wide, lowering
from satura.rewrite.types.dims import Dim, SymbolicDim


@lowering("AffineGrid")
@computed_wide
def affine_grid(node: Context) -> int:
    """theta · (coordinates, 1) per element of the image, the last axis' coordinate first.

    The function body that ONNX gives is wrong for batches of 1: it drops all axes of extent 1.
    """
    build, theta = node.build, node[0]
    batch, _, *spatial = node.extents(1) if len(node.dims(1)) > 1 else (0, 0)
    rank = len(spatial)
    if rank not in (2, 3):
        raise node.wrong(f"its size has {rank + 2} entries, not 4 or 5")
    if build.rank(theta) != 3 or not fits(build.shape(theta)[1:], (rank, rank + 1)):
        raise node.wrong(f"theta {build.type(theta)} does not fit {rank} spatial axes")
    theta = build.expand(theta, (batch, rank, rank + 1))
    columns = [
        build.reshape(build.one_axis_slice(theta, 2, at, 1), (batch, *(1,) * rank, rank))
        for at in range(rank + 1)
    ]
    terms = [
        build.apply("mul", columns[rank - 1 - axis], _coordinates(node, axis, spatial).index)
        for axis in reversed(range(rank))
    ]
    total = reduce(lambda x, y: build.apply("add", x, y), [*terms, columns[rank]])
    return build.expand(total, (batch, *spatial, rank))


def _coordinates(node: Context, axis: int, spatial: list[Dim]) -> Value:
    """Where elements lie along an axis between -1 and 1, to broadcast with the grid.

    Each is a quotient of whole numbers, so that it is rounded once and the middle one is 0.
    """
    build, theta, extent = node.build, node[0], spatial[axis]
    line: list[Dim] = [1] * (len(spatial) + 2)
    line[axis + 1] = extent
    place = Value(build, build.iota(line, axis + 1, build.dtype(theta)))
    size = Value(build, build.size_of([extent], place.index))
    if not node.integer("align_corners"):
        return (place * 2 + (1 - size)) / size
    last = size - 1
    if isinstance(extent, SymbolicDim) or extent == 1:  # a single element lies at -1
        last = last.binary("max", 1)
    return (place * 2 - last) / last
