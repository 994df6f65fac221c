"""Lowerings of ops that write where other tensors say, told from the side of what is written to.

Each element of the result asks which updates go to it: all pairs of places and updates are
compared. So what is made is elementwise, gathers and reductions, and needs few updates.
"""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.context import Context, NoLowering, lowering
from satura.rewrite.onnx.lower.indexing import elements_at, wrap_negative
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.types.dims import Dim, product
from satura.rewrite.types.tensor_type import DType

_MOST_PAIRS = 2**22
_FEW = 16
"""Places or updates that all of the others, as many as a size says, are compared with."""
_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
_COMBINED = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


@lowering("ScatterElements")
def scatter_elements(node: Context) -> int:
    """x with update (i, j, …) at (i, index, …) along an axis."""
    build, x, updates = node.build, node[0], node[2]
    axis = node.axis(node.integer("axis"), build.rank(x))
    indices = wrap_negative(node, node[1], build.shape(x)[axis])
    shape, given = build.shape(x), build.shape(indices)
    if given != build.shape(updates) or len(given) != len(shape):
        raise node.wrong(f"indices {build.type(indices)} do not fit {build.type(updates)}")
    _check_pairs(product((*shape, given[axis])), shape[axis], given[axis])
    short = [0 if at == axis else extent - given[at] for at, extent in enumerate(shape)]
    if any(dim != 0 for dim in short):  # updates cover a part of the other axes
        none, zeros = build.constant(-1, DType.I64), [0] * len(shape)
        indices = build.padded(indices, none, zeros, short)
        zero = build.constant(0, build.dtype(updates))
        updates = build.padded(updates, zero, zeros, short)
    order = [*(at for at in range(len(shape)) if at != axis), axis]
    moved = [build.transpose(tensor, order) for tensor in (x, indices, updates)]
    result = _scattered(node, *moved)
    return build.transpose(result, [order.index(at) for at in range(len(shape))])


@lowering("ScatterND")
def scatter_nd(node: Context) -> int:
    """x with slices at index tuples."""
    build, x, updates = node.build, node[0], node[2]
    shape, tuples = build.shape(x), build.shape(node[1])
    (depth,) = node.static(tuples[-1:], "the length of an index")
    count, places = product(tuples[:-1]), product(shape[:depth])
    rest = product(shape[depth:])
    if depth > len(shape) or build.type(updates).size != count * rest:
        raise node.wrong(f"indices {build.type(node[1])} do not fit {build.type(updates)}")
    _check_pairs(places * count * rest, places, count)
    flat = build.full(0, tuples[:-1], DType.I64)
    for at in range(depth):
        part = build.drop(build.one_axis_slice(node[1], len(tuples) - 1, at, 1), [len(tuples) - 1])
        number = wrap_negative(node, part, shape[at])
        stride = build.size_of(shape[at + 1 : depth], flat)
        flat = build.binary("add", flat, build.binary("mul", number, stride))
    lines = build.transpose(build.reshape(updates, (count, rest)), (1, 0))
    index = build.expand(build.reshape(flat, (count,)), (rest, count))
    target = build.transpose(build.reshape(x, (places, rest)), (1, 0))
    return build.reshape(build.transpose(_scattered(node, target, index, lines), (1, 0)), shape)


def _check_pairs(pairs: Dim, places: Dim, count: Dim) -> None:
    """Raise NoLowering where too many pairs of places and updates may have to be compared."""
    if isinstance(pairs, int):
        is_work = pairs <= _MOST_PAIRS
    else:
        is_work = any(isinstance(dim, int) and dim <= _FEW for dim in (places, count))
    if not is_work:
        raise NoLowering


