"""Reshapes move past everything that treats the regrouped axes alike, and merge.

Elementwise ops do not see shapes at all. Ops on some axes (reduce, slice, pad, concat, broadcast)
let a reshape pass when it only regroups other axes: `matched_axes` says where theirs are found.
"""

from __future__ import annotations

from satura.rewrite.language.conditions import has_value
from satura.rewrite.language.dsl import (
    Known,
    Law,
    Tensor,
    Varying,
    attribute_function,
    both,
    family,
    rewrites,
    rule,
)
from satura.rewrite.language.families import Arithmetic, Elementwise, Operands, Others, Some
from satura.rewrite.language.terms import (
    broadcast,
    cast,
    concat,
    matmul,
    pad,
    reduce,
    reshape,
    slice_,
)
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Padding,
    ReduceFn,
    Refuse,
    Shape,
    Slices,
    refuse_unless,
)
from satura.rewrite.types.dims import Dim, exact_quotient, known_at_least, product
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules.axis_groups import Block, blocks, matched_axes, replace_axis


@rule
def compose_reshapes(x: Tensor, s: Shape, t: Shape) -> Law:
    """reshape(reshape(x, s), t) = reshape(x, t)"""
    return rewrites(reshape(reshape(x, s), t), reshape(x, t))


@rule
def drop_identity_reshape(x: Tensor, s: Shape) -> Law:
    """reshape(x, s) = x, when s is the shape of x"""
    return rewrites(reshape(x, s), x, s.dims == x.type.shape)


@family
def reshape_past(f: Elementwise, xs: Operands[Varying], s: Shape) -> Law:
    """f(reshape(x, s)…) = reshape(f(x…), s), when all x have one shape"""
    return rewrites(f(xs.each(reshape, s)), reshape(f(xs), s), *xs.of_one_shape)


@rule
def reshape_into_cast(x: Varying, dtype: DType, s: Shape) -> Law:
    """reshape(cast(x, t), s) = cast(reshape(x, s), t)"""
    return rewrites(reshape(cast(x, dtype), s), cast(reshape(x, s), dtype))


@attribute_function
def broadcast_before_reshape(type_: TensorType, wide: Shape, shape: Shape) -> Shape:
    """t such that reshape(broadcast(x, w), s) = broadcast(reshape(x, t), s).

    Of each group of axes that the reshape merges or splits, all are repeated or none.
    """
    dims: list[Dim] = [1] * len(shape.dims)
    for mine, theirs in blocks(wide.dims, shape.dims):
        repeated = [type_.shape[axis] == 1 for axis in mine]
        refuse_unless(len(set(repeated)) == 1, "an axis is partly repeated")
        if not repeated[0]:
            for axis in theirs:
                dims[axis] = shape.dims[axis]
    return Shape(tuple(dims))


@rule
def reshape_into_broadcast(x: Tensor, w: Shape, s: Shape) -> Law:
    """reshape(broadcast(x, w), s) = broadcast(reshape(x, t), s), when of each group of axes that s
    merges or splits all are repeated or none"""
    return rewrites(
        reshape(broadcast(x, w), s),
        broadcast(reshape(x, broadcast_before_reshape(x.type, w, s)), s),
    )


@attribute_function
def broadcast_under_reshape(type_: TensorType, shape: Shape, wide: Shape) -> Shape:
    """t such that broadcast(reshape(x, s), w) = reshape(broadcast(x, t), w)."""
    pairs = enumerate(zip(shape.dims, wide.dims, strict=True))
    repeated = [axis for axis, (old, new) in pairs if old != new]
    sources = matched_axes(shape.dims, type_.shape, repeated)
    return Shape(replace_axis(type_.shape, sources, (wide.dims[axis] for axis in repeated)))


@rule
def reshape_out_of_broadcast(x: Varying, s: Shape, w: Shape) -> Law:
    """broadcast(reshape(x, s), w) = reshape(broadcast(x, t), w), when x has the axes of extent 1
    that are repeated"""
    return rewrites(
        broadcast(reshape(x, s), w),
        reshape(broadcast(x, broadcast_under_reshape(x.type, s, w)), w),
    )


@family
def reshape_out_of(
    f: Arithmetic, xs: Some[Varying], ys: Others[Tensor], cs: Others[Known], s: Shape
) -> Law:
    """f(reshape(x, s)…, broadcast(y, s)…, c…) = reshape(f(x…, reshape(broadcast(y, s), t)…,
    reshape(c, t)…), s), when all x have one shape t and each inner reshape can pass its broadcast,
    and with known c"""
    t, wide = xs.shape, ys.each(broadcast, s)
    return rewrites(
        f(xs.each(reshape, s), wide, cs),
        reshape(f(xs, wide.each(reshape, t), cs.each(reshape, t)), s),
        *xs.of_one_shape,
        *(has_value(broadcast_before_reshape(y.type, s, t)) for y in ys),
    )


