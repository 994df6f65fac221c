"""Transposes move through everything that does not care in which order the axes stand.

The importer writes every channels-first convolution as a channels-last one between two transposes.
These laws carry transposes towards the outputs until they meet their inverse, so converting a
model's layout is nothing but transposes that cancel. Where only one operand of a binary function is
transposed, the other is transposed back. Axes of extent 1 are moved by reshapes, never by
transposes, else every order of them would be a transpose of its own. In an equation p(s) are the
entries of s in the order of the transposed axes.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import (
    Law,
    Movable,
    Tensor,
    Untransposed,
    Varying,
    attribute_function,
    both,
    family,
    replaces,
    rewrites,
    rule,
)
from satura.rewrite.language.families import Arithmetic, Elementwise, Operands, Others, Some
from satura.rewrite.language.terms import (
    arg_reduce,
    broadcast,
    concat,
    pad,
    pool,
    reduce,
    reshape,
    select,
    slice_,
    transpose,
)
from satura.rewrite.ops.reductions import SELECTIONS
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    Window,
    refuse_unless,
)
from satura.rewrite.types.tensor_type import TensorType
from satura.rules.axis_groups import around_units, blocks, order_of_groups


@attribute_function
def source_axis(axis: Axis, perm: Perm) -> Axis:
    """The operand's axis that is axis `axis` of the transposed tensor."""
    return Axis(perm.order[axis.index])


@attribute_function
def source_axes(axes: Axes, perm: Perm) -> Axes:
    """The operand's axes that are `axes` of the transposed tensor."""
    return Axes(tuple(sorted(perm.order[axis] for axis in axes.indices)))


@attribute_function
def same_combination(f: ReduceFn, type_: TensorType, axes: Axes, perm: Perm) -> bool:
    """Whether f gives the same bits when `axes` of the transposed tensor are combined in its order.

    Sums and products of floats are rounded at every step, so there the order must stay.
    """
    sources = [perm.order[axis] for axis in axes.indices]
    return f.name in SELECTIONS or not type_.dtype.is_float or sources == sorted(sources)


@attribute_function
def long_axes(window: Window) -> Axes:
    """Axes along which the window combines more than one element."""
    return Axes(tuple(axis for axis, size in enumerate(window.sizes) if size != 1))


@attribute_function
def moves_only_units(type_: TensorType, perm: Perm) -> bool:
    """Whether all axes but those of extent 1 keep their order."""
    kept = [axis for axis in perm.order if type_.shape[axis] != 1]
    return kept == sorted(kept)


@attribute_function
def reorders(type_: TensorType, perm: Perm) -> bool:
    """Whether the transpose moves more than axes of extent 1; others are reshapes."""
    return not moves_only_units(type_, perm)


@attribute_function
def reorders_both(type_: TensorType, first: Perm, then: Perm) -> bool:
    """Whether both transposes move more than axes of extent 1."""
    between = type_.with_shape(first.apply(type_.shape))
    return reorders(type_, first) and reorders(between, then)


@attribute_function
def reorders_some(first: TensorType, second: TensorType, perm: Perm) -> bool:
    """Whether the transpose moves more than axes of extent 1 of one of the two."""
    return reorders(first, perm) or reorders(second, perm)


@attribute_function
def with_units_in_order(type_: TensorType, perm: Perm) -> Perm:
    """The permutation with the same result whose axes of extent 1 keep their order."""
    units = iter(axis for axis, dim in enumerate(type_.shape) if dim == 1)
    return Perm(tuple(next(units) if type_.shape[axis] == 1 else axis for axis in perm.order))


@rule
def compose_transposes(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, p∘q), when neither is a mere reshape"""
    return rewrites(
        transpose(transpose(x, p), q),
        transpose(x, with_units_in_order(x.type, p[q])),
        reorders_both(x.type, p, q),
    )


@rule
def drop_identity_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(x, identity) = x"""
    return rewrites(transpose(x, p), x, p.is_identity)


@attribute_function
def moves_units(type_: TensorType, perm: Perm) -> bool:
    """Whether axes move, and only such of extent 1."""
    return not perm.is_identity and moves_only_units(type_, perm)


