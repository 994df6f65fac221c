"""Lowering of TopK: the rank of an element is how many come before it."""

from __future__ import annotations

import numpy as np

from satura.rewrite.onnx.lower.context import Context, NoLowering, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.types.dims import Dim, SymbolicDim, product, representative
from satura.rewrite.types.tensor_type import DType

_MOST_PAIRS = 2**22
_SHORTEST_BLOCK = 64
_MOST_DEEP = 2
"""Blocks of the first of blocks: a 16th of a long row remains, whose pairs are compared."""


@lowering("TopK")
def top_k(node: Context) -> list[int]:
    """The largest or smallest elements along an axis, in order, and where they were.

    Pairs of elements of a row are compared. Of equal ones the first comes first; a NaN is
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
    results = _first(build, rows, count, bool(node.integer("largest", 1)))
    back = [order.index(at) for at in range(len(shape))]
    outer = [*(dim for at, dim in enumerate(shape) if at != axis), count]
    return [build.transpose(build.reshape(result, outer), back) for result in results]


def _first(
    build: Tensors, rows: int, count: int, is_largest: bool, depth: int = 0
) -> tuple[int, int]:
    """The first `count` elements of each row and their places.

    Where rows are as long as a size says, they are the first of the first of its blocks.
    """
    number, extent = build.shape(rows)
    if not isinstance(extent, SymbolicDim) or depth == _MOST_DEEP or not count:
        return _first_in_pairs(build, rows, count, is_largest)
    length = max(_SHORTEST_BLOCK, 4 * count)
    blocks = (extent + (length - 1)) // length
    last = build.constant(_last_of_all(build.dtype(rows), is_largest), build.dtype(rows))
    filled = build.padded(rows, last, (0, 0), (0, blocks * length - extent))
    parts = build.reshape(filled, (number * blocks, length))
    firsts, inside = _first_in_pairs(build, parts, count, is_largest)
    joined = build.reshape(firsts, (number, blocks * count))
    values, at = _first(build, joined, count, is_largest, depth + 1)
    found = build.gather(
        build.reshape(inside, (build.type(inside).size,)), _flat(build, at, blocks * count), 0
    )
    block = build.apply_number("div", at, count)
    return values, build.binary("add", build.apply_number("mul", block, length), found)


def _last_of_all(dtype: DType, is_largest: bool) -> object:
    """An element that nothing comes after."""
    if is_largest:
        return reduction_identity("max", dtype)
    return np.nan if dtype.is_float else reduction_identity("min", dtype)


def _flat(build: Tensors, places: int, extent: Dim) -> int:
    """Places in rows of `extent` elements as places in all of them."""
    row = build.iota(build.shape(places), 0, DType.I64)
    return build.binary("add", build.binary("mul", row, build.size_of([extent], row)), places)


def _first_in_pairs(build: Tensors, rows: int, count: int, is_largest: bool) -> tuple[int, int]:
    """As `_first`, all pairs of elements of a row compared."""
    number, extent = build.shape(rows)
    pairs = (number, extent, extent)
    own = build.broadcast(build.reshape(rows, (number, extent, 1)), pairs)
    other = build.broadcast(build.reshape(rows, (number, 1, extent)), pairs)
    first, second = (own, other) if is_largest else (other, own)
    before = build.binary("lt", first, second)
    equal = build.binary("eq", own, other)
    if build.dtype(rows).is_float:
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
    flat = build.reshape(rows, (build.type(rows).size,))
    return build.gather(flat, _flat(build, indices, extent), 0), indices