@attribute_function
def axes_of_reshaped(old: Shape, new: Shape, axes: Axes) -> Axes:
    """Where `axes` of a tensor of shape `old` are after a reshape to `new`."""
    return Axes(matched_axes(old.dims, new.dims, axes.indices))


@attribute_function
def with_units_at(shape: Shape, axes: Axes) -> Shape:
    """`shape` where the given axes have extent 1."""
    return Shape(replace_axis(shape.dims, axes.indices, [1] * len(axes.indices)))


@rule
def reshape_past_reduce(f: ReduceFn, x: Varying, s: Shape, axes: Axes) -> Law:
    """reduce(reshape(x, s), a) = reshape(reduce(x, a'), s with 1 at a), when the axes a are axes a'
    of x"""
    return rewrites(
        reduce(f, reshape(x, s), axes),
        reshape(
            reduce(f, x, axes_of_reshaped(s, Shape(x.type.shape), axes)),
            with_units_at(s, axes),
        ),
    )


@attribute_function
def in_batches_of(matrices: TensorType, others: TensorType, shape: Shape) -> Shape:
    """The shape of `matrices` in the batch axes of `others`, which `shape` regroups."""
    refuse_unless(others.shape[-2:] == shape.dims[-2:], "the matrices are regrouped")
    before, after = ([n for n in dims[:-2] if n != 1] for dims in (others.shape, shape.dims))
    refuse_unless(before != after, "only axes of extent 1 come or go")
    refuse_unless(product(before) == product(after), "as many matrices only where they are empty")
    return Shape((*others.shape[:-2], *matrices.shape[-2:]))


@rule
def reshape_out_of_matmul(x: Tensor, y: Varying, s: Shape) -> Law:
    """matmul(x, reshape(y, s)) = reshape(matmul(reshape(x, t), y), …), when s only regroups the
    batch axes, and t has those of y; also with the operands swapped"""
    after, before = matmul(x, reshape(y, s)), matmul(reshape(y, s), x)
    t = in_batches_of(x.type, y.type, s)
    return both(
        rewrites(after, reshape(matmul(reshape(x, t), y), Shape(after.type.shape))),
        rewrites(before, reshape(matmul(y, reshape(x, t)), Shape(before.type.shape))),
    )


def _cut_axes(shape: tuple[Dim, ...], slices: Slices) -> list[int]:
    """Axes that `slices` does not leave whole."""
    whole = zip(shape, slices.sizes, slices.steps, strict=True)
    return [axis for axis, (dim, size, step) in enumerate(whole) if size != dim or step != 1]


def _sliced_at(
    shape: tuple[Dim, ...], at: tuple[int, ...], slices: Slices, axes: list[int]
) -> Slices:
    """Slices of a `shape` tensor that cut its axes `at` as `slices` cuts `axes`."""
    rank = len(shape)
    steps = [1] * rank
    for place, axis in zip(at, axes, strict=True):
        steps[place] = slices.steps[axis]
    return Slices(
        replace_axis([0] * rank, at, (slices.starts[axis] for axis in axes)),
        replace_axis(shape, at, (slices.sizes[axis] for axis in axes)),
        tuple(steps),
    )


@attribute_function
def slices_under_reshape(type_: TensorType, shape: Shape, slices: Slices) -> Slices:
    """s' such that slice(reshape(x, t), s) = reshape(slice(x, s'), sizes of s)."""
    axes = _cut_axes(shape.dims, slices)
    at = matched_axes(shape.dims, type_.shape, axes)
    return _sliced_at(type_.shape, at, slices, axes)


@attribute_function
def shape_before_slice(type_: TensorType, slices: Slices, shape: Shape) -> Shape:
    """t' such that reshape(slice(x, s), t) = slice(reshape(x, t'), s').

    Axes that are cut to one element may stand anywhere in t, and give x another shape each time.
    """
    axes = _cut_axes(type_.shape, slices)
    refuse_unless(all(slices.sizes[axis] != 1 for axis in axes), "an axis is cut to one element")
    at = matched_axes(slices.sizes, shape.dims, axes)
    return Shape(replace_axis(shape.dims, at, (type_.shape[axis] for axis in axes)))


@attribute_function
def slices_after_reshape(type_: TensorType, slices: Slices, shape: Shape) -> Slices:
    """s' such that reshape(slice(x, s), t) = slice(reshape(x, t'), s')."""
    axes = _cut_axes(type_.shape, slices)
    at = matched_axes(slices.sizes, shape.dims, axes)
    return _sliced_at(shape.dims, at, slices, axes)


