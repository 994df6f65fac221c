"""Ops that move or create elements, in ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from satura.rewrite.onnx.write.emitter import Emitter, Site, kernel_type
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import (
    Axis,
    Padding,
    Perm,
    Shape,
    Slices,
)
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType

_WITH_EXPAND = {DType.BF16: DType.F32}
_WITH_PAD = {DType.BF16: DType.F32, DType.I16: DType.I32, DType.U16: DType.I32}


def write_reshape(emit: Emitter, x: str, dims: Sequence[Dim], old: Sequence[Dim] = ()) -> str:
    """x, of shape `old` where that is known, under another shape.

    Open extents need no node to compute them where they stay at their place or one follows.
    """
    open_ = [at for at, dim in enumerate(dims) if isinstance(dim, SymbolicDim)]
    if open_ and 0 not in dims:
        if all(at < len(old) and dims[at] == old[at] for at in open_):
            return emit.node("Reshape", x, emit.integers(_with(dims, 0)), allowzero=0)
        if len(open_) == 1:
            return emit.node("Reshape", x, emit.integers(_with(dims, -1)), allowzero=1)
    return emit.node("Reshape", x, emit.shape(dims), allowzero=1)


def _with(dims: Sequence[Dim], code: int) -> list[int]:
    """`dims` with a number for those that are open."""
    return [dim if isinstance(dim, int) else code for dim in dims]


def write_expand(emit: Emitter, x: str, dims: Sequence[Dim], dtype: DType) -> str:
    """x repeated along axes of extent 1."""
    work = kernel_type(dtype, _WITH_EXPAND)
    return emit.cast(emit.node("Expand", emit.cast(x, dtype, work), emit.shape(dims)), work, dtype)


def write_pad(
    emit: Emitter, x: str, value: str, lo: Sequence[Dim], hi: Sequence[Dim], dtype: DType
) -> str:
    """x with `value` before and after each axis."""
    work = kernel_type(dtype, _WITH_PAD)
    source, order = emit.source(emit.cast(x, dtype, work))
    amounts = (*_ordered(lo, order), *_ordered(hi, order))
    operands = source, emit.shape(amounts), emit.cast(value, dtype, work)
    padded = emit.node("Pad", *operands, mode="constant")
    return emit.cast(emit.turned(padded, order), work, dtype)


def _ordered(values: Sequence[Dim], order: Sequence[int]) -> Sequence[Dim]:
    """One value per axis, for what is a transpose by `order` of the tensor asked for."""
    return [values[order.index(axis)] for axis in range(len(order))] if order else values


def write_slice(
    emit: Emitter, x: str, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]
) -> str:
    """x[start:end] along these axes."""
    return emit.node("Slice", x, *(emit.integers(bounds) for bounds in (starts, ends, axes)))


def transpose(emit: Emitter, site: Site) -> str:
    """transpose(x, perm)"""
    perm = site.node.attributes[0]
    assert isinstance(perm, Perm)
    return emit.turned(site.operand(0), perm.order)


def reshaped(nodes: Sequence[Node], node: Node) -> int:
    """What a reshape, or several in a row, are of."""
    source = node.operands[0]
    while nodes[source].op is node.op:
        source = nodes[source].operands[0]
    return source


def reads_of_reshape(nodes: Sequence[Node], node: Node) -> tuple[int, ...]:
    """What a reshape reads: nothing where it makes a line of a size, which is written as one."""
    is_line = node.type.shape == (1,) and nodes[reshaped(nodes, node)].op.name == "extent"
    return () if is_line else node.operands


def reshape(emit: Emitter, site: Site) -> str:
    """reshape(x, shape); that of a transpose which only moves axes of extent 1 is its source's."""
    if not site.reads:
        dims = site.nodes[reshaped(site.nodes, site.node)].attributes[0]
        assert isinstance(dims, Shape)
        return emit.extent(dims.dims[0])
    source, order = emit.source(site.operand(0))
    shape = site.type(0).shape
    moved = [axis for axis, dim in zip(order, shape, strict=False) if dim != 1]
    if not order or moved != sorted(moved):
        return write_reshape(emit, site.operand(0), site.node.type.shape, shape)
    old = [dim for _, dim in sorted(zip(order, shape, strict=True), key=itemgetter(0))]
    return write_reshape(emit, source, site.node.type.shape, old)


