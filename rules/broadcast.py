"""Broadcasts move outward: what is computed before an axis is repeated is computed once.

`f(broadcast(x), broadcast(y))` needs only the joint extents of x and y, so per-channel parameters
are combined as vectors and never at the size of the activations.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import Law, Tensor, attribute_function, family, rewrites, rule
from satura.rewrite.language.families import Elementwise, Operands
from satura.rewrite.language.terms import binary, broadcast, pad, reduce, slice_
from satura.rewrite.ops.reductions import SELECTIONS
from satura.rewrite.types.attributes import Axes, BinaryFn, Padding, ReduceFn, Shape, Slices
from satura.rewrite.types.dims import known_at_least
from satura.rewrite.types.tensor_type import TensorType
from satura.rules.reshape import with_units_at


@rule
def compose_broadcasts(x: Tensor, s: Shape, t: Shape) -> Law:
    """broadcast(broadcast(x, s), t) = broadcast(x, t)"""
    return rewrites(broadcast(broadcast(x, s), t), broadcast(x, t))


@rule
def drop_identity_broadcast(x: Tensor, s: Shape) -> Law:
    """broadcast(x, s) = x, when s is the shape of x"""
    return rewrites(broadcast(x, s), x, s.dims == x.type.shape)


@family
def broadcast_out_of(f: Elementwise, xs: Operands[Tensor], s: Shape) -> Law:
    """f(broadcast(x, s)…) = broadcast(f(x…), s), when all x have one shape"""
    return rewrites(f(xs.each(broadcast, s)), broadcast(f(xs), s), *xs.of_one_shape)


@attribute_function
def joint_shape(x: TensorType, y: TensorType) -> Shape:
    """The smallest shape that tensors of both types broadcast to, given that there is one."""
    return Shape(tuple(b if a == 1 else a for a, b in zip(x.shape, y.shape, strict=True)))


@attribute_function
def is_smaller_joint(x: TensorType, y: TensorType, wide: Shape) -> bool:
    """Whether the types differ and their joint shape is less than `wide`."""
    return x.shape != y.shape and joint_shape(x, y) != wide


@rule
def broadcast_out_of_unlike_binary(f: BinaryFn, x: Tensor, y: Tensor, s: Shape) -> Law:
    """f(broadcast(x, s), broadcast(y, s)) = broadcast(f(broadcast(x, j), broadcast(y, j)), s), when
    the joint shape j of x and y is less than s"""
    j = joint_shape(x.type, y.type)
    return rewrites(
        binary(f, broadcast(x, s), broadcast(y, s)),
        broadcast(binary(f, broadcast(x, j), broadcast(y, j)), s),
        is_smaller_joint(x.type, y.type, s),
    )


@attribute_function
def reduces_alike(f: ReduceFn, type_: TensorType, wide: Shape, axes: Axes) -> bool:
    """Whether reducing before repeating gives the same.

    Equal elements have their own max and min, but another sum; no element at all has neither.
    """
    return all(
        type_.shape[axis] == wide.dims[axis]
        or (f.name in SELECTIONS and known_at_least(wide.dims[axis], 1))
        for axis in axes.indices
    )


@rule
def broadcast_out_of_reduce(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """reduce(broadcast(x, s), a) = broadcast(reduce(x, a), s with 1 at a), when no axis of a is
    repeated, or for the max or min of a repeated axis that is not empty"""
    return rewrites(
        reduce(f, broadcast(x, s), axes),
        broadcast(reduce(f, x, axes), with_units_at(s, axes)),
        reduces_alike(f, x.type, s, axes),
    )


@attribute_function
def slices_before_broadcast(type_: TensorType, wide: Shape, slices: Slices) -> Slices:
    """s' such that slice(broadcast(x, w), s) = broadcast(slice(x, s'), sizes of s)."""
    axes = zip(type_.shape, wide.dims, slices.starts, slices.sizes, slices.steps, strict=True)
    chosen = [
        (start, size, step) if old == new else (0, 1, 1) for old, new, start, size, step in axes
    ]
    return Slices(
        tuple(start for start, _, _ in chosen),
        tuple(size for _, size, _ in chosen),
        tuple(step for _, _, step in chosen),
    )


@rule
def broadcast_out_of_slice(x: Tensor, w: Shape, slices: Slices) -> Law:
    """slice(broadcast(x, w), s) = broadcast(slice(x, s'), sizes of s), where s' is s on the
    axes that are not repeated and whole on the others"""
    return rewrites(
        slice_(broadcast(x, w), slices),
        broadcast(slice_(x, slices_before_broadcast(x.type, w, slices)), Shape(slices.sizes)),
    )


@attribute_function
def pads_other_axes(type_: TensorType, wide: Shape, padding: Padding) -> bool:
    """Whether no axis is both repeated and padded."""
    axes = zip(type_.shape, wide.dims, padding.lo, padding.hi, strict=True)
    return all(old == new or (lo == 0 and hi == 0) for old, new, lo, hi in axes)


@rule
def broadcast_out_of_pad(x: Tensor, v: Tensor, w: Shape, padding: Padding) -> Law:
    """pad(broadcast(x, w), v, b) = broadcast(pad(x, v, b), w widened by b), when no repeated
    axis is padded"""
    return rewrites(
        pad(broadcast(x, w), v, padding),
        broadcast(pad(x, v, padding), Shape(pad(broadcast(x, w), v, padding).type.shape)),
        pads_other_axes(x.type, w, padding),
    )
