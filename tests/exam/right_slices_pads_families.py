"""Laws of slices, pads, concatenations and families, all of them right."""

import typing
from collections.abc import Iterable

from satura.language import (
    Arithmetic,
    Axis,
    Contraction,
    Dim,
    Elementwise,
    Law,
    Operands,
    Others,
    Padding,
    Scalars,
    Shape,
    Slices,
    Some,
    Tensor,
    TensorType,
    Unpadded,
    Varying,
    attribute_function,
    broadcast,
    concat,
    family,
    gather,
    pad,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def one_after_the_other(a: Slices, b: Slices) -> Slices:
    """a, then b."""
    refuse_unless(numbers(*a.starts, *b.starts, *b.sizes), "symbolic")
    starts = tuple(i + j * step for i, j, step in zip(a.starts, b.starts, a.steps))
    return Slices(starts, b.sizes, tuple(i * j for i, j in zip(a.steps, b.steps)))


@attribute_function
def takes_what_was_there(s: Slices, b: Padding, x: TensorType) -> bool:
    """Whether s takes just what was padded."""
    return s.starts == b.lo and s.sizes == x.shape and all(step == 1 for step in s.steps)


@attribute_function
def is_in_border(s: Slices, b: Padding, x: TensorType) -> bool:
    """Whether s takes nothing of x, as along some axis it stays in front of it or behind."""
    each = zip(s.starts, s.sizes, s.steps, b.lo, x.shape)
    for start, size, step, lo, n in typing.cast(Iterable[tuple[int, int, int, int, int]], each):
        if not numbers(start, size, lo, n):
            continue
        last = start + (size - 1) * step
        first, last = min(start, last), max(start, last)
        if size > 0 and (last < lo or first >= lo + n):
            return True
    return False


@attribute_function
def ones_of(s: Slices) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * len(s.sizes))


def _part(s: Slices, axis: Axis, start: Dim, size: Dim) -> Slices:
    """s with another range along the axis."""
    starts, sizes = list(s.starts), list(s.sizes)
    starts[axis.index], sizes[axis.index] = start, size
    return Slices(tuple(starts), tuple(sizes), s.steps)


@attribute_function
def tail(s: Slices, x: TensorType, axis: Axis) -> Slices:
    """What s takes of x, where it begins in x and goes on behind it, in steps of 1."""
    dims = s.starts[axis.index], s.sizes[axis.index], x.shape[axis.index]
    start, size, n = typing.cast(tuple[int, int, int], dims)
    refuse_unless(numbers(start, size, n) and s.steps[axis.index] == 1, "symbolic, or a step")
    refuse_unless(start <= n <= start + size, "it does not span both")
    return _part(s, axis, start, n - start)


@attribute_function
def head(s: Slices, x: TensorType, axis: Axis) -> Slices:
    """What s takes of what is behind x, see `tail`."""
    return _part(s, axis, 0, s.starts[axis.index] + s.sizes[axis.index] - x.shape[axis.index])


@attribute_function
def without_lo(b: Padding, axis: Axis) -> Padding:
    """b but for what is before `axis`."""
    return Padding(tuple(0 if i == axis.index else d for i, d in enumerate(b.lo)), b.hi)


@attribute_function
def without_hi(b: Padding, axis: Axis) -> Padding:
    """b but for what is behind `axis`."""
    return Padding(b.lo, tuple(0 if i == axis.index else d for i, d in enumerate(b.hi)))