def broadcast(emit: Emitter, site: Site) -> str:
    """broadcast(x, shape)"""
    type_ = site.node.type
    if site.type(0) == type_:
        return site.operand(0)
    return write_expand(emit, site.operand(0), type_.shape, type_.dtype)


def slice_(emit: Emitter, site: Site) -> str:
    """slice(x, slices); a negative step counts from the end, where ONNX can say "before 0"."""
    slices = site.node.attributes[0]
    assert isinstance(slices, Slices)
    if not slices.sizes:
        return site.operand(0)
    starts: list[Dim] = []
    ends: list[Dim] = []
    steps: list[int] = []
    cut: list[int] = []
    dtype = site.node.type.dtype
    work = kernel_type(dtype)
    source, order = emit.source(emit.cast(site.operand(0), dtype, work))
    axes = zip(slices.starts, slices.sizes, slices.steps, site.type(0).shape, strict=True)
    for axis, (start, size, step, dim) in enumerate(axes):
        if (start, size, step) != (0, dim, 1):
            origin: Dim = dim if step < 0 else 0
            starts.append(start - origin)
            ends.append(start + size * step - origin)
            steps.append(step)
            cut.append(order[axis] if order else axis)
    if not cut:
        return site.operand(0)
    operands = emit.shape(starts), emit.shape(ends), emit.integers(cut), emit.integers(steps)
    return emit.cast(emit.turned(emit.node("Slice", source, *operands), order), work, dtype)


def pad(emit: Emitter, site: Site) -> str:
    """pad(x, value, padding)"""
    padding = site.node.attributes[0]
    assert isinstance(padding, Padding)
    if padding.is_zero:
        return site.operand(0)
    value = site.operand(1)
    return write_pad(emit, site.operand(0), value, padding.lo, padding.hi, site.node.type.dtype)


def concat(emit: Emitter, site: Site) -> str:
    """concat(x, y, axis)"""
    axis = site.node.attributes[0]
    assert isinstance(axis, Axis)
    dtype = site.node.type.dtype
    work = kernel_type(dtype)
    places = range(len(site.reads))
    operands = [emit.cast(site.operand(position), dtype, work) for position in places]
    return emit.cast(emit.node("Concat", *operands, axis=axis.index), work, dtype)


def gather(emit: Emitter, site: Site) -> str:
    """gather(x, indices, axis)"""
    axis = site.node.attributes[0]
    assert isinstance(axis, Axis)
    dtype = site.node.type.dtype
    work = kernel_type(dtype)
    x = emit.cast(site.operand(0), dtype, work)
    return emit.cast(emit.node("Gather", x, site.operand(1), axis=axis.index), work, dtype)


def iota(emit: Emitter, site: Site) -> str:
    """iota(shape, axis, dtype): a Range, laid along its axis and repeated along the others."""
    shape, axis = site.node.attributes[:2]
    assert isinstance(shape, Shape) and isinstance(axis, Axis)
    length = shape.dims[axis.index]
    stop = write_reshape(emit, emit.extent(length), ())
    ramp = emit.node("Range", emit.scalar(0, DType.I64), stop, emit.scalar(1, DType.I64))
    dtype = site.node.type.dtype
    ramp = emit.cast(ramp, DType.I64, dtype)
    line: list[Dim] = [1] * len(shape.dims)
    line[axis.index] = length
    return write_expand(emit, write_reshape(emit, ramp, line), shape.dims, dtype)


def extent(emit: Emitter, site: Site) -> str:
    """extent(dim) as a scalar"""
    shape = site.node.attributes[0]
    assert isinstance(shape, Shape)
    return write_reshape(emit, emit.extent(shape.dims[0]), ())


def write_fill(emit: Emitter, value: float | int | bool, dims: Sequence[Dim], dtype: DType) -> str:
    """A tensor of one value."""
    return write_expand(emit, emit.scalar(value, dtype), dims, dtype)
