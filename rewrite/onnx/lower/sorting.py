"""Lowering of TopK: the rank of an element is how many come before it."""

from __future__ import annotations

from satura.rewrite.onnx.lower.context import Context, NoLowering, lowering
from satura.rewrite.types.dims import SymbolicDim, product, representative
from satura.rewrite.types.tensor_type import DType

_MOST_PAIRS = 2**22


@lowering("TopK")
def top_k(node: Context) -> list[int]:
    """The largest or smallest elements along an axis, in order, and where they were.

    All pairs of elements of a row are compared. Of equal ones the first comes first; a NaN is
    larger than all numbers.
    """
    build, x = node.build, node[0]
    shape = build.shape(x)
    axis = node.axis(node.integer("axis", -1), len(shape))
    (count,) = (node.integer("k"),) if node.opset < 10 else node.fixed(1)
    extent, size = shape[axis], build.type(x).size
    if isinstance(extent, SymbolicDim):
        build.need_at_least(extent, count)
    elif representative(size) * max(extent, count) > _MOST_PAIRS:
        raise NoLowering
    if count < 0 or (isinstance(extent, int) and count > extent):
        raise node.wrong(f"axis {axis} has {extent} elements, of which it takes {count}")
    order = [*(at for at in range(len(shape)) if at != axis), axis]
    number = product(dim for at, dim in enumerate(shape) if at != axis)
    rows = build.reshape(build.transpose(x, order), (number, extent))
    pairs = (number, extent, extent)
    own = build.broadcast(build.reshape(rows, (number, extent, 1)), pairs)
    other = build.broadcast(build.reshape(rows, (number, 1, extent)), pairs)
    first, second = (own, other) if node.integer("largest", 1) else (other, own)
    before = build.binary("lt", first, second)
    equal = build.binary("eq", own, other)
    if build.dtype(x).is_float:
        unordered, beside = build.unary("isnan", first), build.unary("isnan", second)
        only = build.binary("and", beside, build.unary("not", unordered))
        before = build.binary("or", before, only)
        equal = build.binary("or", equal, build.binary("and", unordered, beside))
    place, other_place = (build.iota(pairs, at, DType.I64) for at in (1, 2))
    earlier = build.binary("and", equal, build.binary("lt", other_place, place))
    comes = build.cast(build.binary("or", before, earlier), DType.I64)
    ranks = build.reduce("sum", comes, [2])
    wanted = (number, extent, count)
    chosen = build.binary("eq", build.broadcast(ranks, wanted), build.iota(wanted, 2, DType.I64))
    places = build.iota(wanted, 1, DType.I64)
    found = build.reduce("sum", build.select(chosen, places, build.number(0, places)), [1])
    indices = build.reshape(found, (number, count))
    line = build.iota((number, count), 0, DType.I64)
    starts = build.binary("mul", line, build.size_of([extent], line))
    flat = build.reshape(rows, (size,))
    values = build.gather(flat, build.binary("add", starts, indices), 0)
    back = [order.index(at) for at in range(len(shape))]
    outer = [*(dim for at, dim in enumerate(shape) if at != axis), count]
    return [build.transpose(build.reshape(result, outer), back) for result in (values, indices)]
