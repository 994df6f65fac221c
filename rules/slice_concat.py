"""Slices move inward, past what they need not wait for; concatenations of pieces become the whole.

A slice taken before an elementwise op saves the op on the rest. Concatenating what one function
made of two pieces is the function of the concatenation, and neighbouring pieces join. For functions
of two operands that pays only where pieces meet; done everywhere it would fill the e-graph.
"""

from __future__ import annotations

from satura.rewrite.language.conditions import has_value
from satura.rewrite.language.dsl import (
    Law,
    Tensor,
    Varying,
    attribute_function,
    both,
    family,
    replaces,
    rewrites,
    rule,
)
from satura.rewrite.language.families import Elementwise, Operands
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    concat,
    constant,
    gather,
    reduce,
    reshape,
    slice_,
)
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    ReduceFn,
    Shape,
    Slices,
    refuse_unless,
)
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim, known_at_least
from satura.rewrite.types.tensor_type import TensorType
from satura.rules.axis_groups import replace_axis


@attribute_function
def composed_slices(first: Slices, then: Slices) -> Slices:
    """What takes the same elements as `first` and then `then`.

    Where at most one element is taken the step says nothing; it is 1 then, or composing a slice
    of one element with itself would give slices of ever larger steps.
    """
    axes = list(zip(first.starts, first.steps, then.starts, then.steps, then.sizes, strict=True))
    return Slices(
        tuple(0 if size == 0 else start + step * more for start, step, more, _, size in axes),
        then.sizes,
        tuple(1 if size in (0, 1) else mine * theirs for _, mine, _, theirs, size in axes),
    )


@rule
def compose_slices(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a then b)"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, composed_slices(a, b)))


@attribute_function
def is_whole(type_: TensorType, slices: Slices) -> bool:
    """Whether `slices` takes all elements in order; the step does not matter for one element."""
    return all(
        size == dim and (dim in (0, 1) or step == 1)
        for dim, size, step in zip(type_.shape, slices.sizes, slices.steps, strict=True)
    )


@rule
def drop_whole_slice(x: Tensor, s: Slices) -> Law:
    """slice(x, everything) = x"""
    return rewrites(slice_(x, s), x, is_whole(x.type, s))


@family
def slice_into(f: Elementwise, xs: Operands[Tensor], s: Slices) -> Law:
    """slice(f(x…), s) = f(slice(x, s)…)"""
    return rewrites(slice_(f(xs), s), f(xs.each(slice_, s)))


@attribute_function
def slices_before_reduce(type_: TensorType, axes: Axes, slices: Slices) -> Slices:
    """`slices` of a reduced tensor as slices of the tensor itself: whole along the reduced axes."""
    at = axes.indices
    refuse_unless(all(slices.sizes[axis] == 1 for axis in at), "a reduced axis is cut off")
    steps = tuple(1 if axis in at else step for axis, step in enumerate(slices.steps))
    return Slices(
        replace_axis(slices.starts, at, [0] * len(at)),
        replace_axis(slices.sizes, at, [type_.shape[axis] for axis in at]),
        steps,
    )


@rule
def slice_into_reduce(f: ReduceFn, x: Tensor, axes: Axes, s: Slices) -> Law:
    """slice(reduce(x, a), s) = reduce(slice(x, s but whole along a), a)"""
    return rewrites(
        slice_(reduce(f, x, axes), s),
        reduce(f, slice_(x, slices_before_reduce(x.type, axes, s)), axes),
    )


def _ends(slices: Slices, axis: int) -> tuple[Dim, Dim]:
    """The lowest and the highest index that is taken along the axis, if any is."""
    start, step = slices.starts[axis], slices.steps[axis]
    last = start + (slices.sizes[axis] - 1) * step
    return (start, last) if step > 0 else (last, start)


@attribute_function
def slices_in_first(part: TensorType, axis: Axis, slices: Slices) -> Slices:
    """`slices` of a concatenation that begins with `part`, when they lie inside it."""
    _, high = _ends(slices, axis.index)
    refuse_unless(known_at_least(slices.sizes[axis.index], 1), "the slice may be empty")
    refuse_unless(known_at_least(part.shape[axis.index] - 1 - high, 0), "the slice goes on")
    return slices


@attribute_function
def slices_in_second(offset: TensorType, axis: Axis, slices: Slices) -> Slices:
    """`slices` of a concatenation as slices of what follows `offset`, when they lie inside it."""
    at = axis.index
    low, _ = _ends(slices, at)
    before = offset.shape[at]
    refuse_unless(known_at_least(slices.sizes[at], 1), "the slice may be empty")
    refuse_unless(known_at_least(low - before, 0), "the slice begins before")
    return Slices(
        replace_axis(slices.starts, [at], [slices.starts[at] - before]), slices.sizes, slices.steps
    )


