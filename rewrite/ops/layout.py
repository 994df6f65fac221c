"""Layout ops: they only move elements, so inside a kernel each is an index map."""

import numpy as np

from satura.rewrite.ops.registry import Kind, op
from satura.rewrite.types.attributes import Axis, Padding, Perm, Shape, Slices, refuse_unless
from satura.rewrite.types.copies import reshaped
from satura.rewrite.types.dims import SymbolicDim, is_one, product, static
from satura.rewrite.types.tensor_type import Array, TensorType


@op(kind=Kind.LAYOUT, reference=lambda x, perm: np.transpose(x, perm.order))
def transpose(x: TensorType, perm: Perm) -> TensorType:
    """Axis i of the result is axis perm[i] of x."""
    refuse_unless(sorted(perm.order) == list(range(x.rank)), f"{perm} does not permute {x}")
    return x.with_shape(perm.apply(x.shape))


@op(kind=Kind.LAYOUT, reference=lambda x, shape: reshaped(x, shape.dims))
def reshape(x: TensorType, shape: Shape) -> TensorType:
    """The same elements in row-major order under another shape."""
    new = product(shape.dims)
    refuse_unless(new == x.size, f"{x} has {x.size} elements, {shape} has {new}")
    return x.with_shape(shape.dims)


@op(kind=Kind.LAYOUT, reference=lambda x, shape: np.broadcast_to(x, shape.dims))
def broadcast(x: TensorType, shape: Shape) -> TensorType:
    """Axes of extent 1 are repeated up to `shape`; the rank stays."""
    refuse_unless(len(shape.dims) == x.rank, f"{shape} has another rank than {x}")
    pairs = zip(x.shape, shape.dims, strict=True)
    fits = all(is_one(old) or old in (new, 1) for old, new in pairs)
    refuse_unless(fits, f"{x} does not broadcast to {shape}")
    return x.with_shape(shape.dims)


@op(kind=Kind.LAYOUT, reference=lambda x, slices: x[slices.numpy])
def slice_(x: TensorType, slices: Slices) -> TensorType:
    """Along each axis `size` elements from `start` on, every `step`-th; a step may be negative."""
    refuse_unless(len(slices.sizes) == x.rank, f"{slices} has another rank than {x}")
    for dim, start, size, step in zip(
        x.shape, slices.starts, slices.sizes, slices.steps, strict=True
    ):
        refuse_unless(isinstance(step, int) and step != 0, f"a step is {step}")
        known = all(isinstance(value, int) for value in (dim, start, size))
        if known and size != 0:
            last = start + (size - 1) * step
            inside = all(0 <= static(at) < static(dim) for at in (start, last))
            refuse_unless(inside, f"{slices} reaches outside {x}")
        refuse_unless(isinstance(size, SymbolicDim) or size >= 0, "a size is negative")
    return x.with_shape(slices.sizes)


def _pad(x: Array, value: Array, padding: Padding) -> Array:
    extents = [
        n + static(lo) + static(hi)
        for n, lo, hi in zip(x.shape, padding.lo, padding.hi, strict=True)
    ]
    result = np.full(extents, value, x.dtype)
    result[
        tuple(slice(static(lo), static(lo) + n) for n, lo in zip(x.shape, padding.lo, strict=True))
    ] = x
    return result


@op(kind=Kind.LAYOUT, reference=_pad)
def pad(x: TensorType, value: TensorType, padding: Padding) -> TensorType:
    """x with elements of the 0-d tensor `value` before and after each axis."""
    refuse_unless(len(padding.lo) == len(padding.hi) == x.rank, f"{padding} does not fit {x}")
    refuse_unless(
        value == TensorType(x.dtype, ()), f"the fill of {x} must be a scalar, not {value}"
    )
    for dim in (*padding.lo, *padding.hi):
        refuse_unless(isinstance(dim, SymbolicDim) or dim >= 0, "padding is negative")
    shape = zip(padding.lo, x.shape, padding.hi, strict=True)
    return x.with_shape(tuple(lo + dim + hi for lo, dim, hi in shape))


@op(kind=Kind.LAYOUT, reference=lambda x, y, axis: np.concatenate([x, y], axis.index))
def concat(x: TensorType, y: TensorType, axis: Axis) -> TensorType:
    """x, then y, along `axis`; all other extents agree."""
    refuse_unless(x.rank == y.rank and x.dtype == y.dtype, f"{x} and {y} do not concatenate")
    refuse_unless(0 <= axis.index < x.rank, f"axis {axis} is out of range for {x}")
    shape = list(x.shape)
    for index, (mine, theirs) in enumerate(zip(x.shape, y.shape, strict=True)):
        if index == axis.index:
            shape[index] = mine + theirs
        else:
            refuse_unless(mine == theirs, f"{x} and {y} differ in axis {index}")
    return x.with_shape(tuple(shape))
