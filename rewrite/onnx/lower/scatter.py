"""Lowerings of ops that write where other tensors say."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.errors import ProgramError
from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, NoLowering, lowering
from satura.rewrite.onnx.lower.places import (
    Index,
    along_axis,
    counted,
    elements_at,
    joined,
    need_beside,
    up_to,
)
from satura.rewrite.types.dims import Dim, known_at_least, product
from satura.rewrite.types.tensor_type import DType

_REDUCTIONS = {"none": "last", "add": "sum", "mul": "prod", "max": "max", "min": "min"}


@lowering("ScatterElements")
def scatter_elements(node: Context) -> int:
    """x with update (i, j, …) at (i, index, …) along an axis."""
    build, x = node.build, node[0]
    shape = build.shape(x)
    axis = node.axis(node.integer("axis"), len(shape))
    target = build.shape(node[1])
    if len(target) != len(shape):
        raise node.wrong(f"indices {build.type(node[1])} do not fit {build.type(x)}")
    updates = _fitted(node, target)
    need_beside(node, shape, target, axis)
    axes = along_axis(build, shape, counted(node, shape[axis]), axis)
    return _scatter_last(node, x, joined(build, axes, target), updates, len(shape))


@lowering("ScatterND")
def scatter_nd(node: Context) -> int:
    """x with slices at index tuples."""
    build, x = node.build, node[0]
    shape, tuples = build.shape(x), build.shape(node[1])
    (depth,) = node.static(tuples[-1:], "the length of an index")
    if depth > len(shape):
        raise node.wrong(f"indices of length {depth} do not fit rank {len(shape)}")
    updates = _fitted(node, (*tuples[:-1], *shape[depth:]))
    axes = [counted(node, shape[at], at) for at in range(depth)]
    return _scatter_last(node, x, joined(build, axes, tuples[:-1]), updates, depth)


def _fitted(node: Context, shape: Sequence[Dim]) -> int:
    """The updates, which have this shape wherever the model runs."""
    try:
        return node.build.exactly(node[2], shape)
    except ProgramError as error:
        raise node.wrong(
            f"indices {node.build.type(node[1])} do not fit updates: {error}"
        ) from None


def _scatter_last(node: Context, x: int, places: int, updates: int, depth: int) -> int:
    """x with updates at places of its first `depth` axes, one after another."""
    build, shape, dtype = node.build, node.build.shape(x), node.build.dtype(x)
    reduction = node.text("reduction", "none")
    if dtype.is_narrow or (dtype is DType.BOOL and reduction != "none"):
        raise NoLowering
    count, width = build.type(places).size, product(shape[depth:])
    wide = dtype if reduction == "none" else dtype.compute
    result = build.scatter(
        build.reshape(build.converted(x, wide), (product(shape[:depth]), width)),
        build.reshape(places, (count,)),
        build.reshape(build.converted(updates, wide), (count, width)),
        _REDUCTIONS[reduction],
    )
    return build.converted(build.reshape(result, shape), dtype)


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
    return _scatter_last(node, build.full(0, shape, build.dtype(x)), node[1], x, len(shape))


@lowering("TensorScatter")
def tensor_scatter(node: Context) -> int:
    """Each batch of x with its update from its own index on along an axis, maybe around its end."""
    build, x = node.build, node[0]
    shape = build.shape(x)
    axis = node.axis(node.integer("axis", -2), len(shape))
    circular = node.text("mode", "linear") == "circular"
    length = build.shape(node[1])[axis] if build.rank(node[1]) == len(shape) else shape[axis]
    update = build.exactly(node[1], (*shape[:axis], length, *shape[axis + 1 :]))
    if known_at_least(length - shape[axis], 1):
        raise node.wrong(f"an update of {length} elements does not fit {shape[axis]}")
    build.need_elements(shape[axis] - length, 0)
    place = build.iota(shape, axis, DType.I64)
    if node.optional(2) is not None:
        first = shape[0]
        given = (
            build.exactly(build.converted(node[2], DType.I64), (first,))
            if circular
            else up_to(node, 2, shape[axis] - length, first)
        )
        place = build.binary("sub", place, build.along(given, 0, shape))
    if circular:
        place = build.binary("mod", place, build.size_of([shape[axis]], place))
    at, last = Value(build, place), Value(build, build.size_of([length], place)) - 1
    is_hit = (at >= 0).binary("and", at <= last)
    inside = at.binary("max", 0).binary("min", last)
    return build.select(
        is_hit.index, elements_at(build, update, Index(inside.index, length), axis), x
    )