@rule
def slice_of_first_part(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = slice(x, s), when s lies inside x"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(x, slices_in_first(x.type, axis, s)))


@rule
def slice_of_second_part(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = slice(y, s shifted by x), when s lies inside y"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(y, slices_in_second(x.type, axis, s)))


@attribute_function
def joined_slices(a: Slices, b: Slices, axis: Axis) -> Slices:
    """The slices that take what `a` takes and then, along `axis`, what `b` takes."""
    at = axis.index
    rest = [part for part in range(len(a.sizes)) if part != at]
    alike = all(a.starts[i] == b.starts[i] for i in rest)
    refuse_unless(alike and a.steps == b.steps, "the pieces differ in other axes or in step")
    follows = b.starts[at] == a.starts[at] + a.sizes[at] * a.steps[at]
    refuse_unless(follows, "the second piece does not follow the first")
    return Slices(a.starts, replace_axis(a.sizes, [at], [a.sizes[at] + b.sizes[at]]), a.steps)


@rule
def join_slices(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = slice(x, a and b), when b follows a there"""
    return replaces(concat(slice_(x, a), slice_(x, b), axis), slice_(x, joined_slices(a, b, axis)))


@family
def concat_into(f: Elementwise, x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(f(x), f(y), axis) = f(concat(x, y, axis)), when x and y have one dtype"""
    whole = concat(x, y, axis)
    return rewrites(concat(f(x), f(y), axis), f(whole), has_value(whole.type))


@rule
def concat_into_slices(
    f: BinaryFn, x: Tensor, y: Tensor, z: Tensor, a: Slices, b: Slices, axis: Axis
) -> Law:
    """concat(f(slice(x, a), y), f(slice(x, b), z)) = f(slice(x, a and b), concat(y, z)), when b
    follows a along the axis; also with the operands of f swapped"""
    first, second, rest = slice_(x, a), slice_(x, b), concat(y, z, axis)
    joined = slice_(x, joined_slices(a, b, axis))
    return both(
        rewrites(concat(binary(f, first, y), binary(f, second, z), axis), binary(f, joined, rest)),
        rewrites(concat(binary(f, y, first), binary(f, z, second), axis), binary(f, rest, joined)),
    )


@attribute_function
def slices_at(type_: TensorType, value: Constant, axis: Axis) -> Slices:
    """What takes the slices along `axis` whose indices are the elements of `value`, in order."""
    at, extent = axis.index, type_.shape[axis.index]
    indices = [n + extent if n < 0 else n for n in value.array.ravel().tolist()]
    refuse_unless(len(indices) > 0, "nothing is taken")
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    refuse_unless(isinstance(step, int) and step != 0, "the first step is not a number but 0")
    assert isinstance(step, int)
    for number, index in enumerate(indices):
        refuse_unless(index == indices[0] + number * step, "the steps differ")
    for end in (indices[0], indices[-1]):
        inside = known_at_least(end, 0) and known_at_least(extent - 1 - end, 0)
        refuse_unless(inside, "an index may be outside")
    rank = type_.rank
    return Slices(
        replace_axis([0] * rank, [at], indices[:1]),
        replace_axis(type_.shape, [at], [len(indices)]),
        tuple(step if place == at else 1 for place in range(rank)),
    )


@rule
def gather_of_even_steps(x: Varying, value: Constant, axis: Axis) -> Law:
    """gather(x, constant, axis) = reshape(slice(x, s)), when the constant counts in even steps"""
    taken = gather(x, constant(value), axis)
    return rewrites(
        taken, reshape(slice_(x, slices_at(x.type, value, axis)), Shape(taken.type.shape))
    )


@rule
def concat_into_broadcast(x: Tensor, s: Shape, t: Shape, axis: Axis) -> Law:
    """concat(broadcast(x, s), broadcast(x, t), axis) = broadcast(x, s and t), when x is repeated
    along the axis"""
    return rewrites(
        concat(broadcast(x, s), broadcast(x, t), axis),
        broadcast(x, Shape(concat(broadcast(x, s), broadcast(x, t), axis).type.shape)),
        x.type.shape[axis.index] == 1,
    )


@rule
def concat_of_units(x: Tensor, axis: Axis) -> Law:
    """concat(x, x, axis) = broadcast(x, twice as long), when x has extent 1 along the axis"""
    both = concat(x, x, axis)
    return rewrites(both, broadcast(x, Shape(both.type.shape)), x.type.shape[axis.index] == 1)


@rule
def concat_of_more_units(x: Tensor, s: Shape, axis: Axis) -> Law:
    """concat(broadcast(x, s), x, axis) = broadcast(x, s and one more), when x has extent 1 there"""
    more = concat(broadcast(x, s), x, axis)
    return rewrites(more, broadcast(x, Shape(more.type.shape)), x.type.shape[axis.index] == 1)
