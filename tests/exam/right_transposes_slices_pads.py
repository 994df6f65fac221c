"""Laws of transposes, slices, pads and concatenations, all of them right."""

import typing
from collections.abc import Iterable

from satura.language import (
    Axis,
    Elementwise,
    Law,
    Movable,
    Operands,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    Unpadded,
    Untransposed,
    Varying,
    attribute_function,
    broadcast,
    concat,
    equates,
    family,
    pad,
    refuse_unless,
    replaces,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
    unary,
)


@rule
def undo_transposes(x: Varying, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = x, when q undoes p"""
    return replaces(transpose(transpose(x, p), q), x, p[q].is_identity)


@attribute_function
def keeps_order(t: TensorType, p: Perm) -> bool:
    """Whether p leaves the order of all axes but those of extent 1."""
    moved = [axis for axis in p.order if t.shape[axis] != 1]
    return moved == sorted(moved)


@rule
def reshape_instead_of_moving_units(x: Tensor, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = reshape(x, s), when p moves only axes of extent 1"""
    return rewrites(reshape(transpose(x, p), s), reshape(x, s), keeps_order(x.type, p))


@rule
def slice_below_transpose(x: Untransposed, p: Perm, s: Slices) -> Law:
    """slice(transpose(x, p), s) = transpose(slice(x, p⁻¹(s)), p)"""
    return rewrites(slice_(transpose(x, p), s), transpose(slice_(x, s.permuted(p.inverse)), p))


@family
def slices_inside(f: Elementwise, xs: Operands[Varying], s: Slices) -> Law:
    """slice(f(x…), s) = f(slice(x, s)…)"""
    return rewrites(slice_(f(xs), s), f(xs.each(slice_, s)))


@attribute_function
def below(axis: Axis, p: Perm) -> Axis:
    """The operand's axis."""
    return Axis(p.order[axis.index])


@rule
def concat_below_transpose(x: Movable, y: Tensor, p: Perm, axis: Axis) -> Law:
    """concat(transpose(x, p), transpose(y, p), axis) = transpose(concat(x, y, p(axis)), p)"""
    return rewrites(
        concat(transpose(x, p), transpose(y, p), axis),
        transpose(concat(x, y, below(axis, p)), p),
    )


@attribute_function
def units_of(s: Shape) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * len(s.dims))


@rule
def reshape_of_one_repeated_element(x: Tensor, w: Shape, s: Shape) -> Law:
    """reshape(broadcast(x, w), s) = broadcast(reshape(x, ones), s), when x has one element"""
    return rewrites(
        reshape(broadcast(x, w), s), broadcast(reshape(x, units_of(s)), s), x.type.size == 1
    )


@attribute_function
def together(a: Padding, b: Padding) -> Padding:
    """The sum."""
    refuse_unless(len(a.lo) == len(b.lo), "ranks differ")
    return Padding(
        tuple(i + j for i, j in zip(a.lo, b.lo)), tuple(i + j for i, j in zip(a.hi, b.hi))
    )


@rule
def pads_of_one_value(x: Unpadded, c: Scalar, a: Padding, b: Padding, f: UnaryFn) -> Law:
    """f(pad(pad(x, c, a), c, b)) = pad(f(x), f(c), a + b)"""
    return rewrites(
        unary(f, pad(pad(x, c, a), c, b)), pad(unary(f, x), unary(f, c), together(a, b))
    )


@attribute_function
def inside(s: Slices, b: Padding, t: TensorType) -> Slices:
    """s shifted, where all that it reads lies inside."""
    starts = []
    entries = zip(s.starts, s.sizes, s.steps, b.lo, t.shape)
    for start, size, step, lo, n in typing.cast(Iterable[tuple[int, int, int, int, int]], entries):
        refuse_unless(all(isinstance(k, int) for k in (start, size, lo, n)), "open")
        refuse_unless(size >= 1, "nothing is read")
        last = start + (size - 1) * step
        refuse_unless(lo <= min(start, last) and max(start, last) < lo + n, "reads the border")
        starts.append(start - lo)
    return Slices(tuple(starts), s.sizes, s.steps)


@rule
def slice_inside_border(x: Tensor, c: Scalar, b: Padding, s: Slices) -> Law:
    """slice(pad(x, c, b), s) = slice(x, s shifted), when no element of the border is read, in any
    step"""
    return rewrites(slice_(pad(x, c, b), s), slice_(x, inside(s, b, x.type)))


@attribute_function
def only_border(s: Slices, b: Padding, t: TensorType) -> bool:
    """Whether along some axis all that s reads lies before, or all behind, the operand."""
    entries = zip(s.starts, s.sizes, s.steps, b.lo, t.shape)
    for start, size, step, lo, n in typing.cast(Iterable[tuple[int, int, int, int, int]], entries):
        if all(isinstance(k, int) for k in (start, size, lo, n)) and size >= 1:
            last = start + (size - 1) * step
            if max(start, last) < lo or min(start, last) >= lo + n:
                return True
    return False


@rule
def slice_of_border_alone(x: Tensor, c: Scalar, b: Padding, s: Slices) -> Law:
    """slice(pad(x, c, b), s) = c everywhere, when s reads only the border along some axis"""
    whole = slice_(pad(x, c, b), s)
    return rewrites(
        whole,
        broadcast(reshape(c, units_of(Shape(s.sizes))), Shape(s.sizes)),
        only_border(s, b, x.type),
    )


@rule
def concat_is_associative(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """concat(x, concat(y, z)) = concat(concat(x, y), z), along one axis"""
    return equates(concat(x, concat(y, z, axis), axis), concat(concat(x, y, axis), z, axis))