@rule
def reshape_past_slice(x: Varying, t: Shape, slices: Slices) -> Law:
    """slice(reshape(x, t), s) = reshape(slice(x, s'), sizes of s), when the reshape only regroups
    axes that s leaves whole; inwards when s cuts no axis to one element"""
    return both(
        rewrites(
            slice_(reshape(x, t), slices),
            reshape(slice_(x, slices_under_reshape(x.type, t, slices)), Shape(slices.sizes)),
        ),
        rewrites(
            reshape(slice_(x, slices), t),
            slice_(
                reshape(x, shape_before_slice(x.type, slices, t)),
                slices_after_reshape(x.type, slices, t),
            ),
        ),
    )


@attribute_function
def padding_under_reshape(type_: TensorType, shape: Shape, padding: Padding) -> Padding:
    """b' such that pad(reshape(x, s), v, b) = reshape(pad(x, v, b'), s widened by b)."""
    axes = [
        axis for axis in range(len(shape.dims)) if padding.lo[axis] != 0 or padding.hi[axis] != 0
    ]
    at = matched_axes(shape.dims, type_.shape, axes)
    none = [0] * type_.rank
    return Padding(
        replace_axis(none, at, (padding.lo[axis] for axis in axes)),
        replace_axis(none, at, (padding.hi[axis] for axis in axes)),
    )


@rule
def reshape_out_of_pad(x: Varying, v: Tensor, s: Shape, padding: Padding) -> Law:
    """pad(reshape(x, s), v, b) = reshape(pad(x, v, b'), s widened by b), when the reshape only
    regroups axes that are not padded"""
    return rewrites(
        pad(reshape(x, s), v, padding),
        reshape(
            pad(x, v, padding_under_reshape(x.type, s, padding)),
            Shape(pad(reshape(x, s), v, padding).type.shape),
        ),
    )


@attribute_function
def part_of_reshape(whole: TensorType, part: TensorType, axis: Axis, shape: Shape) -> Shape:
    """Shape of the reshaped `part` of a concatenation along `axis` that is reshaped to `shape`."""
    mine, theirs = _concat_target(whole, axis, shape)
    inner = product(shape.dims[theirs[0] + 1 : theirs[-1] + 1])
    size = product(part.shape[index] for index in mine)
    extent = exact_quotient(size, inner)
    if extent is None or not known_at_least(extent, 0):
        raise Refuse("a part does not fill whole rows")
    return Shape(replace_axis(shape.dims, theirs[:1], [extent]))


@attribute_function
def concat_axis_of_reshape(whole: TensorType, axis: Axis, shape: Shape) -> Axis:
    """The axis along which the reshaped parts are concatenated."""
    return Axis(_concat_target(whole, axis, shape)[1][0])


def _concat_target(whole: TensorType, axis: Axis, shape: Shape) -> Block:
    """The axes that are regrouped together with the concatenated one, and what they become."""
    for mine, theirs in blocks(whole.shape, shape.dims):
        if mine[0] == axis.index:
            return mine, theirs
    raise Refuse("the axis is not the outermost of those that become one")


@rule
def reshape_into_concat(x: Tensor, y: Tensor, axis: Axis, s: Shape) -> Law:
    """reshape(concat(x, y, axis), s) = concat(reshape(x, s'), reshape(y, s''), axis'), when the
    parts fill whole rows of what the axis becomes"""
    whole = concat(x, y, axis).type
    return rewrites(
        reshape(concat(x, y, axis), s),
        concat(
            reshape(x, part_of_reshape(whole, x.type, axis, s)),
            reshape(y, part_of_reshape(whole, y.type, axis, s)),
            concat_axis_of_reshape(whole, axis, s),
        ),
    )


@attribute_function
def concat_axis_under_reshape(x: TensorType, y: TensorType, s: Shape, t: Shape, axis: Axis) -> Axis:
    """The axis of x and y that becomes axis `axis` of reshape(x, s) and reshape(y, t)."""
    (mine,) = matched_axes(s.dims, x.shape, [axis.index])
    (theirs,) = matched_axes(t.dims, y.shape, [axis.index])
    refuse_unless(mine == theirs, "the parts have the axis at different places")
    rest = [x.shape[:mine] + x.shape[mine + 1 :], y.shape[:mine] + y.shape[mine + 1 :]]
    refuse_unless(rest[0] == rest[1], "the parts are grouped differently")
    return Axis(mine)


@rule
def reshape_out_of_concat(x: Tensor, y: Tensor, s: Shape, t: Shape, axis: Axis) -> Law:
    """concat(reshape(x, s), reshape(y, t), axis) = reshape(concat(x, y, axis'), …), when the
    reshapes only regroup other axes, and alike"""
    return rewrites(
        concat(reshape(x, s), reshape(y, t), axis),
        reshape(
            concat(x, y, concat_axis_under_reshape(x.type, y.type, s, t, axis)),
            Shape(concat(reshape(x, s), reshape(y, t), axis).type.shape),
        ),
    )
