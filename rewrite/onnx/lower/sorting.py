"""Lowering of TopK."""

from __future__ import annotations

from satura.rewrite.onnx.lower.context import Context, NoLowering, lowering
from satura.rewrite.types.dims import SymbolicDim, product
from satura.rewrite.types.tensor_type import DType

_LONGEST_AXIS = 2**48  # elements: as many as an address tells apart


@lowering("TopK")
def top_k(node: Context) -> list[int]:
    """The largest or smallest elements along an axis, in order, and where they were."""
    build, x = node.build, node[0]
    shape = build.shape(x)
    axis = node.axis(node.integer("axis", -1), len(shape))
    (count,) = (node.integer("k"),) if node.opset < 10 else node.fixed(1, 1)
    extent = shape[axis]
    if build.dtype(x).is_narrow:
        raise NoLowering
    if count > _LONGEST_AXIS:
        raise node.wrong(f"it takes {count} elements of axis {axis}: no axis is so long")
    if isinstance(extent, SymbolicDim):
        build.need_at_least(extent, count)
    if count < 0 or (isinstance(extent, int) and count > extent):
        raise node.wrong(f"axis {axis} has {extent} elements, of which it takes {count}")
    order = [*(at for at in range(len(shape)) if at != axis), axis]
    number = product(dim for at, dim in enumerate(shape) if at != axis)
    rows = build.reshape(build.transpose(x, order), (number, extent))
    places = build.first_places(rows, count, bool(node.integer("largest", 1)))
    row = build.iota((number, count), 0, DType.I64)
    flat = build.binary("add", build.binary("mul", row, build.size_of([extent], row)), places)
    values = build.gather(build.reshape(rows, (number * extent,)), flat, 0)
    back = [order.index(at) for at in range(len(shape))]
    outer = [*(dim for at, dim in enumerate(shape) if at != axis), count]
    return [build.transpose(build.reshape(each, outer), back) for each in (values, places)]