@attribute_function
def turns(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s turns t round along the axis, and leaves the others."""
    if not numbers(*t.shape, *s.starts, *s.sizes):
        return False
    for i, (n, start, size, step) in enumerate(zip(t.shape, s.starts, s.sizes, s.steps)):
        wanted = (n - 1, n, -1) if i == axis.index else (0, n, 1)
        if (start, size, step) != wanted:
            return False
    return True


@attribute_function
def turned(t: TensorType, axis: Axis) -> Slices:
    """All of t, turned round along the axis."""
    refuse_unless(numbers(*t.shape), "symbolic")
    starts = tuple(n - 1 if i == axis.index else 0 for i, n in enumerate(t.shape))
    return Slices(starts, t.shape, tuple(-1 if i == axis.index else 1 for i in range(t.rank)))


@attribute_function
def unit_before(x: TensorType, axis: Axis) -> Shape:
    """x's shape with an axis of extent 1 before `axis`."""
    return Shape((*x.shape[: axis.index], 1, *x.shape[axis.index :]))


@attribute_function
def pair_before(x: TensorType, axis: Axis) -> Shape:
    """x's shape with an axis of extent 2 before `axis`."""
    return Shape((*x.shape[: axis.index], 2, *x.shape[axis.index :]))


@attribute_function
def axis_behind(b: Padding) -> Axis:
    """The only axis that is padded, behind alone."""
    padded = [i for i, (lo, hi) in enumerate(zip(b.lo, b.hi)) if lo != 0 or hi != 0]
    refuse_unless(len(padded) == 1 and b.lo[padded[0]] == 0, "more is padded")
    return Axis(padded[0])


@attribute_function
def added(x: TensorType, b: Padding) -> Shape:
    """The shape of what is added behind."""
    return Shape(tuple(hi if hi != 0 else n for n, hi in zip(x.shape, b.hi)))


@attribute_function
def units(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


@attribute_function
def is_last(a: Axis, t: TensorType) -> bool:
    """Whether a is the last axis."""
    return a.index == t.rank - 1


@attribute_function
def one_group(t: TensorType, *attributes: object) -> bool:
    """Whether the contraction has no groups."""
    return all(getattr(each, "count", 1) == 1 for each in attributes)


@rule
def slice_twice(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a then b), steps of both signs"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, one_after_the_other(a, b)))


@rule
def crop_padded(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = x, when s takes what was padded"""
    return rewrites(slice_(pad(x, v, b), s), x, takes_what_was_there(s, b, x.type))


@rule
def slice_of_border(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = v everywhere, when s stays in the border"""
    return rewrites(
        slice_(pad(x, v, b), s),
        broadcast(reshape(v, ones_of(s)), Shape(s.sizes)),
        is_in_border(s, b, x.type),
    )


@rule
def slice_across_concat(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = concat(slice(x, tail), slice(y, head)), when s spans both"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        concat(slice_(x, tail(s, x.type, axis)), slice_(y, head(s, x.type, axis)), axis),
    )


@rule
def pad_of_concat(x: Tensor, y: Tensor, v: Tensor, b: Padding, axis: Axis) -> Law:
    """pad(concat(x, y, axis), v, b) = concat(pad(x, v, not behind), pad(y, v, not before), axis)"""
    return rewrites(
        pad(concat(x, y, axis), v, b),
        concat(pad(x, v, without_hi(b, axis)), pad(y, v, without_lo(b, axis)), axis),
    )


@rule
def turn_concat(x: Tensor, y: Tensor, s: Slices, axis: Axis) -> Law:
    """concat(x, y), turned round along its axis = concat(y turned, x turned)"""
    whole = concat(x, y, axis)
    return rewrites(
        slice_(whole, s),
        concat(slice_(y, turned(y.type, axis)), slice_(x, turned(x.type, axis)), axis),
        turns(s, whole.type, axis),
    )


@rule
def tile_twice(x: Tensor, axis: Axis) -> Law:
    """concat(x, x, axis) = x, repeated on a new axis before `axis`, and merged"""
    left = concat(x, x, axis)
    return rewrites(
        left,
        reshape(
            broadcast(reshape(x, unit_before(x.type, axis)), pair_before(x.type, axis)),
            Shape(left.type.shape),
        ),
    )


@rule
def pad_behind(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = concat(x, v everywhere), when b pads one axis, behind"""
    return rewrites(
        pad(x, v, b),
        concat(x, broadcast(reshape(v, units(x.type)), added(x.type, b)), axis_behind(b)),
    )


@family
def gather_out_of_any(f: Elementwise, xs: Operands[Varying], i: Tensor, a: Axis) -> Law:
    """f(gather(x, i, a)…) = gather(f(x…), i, a), when all x have one shape"""
    return rewrites(f(xs.each(gather, i, a)), gather(f(xs), i, a), *xs.of_one_shape)


@family
def reshape_beside_any(f: Elementwise, xs: Some[Tensor], ys: Others[Tensor], s: Shape) -> Law:
    """f(reshape(x, s)…, y…) = reshape(f(x…, reshape(y, shape of x)…), s), if all x have one
    shape"""
    return rewrites(
        f(xs.each(reshape, s), ys),
        reshape(f(xs, ys.each(reshape, xs.shape)), s),
        *xs.of_one_shape,
    )


@family
def contraction_of_concat(f: Contraction, x: Tensor, w: Tensor, v: Tensor, a: Axis) -> Law:
    """f(x, concat(w, v, columns)) = concat(f(x, w), f(x, v), columns), without groups"""
    return rewrites(
        f(x, concat(w, v, a)),
        concat(f(x, w), f(x, v), a),
        is_last(a, w.type) & one_group(x.type, *f.attributes),
    )


@family
def pad_out_of_arithmetic(f: Arithmetic, xs: Operands[Unpadded], cs: Scalars, b: Padding) -> Law:
    """f(pad(x, c, b)…) = pad(f(x…), f(c…), b), each x with a border of its own"""
    return rewrites(f(xs.each(pad, cs, b)), pad(f(xs), f.element(cs), b))