@rule
def transpose_of_units(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when p moves only axes of extent 1"""
    return replaces(
        transpose(x, p), reshape(x, Shape(x.type.shape).permuted(p)), moves_units(x.type, p)
    )


@attribute_function
def without_units(type_: TensorType, perm: Perm) -> Perm:
    """The permutation that moves wide axes alike and leaves those of extent 1 where they are."""
    wide = (axis for axis in perm.order if type_.shape[axis] != 1)
    moved = around_units(type_.shape, wide)
    refuse_unless(moved != perm.order, "no axis of extent 1 moves")
    refuse_unless(list(moved) != sorted(moved), "the transpose is a reshape")
    return Perm(moved)


@rule
def units_out_of_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(transpose(x, q), p(shape)), where q moves the axes like p, but
    leaves those of extent 1 where they are"""
    return replaces(
        transpose(x, p),
        reshape(transpose(x, without_units(x.type, p)), Shape(x.type.shape).permuted(p)),
    )


@family
def transpose_past(f: Elementwise, xs: Operands[Untransposed], p: Perm) -> Law:
    """f(transpose(x, p)…) = transpose(f(x…), p)"""
    return rewrites(f(xs.each(transpose, p)), transpose(f(xs), p))


@family
def transpose_out_of(
    f: Arithmetic,
    xs: Some[Untransposed],
    ys: Others[Movable],
    zs: Others[Tensor],
    p: Perm,
    s: Shape,
) -> Law:
    """f(transpose(x, p)…, y…, broadcast(z, s)…) = transpose(f(x…, transpose(y, p⁻¹)…,
    broadcast(transpose(z, p⁻¹), p⁻¹(s))…), p), when y… are worth moving"""
    q, narrow = p.inverse, zs.each(transpose, p.inverse)
    return rewrites(
        f(xs.each(transpose, p), ys, zs.each(broadcast, s)),
        transpose(f(xs, ys.each(transpose, q), narrow.each(broadcast, s.permuted(q))), p),
    )


@rule
def transpose_out_of_select_with_broadcast(
    c: Tensor, x: Untransposed, y: Tensor, p: Perm, shape: Shape
) -> Law:
    """select(T(c), T(x), broadcast(y)) = T(select(c, x, broadcast(T⁻¹(y)))), T = transpose by p"""
    return rewrites(
        select(transpose(c, p), transpose(x, p), broadcast(y, shape)),
        transpose(select(c, x, broadcast(transpose(y, p.inverse), shape.permuted(p.inverse))), p),
    )


@rule
def transpose_past_reduce(f: ReduceFn, x: Varying, axes: Axes, p: Perm) -> Law:
    """reduce(transpose(x, p), p⁻¹(a)) = transpose(reduce(x, a), p), when no sum is reordered"""
    return rewrites(
        reduce(f, transpose(x, p), axes),
        transpose(reduce(f, x, source_axes(axes, p)), p),
        same_combination(f, x.type, axes, p),
    )


@rule(reassociates=True)
def transpose_out_of_reordered_reduce(f: ReduceFn, x: Varying, axes: Axes, p: Perm) -> Law:
    """reduce(transpose(x, p), axes) = transpose(reduce(x, p(axes)), p)"""
    return rewrites(
        reduce(f, transpose(x, p), axes), transpose(reduce(f, x, source_axes(axes, p)), p)
    )


@rule
def transpose_past_arg_reduce(f: ReduceFn, x: Varying, axis: Axis, last: Count, p: Perm) -> Law:
    """arg_reduce(transpose(x, p), p⁻¹(axis)) = transpose(arg_reduce(x, axis), p)"""
    return rewrites(
        arg_reduce(f, transpose(x, p), axis, last),
        transpose(arg_reduce(f, x, source_axis(axis, p), last), p),
    )


@rule
def transpose_past_pool(f: ReduceFn, x: Varying, window: Window, p: Perm) -> Law:
    """pool(transpose(x, p), p(w)) = transpose(pool(x, w), p), when no sum is reordered"""
    return rewrites(
        pool(f, transpose(x, p), window),
        transpose(pool(f, x, window.permuted(p.inverse)), p),
        same_combination(f, x.type, long_axes(window), p),
    )


@rule
def transpose_past_pad(x: Varying, v: Tensor, padding: Padding, p: Perm) -> Law:
    """pad(transpose(x, p), v, p(b)) = transpose(pad(x, v, b), p), outwards unless p is a reshape"""
    return both(
        rewrites(
            pad(transpose(x, p), v, padding),
            transpose(pad(x, v, padding.permuted(p.inverse)), p),
            reorders(x.type, p),
        ),
        rewrites(
            transpose(pad(x, v, padding), p),
            pad(transpose(x, p), v, padding.permuted(p)),
        ),
    )


@attribute_function
def reorders_rest(type_: TensorType, slices: Slices, perm: Perm) -> bool:
    """Whether the transpose moves more than axes of extent 1, of which the slices make none.

    Where such an axis stands says nothing of the slice, but would give the whole another layout.
    """
    pairs = zip(type_.shape, slices.sizes, strict=True)
    is_cut = any(size == 1 and dim != 1 for dim, size in pairs)
    return not is_cut and reorders(type_.with_shape(slices.sizes), perm)


@rule
def transpose_past_slice(x: Varying, slices: Slices, p: Perm) -> Law:
    """slice(transpose(x, p), p(s)) = transpose(slice(x, s), p), inwards when p is not a reshape and
    no axis is cut to one element"""
    return both(
        rewrites(
            slice_(transpose(x, p), slices),
            transpose(slice_(x, slices.permuted(p.inverse)), p),
        ),
        rewrites(
            transpose(slice_(x, slices), p),
            slice_(transpose(x, p), slices.permuted(p)),
            reorders_rest(x.type, slices, p),
        ),
    )


@rule
def transpose_past_concat(x: Tensor, y: Tensor, axis: Axis, p: Perm) -> Law:
    """concat(transpose(x, p), transpose(y, p), p⁻¹(axis)) = transpose(concat(x, y, axis), p),
    outwards when p is not a reshape of both"""
    return both(
        rewrites(
            concat(transpose(x, p), transpose(y, p), axis),
            transpose(concat(x, y, source_axis(axis, p)), p),
            reorders_some(x.type, y.type, p),
        ),
        rewrites(
            transpose(concat(x, y, axis), p),
            concat(transpose(x, p), transpose(y, p), source_axis(axis, p.inverse)),
        ),
    )


@rule
def transpose_into_broadcast(x: Tensor, shape: Shape, p: Perm) -> Law:
    """transpose(broadcast(x, s), p) = broadcast(transpose(x, p), p(s))"""
    return rewrites(
        transpose(broadcast(x, shape), p), broadcast(transpose(x, p), shape.permuted(p))
    )


@rule
def transpose_out_of_broadcast(x: Varying, shape: Shape, p: Perm) -> Law:
    """broadcast(transpose(x, p), p(s)) = transpose(broadcast(x, s), p), when p is not a reshape"""
    return rewrites(
        broadcast(transpose(x, p), shape),
        transpose(broadcast(x, shape.permuted(p.inverse)), p),
        reorders(x.type, p),
    )


@attribute_function
def regrouped_source(type_: TensorType, perm: Perm, shape: Shape) -> Shape:
    """s' such that reshape(transpose(x, p), s) = transpose(reshape(x, s'), p')."""
    return Shape(tuple(shape.dims[axis] for axis in _source_order(type_, perm, shape)))


@attribute_function
def regrouped_perm(type_: TensorType, perm: Perm, shape: Shape) -> Perm:
    """p' such that reshape(transpose(x, p), s) = transpose(reshape(x, s'), p')."""
    return Perm(_source_order(type_, perm, shape)).inverse


def _source_order(type_: TensorType, perm: Perm, shape: Shape) -> tuple[int, ...]:
    """The axes of `shape` in the order in which x itself has their groups."""
    refuse_unless(not moves_only_units(type_, perm), "the transpose is a reshape")
    refuse_unless(shape.dims != perm.apply(type_.shape), "the reshape changes nothing")
    groups = blocks(perm.apply(type_.shape), shape.dims)
    order = order_of_groups(perm.inverse.order, [mine for mine, _ in groups])
    return around_units(shape.dims, (axis for number in order for axis in groups[number][1]))


@rule
def transpose_past_reshape(x: Varying, p: Perm, shape: Shape) -> Law:
    """reshape(transpose(x, p), s) = transpose(reshape(x, s'), p'), when the axes that the reshape
    merges or splits together stand side by side on both sides of the transpose"""
    return rewrites(
        reshape(transpose(x, p), shape),
        transpose(reshape(x, regrouped_source(x.type, p, shape)), regrouped_perm(x.type, p, shape)),
    )


@attribute_function
def regrouped_after(type_: TensorType, shape: Shape, perm: Perm) -> Perm:
    """p' such that transpose(reshape(x, s), p) = reshape(transpose(x, p'), p(s))."""
    refuse_unless(not moves_only_units(type_.with_shape(shape.dims), perm), "it is a reshape")
    groups = blocks(type_.shape, shape.dims)
    refuse_unless(any(len(mine) > 1 for mine, _ in groups), "the reshape merges nothing")
    order = order_of_groups(perm.order, [theirs for _, theirs in groups])
    refuse_unless(order[0] == 0, "the first axis moves")
    return Perm(around_units(type_.shape, (axis for number in order for axis in groups[number][0])))


@rule
def reshape_out_of_transpose(x: Varying, s: Shape, p: Perm) -> Law:
    """transpose(reshape(x, s), p) = reshape(transpose(x, p'), p(s)), when s merges axes, those that
    it regroups stand side by side after p, too, and the first stay the first, as batches do"""
    return rewrites(
        transpose(reshape(x, s), p),
        reshape(transpose(x, regrouped_after(x.type, s, p)), s.permuted(p)),
    )
