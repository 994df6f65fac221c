"""Laws of slices and concatenations, all of them wrong."""

from __future__ import annotations

import typing

from satura.language import (
    Axes,
    Axis,
    Dim,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    attribute_function,
    broadcast,
    concat,
    known_at_least,
    matmul,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
)


@attribute_function
def ones(t: TensorType) -> Shape:
    """A shape of as many 1 as t has axes."""
    return Shape((1,) * t.rank)


@attribute_function
def full(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


@attribute_function
def number(value: Dim, t: TensorType) -> Scalar:
    """`value` as an element of t's type, where it is one."""
    refuse_unless(isinstance(value, int), "the number is not known")
    if t.dtype.is_integer:
        low, high = t.dtype.bounds
        refuse_unless(low <= typing.cast(int, value) <= high, "the type does not hold the number")
    return Scalar.of(value, t.dtype)


def everywhere(value: Scalar, like: TensorType) -> Term:
    """The scalar `value` repeated to the type `like`."""
    return broadcast(reshape(scalar(value), ones(like)), full(like))


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


@attribute_function
def only_axis(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s takes everything, in order, on all axes but `axis`."""
    return all(
        i == axis.index or (s.starts[i] == 0 and s.sizes[i] == t.shape[i] and s.steps[i] == 1)
        for i in range(t.rank)
    )


@attribute_function
def along(t: TensorType, axis: Axis, start: Dim, size: Dim, step: int) -> Slices:
    """The slices of t that take everything but along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    starts: list[Dim] = [0] * t.rank
    sizes, steps = list(t.shape), [1] * t.rank
    starts[axis.index], sizes[axis.index], steps[axis.index] = start, size, step
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@attribute_function
def reverses(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s turns t around along `axis` and does nothing else."""
    at = axis.index
    if at >= t.rank:
        return False
    n = t.shape[at]
    return len(s.sizes) == t.rank and (
        only_axis(s, t, axis) and s.starts[at] == n - 1 and s.sizes[at] == n and s.steps[at] == -1
    )


@attribute_function
def turned(t: TensorType, axis: Axis) -> Slices:
    """The slices that turn t around along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    return along(t, axis, t.shape[axis.index] - 1, t.shape[axis.index], -1)


@attribute_function
def without_outer_step(a: Slices, b: Slices) -> Slices:
    refuse_unless(len(a.sizes) == len(b.sizes), "ranks differ")
    return Slices(
        tuple(m + n for m, n in zip(a.starts, b.starts)),
        b.sizes,
        tuple(m * n for m, n in zip(a.steps, b.steps)),
    )


# x = f32[4] = 0, 1, 2, 3, a = [0+2*2] takes 0, 2, b = [1+1] takes 2; the right side takes element
# 1.
@rule
def compose_slices_without_step(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, starts a + b in steps of a * b)"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, without_outer_step(a, b)))


# x = f32[2] = 1, 2, s = [1+2*-1]: the sizes are x's, the result is 2, 1.
@rule
def drop_slice_of_all_sizes(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s takes as many elements as there are"""
    return rewrites(slice_(x, s), x, s.sizes == x.type.shape)


@attribute_function
def in_second(s: Slices, x: TensorType, y: TensorType, axis: Axis) -> Slices:
    at, n = axis.index, x.shape[axis.index]
    refuse_unless(isinstance(s.starts[at], int) and isinstance(n, int), "open sizes")
    refuse_unless(
        typing.cast(int, s.starts[at]) >= typing.cast(int, n), "it starts in the first part"
    )
    starts = (*s.starts[:at], s.starts[at] - n, *s.starts[at + 1 :])
    return Slices(starts, s.sizes, s.steps)


# x = f32[1] = 1, y = f32[1] = 2, s = [1+2*-1]: it starts in y and goes back into x. The right side
# would slice y by [0+2*-1], which reaches outside.
@rule
def slice_that_starts_in_second_part(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y, axis), s) = slice(y, s shifted by x), when s starts in y"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(y, in_second(s, x.type, y.type, axis)))


# x = f32[1] = 1, y = f32[1] = 2, axis 0: turned around 2, 1; the right side is 1, 2.
@rule
def turn_concat_around(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """a concatenation backwards is the concatenation of both parts backwards"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        concat(slice_(x, turned(x.type, axis)), slice_(y, turned(y.type, axis)), axis),
        reverses(s, concat(x, y, axis).type, axis),
    )


# x = f32[3] = 1, 2, 3, axes [0], s = [0+1]: the left side is max(1, 2, 3) = 3, the right side takes
# 1 of x first.
@rule
def same_slice_before_reduce(f: ReduceFn, x: Tensor, a: Axes, s: Slices) -> Law:
    """slice(f(x, a), s) = f(slice(x, s), a), for max and min"""
    return rewrites(
        slice_(reduce(f, x, a), s),
        reduce(f, slice_(x, s), a),
        is_one_of(f.name, ("max", "min")),
    )


@attribute_function
def rows_of_left(s: Slices, x: TensorType) -> Slices:
    refuse_unless(len(s.sizes) == x.rank, "ranks differ")
    return Slices((*s.starts[:-1], 0), (*s.sizes[:-1], x.shape[-1]), (*s.steps[:-1], 1))


@attribute_function
def whole_last(s: Slices, t: TensorType) -> bool:
    return s.starts[-1] == 0 and s.sizes[-1] == t.shape[-1] and s.steps[-1] == 1


# x = f32[2, 1, 1], y = f32[2, 1, 1], s = [1+1, 0+1, 0+1] cuts the batch: the right side multiplies
# f32[1, 1, 1] by f32[2, 1, 1], which does not fit.
@rule
def slice_rows_before_matmul(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(matmul(x, y), s) = matmul(slice(x, s'), y), when s leaves the columns whole"""
    product_ = matmul(x, y)
    return rewrites(
        slice_(product_, s),
        matmul(slice_(x, rows_of_left(s, x.type)), y),
        whole_last(s, product_.type),
    )


# x = f32[2] = 1, 2, s = [0+1], b = [1:0]: the left side is 0, 1, which has x's shape.
@rule
def pad_back_what_was_cut(x: Tensor, s: Slices, b: Padding) -> Law:
    """pad(slice(x, s), 0, b) = x, when the pad restores the shape"""
    cut = pad(slice_(x, s), 0, b)
    return rewrites(cut, x, cut.type.shape == x.type.shape)


@attribute_function
def are_evens_and_odds(a: Slices, b: Slices, t: TensorType) -> bool:
    return (
        t.rank == 1
        and a.steps == b.steps == (2,)
        and (a.starts, b.starts) == ((0,), (1,))
        and a.sizes[0] + b.sizes[0] == t.shape[0]
    )


# x = f32[3] = 1, 2, 3: evens 1, 3, odds 2: the concatenation is 1, 3, 2.
@rule
def evens_then_odds(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(x[0::2], x[1::2]) = x"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), x, are_evens_and_odds(a, b, x.type))


# x = f32[0], y = f32[2] = 1, 2, axis 0: the left side is y, the right side is the empty x: the
# condition asks about x what only y may be.
@rule
def drop_the_wrong_empty_part(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y, axis) = x, when one part is empty"""
    return rewrites(concat(x, y, axis), x, x.type.shape[axis.index] == 0)


@attribute_function
def is_constant_extent(t: TensorType, axis: Axis) -> bool:
    return not known_at_least(t.shape[axis.index], 1)


# x = f32[1, n] and y = f32[n, 1], both ones, n = 2 in the call: left 2.0, right 0.0. That an extent
# is not known to be at least 1 does not make it 0.
@rule
def matmul_of_perhaps_nothing(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = 0 everywhere, when the inner extent is not known to be at least 1"""
    product_ = matmul(x, y)
    return rewrites(
        product_,
        everywhere(number(0, x.type), product_.type),
        is_constant_extent(y.type, Axis(0)) & (y.type.rank == 2),
    )