def _scattered(node: Context, x: int, indices: int, updates: int) -> int:
    """x with the updates at the indices along the last axis; of several, the last one."""
    build = node.build
    reduction = node.text("reduction", "none")
    *_, extent = shape = build.shape(x)
    count = build.shape(indices)[-1]
    rank = len(shape)
    if count == 0:
        return x
    pairs = (*shape, count)
    places = build.iota(pairs, rank - 1, DType.I64)
    hits = build.binary("eq", places, _beside(build, indices, pairs))
    if reduction == "none":
        number = build.iota(pairs, rank, DType.I64)
        numbered = build.select(hits, number, build.number(-1, number))
        latest = build.drop(build.reduce("max", numbered, [rank]), [rank])
        is_hit = build.binary("le", build.number(0, latest), latest)
        rows = product(shape[:-1])
        line = build.iota((rows, extent), 0, DType.I64)
        start = build.binary("mul", build.reshape(line, shape), build.size_of([count], latest))
        place = build.binary("add", start, build.apply_number("max", latest, 0))
        flat = build.reshape(updates, (build.type(updates).size,))
        if not isinstance(count, int):  # there may be none, and the place of none is 0
            flat = build.padded(flat, build.constant(0, build.dtype(updates)), (0,), (1,))
        taken = build.gather(flat, place, 0)
        return build.select(is_hit, taken, x)
    if reduction not in _REDUCTIONS:
        raise node.wrong(f"there is no reduction '{reduction}'")
    f = _REDUCTIONS[reduction]
    dtype = build.dtype(x)
    if dtype is DType.BOOL:
        raise NoLowering
    wide = build.converted(_beside(build, updates, pairs), dtype.compute)
    nothing = build.number(reduction_identity(f, dtype.compute), wide)
    added = build.drop(build.reduce(f, build.select(hits, wide, nothing), [rank]), [rank])
    total = build.binary(_COMBINED[f], build.converted(x, dtype.compute), added)
    return build.converted(total, dtype)


def _beside(build: Tensors, x: int, pairs: Sequence[Dim]) -> int:
    """The last axis of x as the last of `pairs`, repeated along the one before."""
    return build.broadcast(build.insert(x, build.rank(x) - 1), pairs)


@lowering("MaxUnpool")
def max_unpool(node: Context) -> int:
    """Elements at the places where a pool found them, and zeros elsewhere."""
    build, x = node.build, node[0]
    if node.optional(2) is not None:
        raise NoLowering  # references differ about what the places count in
    batch, channels, *spatial = build.shape(x)
    kernel = node.integers("kernel_shape") or ()
    strides = node.integers("strides") or (1,) * len(kernel)
    pads = node.integers("pads") or (0,) * (2 * len(kernel))
    if not len(kernel) == len(strides) == len(spatial) == len(pads) // 2:
        raise node.wrong(f"its kernel {list(kernel)} does not fit {build.type(x)}")
    borders = [lo + hi for lo, hi in zip(pads, pads[len(kernel) :], strict=False)]
    parts = zip(spatial, strides, kernel, borders, strict=True)
    outer = [(n - 1) * stride + size - border for n, stride, size, border in parts]
    shape = (batch, channels, *outer)
    places = product(shape)
    _check_pairs(places * build.type(x).size, places, build.type(x).size)
    flat = [build.reshape(node[at], (build.type(x).size,)) for at in (0, 1)]
    empty = build.full(0, (places,), build.dtype(x))
    return build.reshape(_scattered(node, empty, flat[1], flat[0]), shape)


@lowering("TensorScatter")
def tensor_scatter(node: Context) -> int:
    """Each batch of x with its update from its own index on along an axis, maybe around its end."""
    build, x, update = node.build, node[0], node[1]
    shape = build.shape(x)
    axis = node.axis(node.integer("axis", -2), len(shape))
    circular = node.text("mode", "linear") == "circular"
    length = build.shape(update)[axis]
    place = build.iota(shape, axis, DType.I64)
    if node.optional(2) is not None:
        starts = build.along(build.cast(node[2], DType.I64), 0, shape)
        place = build.binary("sub", place, starts)
    if circular:
        place = build.binary("mod", place, build.size_of([shape[axis]], place))
    last = build.apply_number("sub", build.size_of([length], place), 1)
    above = build.binary("le", build.number(0, place), place)
    is_hit = build.binary("and", above, build.binary("le", place, last))
    inside = build.binary("min", build.apply_number("max", place, 0), last)
    return build.select(is_hit, elements_at(build, update, inside, axis), x)
