"""Laws of slices, all of them wrong."""

import typing
from collections.abc import Iterable

from satura.language import (
    Axes,
    Axis,
    DType,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    concat,
    iota,
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


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def one_after_the_other(a: Slices, b: Slices) -> Slices:
    """a, then b."""
    starts = tuple(i + j for i, j in zip(a.starts, b.starts))
    return Slices(starts, b.sizes, tuple(i * j for i, j in zip(a.steps, b.steps)))


@attribute_function
def moved(s: Slices, axis: Axis, by: TensorType) -> Slices:
    """s, moved to the left by the extent of `by` along the axis."""
    starts = list(s.starts)
    starts[axis.index] = starts[axis.index] - by.shape[axis.index]
    return Slices(tuple(starts), s.sizes, s.steps)


@attribute_function
def begins_behind(s: Slices, axis: Axis, x: TensorType) -> bool:
    """Whether s begins behind x."""
    start, n = typing.cast(tuple[int, int], (s.starts[axis.index], x.shape[axis.index]))
    return numbers(start, n) and start >= n


@attribute_function
def ends_before(s: Slices, axis: Axis, x: TensorType) -> bool:
    """Whether s ends where x ends, or before."""
    at = axis.index
    start, size, n = typing.cast(tuple[int, int, int], (s.starts[at], s.sizes[at], x.shape[at]))
    return numbers(start, size, n) and s.steps[at] > 0 and start + size <= n


@attribute_function
def both_parts(a: Slices, b: Slices, axis: Axis) -> Slices:
    """a and b behind it."""
    at = axis.index
    parts = zip(a.starts, b.starts, a.steps, b.steps, a.sizes, b.sizes)
    for i, (p, q, s, t, m, n) in enumerate(parts):
        refuse_unless(i == at or (p == q and s == t and m == n), "they differ elsewhere")
    follows = a.starts[at] + a.sizes[at] * a.steps[at]
    refuse_unless(b.starts[at] == follows, "b does not follow a")
    sizes = list(a.sizes)
    sizes[at] = sizes[at] + b.sizes[at]
    return Slices(a.starts, tuple(sizes), a.steps)


@attribute_function
def without_border(s: Slices, b: Padding) -> Slices:
    """s on what was padded."""
    return Slices(tuple(i - lo for i, lo in zip(s.starts, b.lo)), s.sizes, s.steps)


@attribute_function
def is_within(s: Slices, b: Padding, x: TensorType) -> bool:
    """Whether s does not reach into the border."""
    each = zip(s.starts, s.sizes, s.steps, b.lo, x.shape)
    for start, size, step, lo, n in typing.cast(Iterable[tuple[int, int, int, int, int]], each):
        if not numbers(start, size, lo, n):
            return False
        last = start + (size - 1) * step
        if not (lo <= start <= lo + n and lo <= last <= lo + n):
            return False
    return True


@attribute_function
def fits_as_is(x: TensorType, s: Slices) -> bool:
    """Whether s takes as many elements as x has on each axis that is not repeated."""
    return all(n == 1 or n == size for n, size in zip(x.shape, s.sizes))


@attribute_function
def rows_of(s: Slices, x: TensorType) -> Slices:
    """s for the left operand: everything along the inner axis."""
    return Slices((*s.starts[:-1], 0), (*s.sizes[:-1], x.shape[-1]), (*s.steps[:-1], 1))


@attribute_function
def columns_of(s: Slices, y: TensorType) -> Slices:
    """s for the right operand: s along the columns, everything along the others."""
    n = y.rank - 1
    return Slices((0,) * n + s.starts[-1:], (*y.shape[:-1], s.sizes[-1]), (1,) * n + s.steps[-1:])


@attribute_function
def kept(x: TensorType, b: Padding, s: Slices) -> Slices:
    """What s takes of x."""
    border = border_left(x, b, s)
    starts, sizes = [], []
    for start, size, lo, before, after in zip(s.starts, s.sizes, b.lo, border.lo, border.hi):
        starts.append(max(0, typing.cast(int, start - lo)))
        sizes.append(size - before - after)
    return Slices(tuple(starts), tuple(sizes), s.steps)


@attribute_function
def border_left(x: TensorType, b: Padding, s: Slices) -> Padding:
    """What s takes of the border."""
    refuse_unless(numbers(*x.shape, *b.lo, *b.hi, *s.starts, *s.sizes), "symbolic")
    refuse_unless(all(step == 1 for step in s.steps), "a step is not 1")
    lo = tuple(max(0, typing.cast(int, below - i)) for below, i in zip(b.lo, s.starts))
    hi = tuple(
        max(0, typing.cast(int, i + k - below - n))
        for i, k, below, n in zip(s.starts, s.sizes, b.lo, x.shape)
    )
    return Padding(lo, hi)


@attribute_function
def first_index(s: Slices, a: Axis, t: DType) -> Scalar:
    """The first index as a number of t."""
    refuse_unless(numbers(*s.starts), "symbolic")
    refuse_unless(s.steps[a.index] == 1, "a step is not 1")
    return Scalar.of(s.starts[a.index], t)


@attribute_function
def ones(s: Slices) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * len(s.sizes))


@attribute_function
def plain_float(t: DType) -> bool:
    """Whether arithmetic knows the floats of t."""
    return t.is_float and not t.is_narrow


@attribute_function
def in_order(s: Slices) -> bool:
    """Whether all steps are 1."""
    return all(step == 1 for step in s.steps)


# x = [0, 1, 2], a = [0+2*2] (takes 0, 2), b = [1+1]: left 2; right starts at 0 + 1: 1.
@rule
def compose_slices_without_step(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a then b)"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, one_after_the_other(a, b)))


# x = [0, 1], y = [2, 3], axis 0, s = [3+3*-1]: left 3, 2, 1; right: y from 1 on backwards, 3 of 2.
@rule
def slice_of_second_part_by_start(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = slice(y, s moved), when s begins in y"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        slice_(y, moved(s, axis, x.type)),
        begins_behind(s, axis, x.type),
    )


# x = [0, 1, 2], y = [3, 4], s = [0+3*2]: left 0, 2, 4, and 0 + 3 <= 3; right: index 4 is outside x.
@rule
def slice_of_first_part_by_size(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = slice(x, s), when s goes forward and ends before y"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(x, s), ends_before(s, axis, x.type))


# x = [0, 1, 2, 3], a = [0+1], b = [1+2*2]: left 0, 1, 3; right [0+3] = 0, 1, 2.
@rule
def join_slices_of_other_steps(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = slice(x, a and b), when b follows a"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), slice_(x, both_parts(a, b, axis)))


# x = [5, 6], b = [1:1], v = 0, s = [1+3]: last index 3 <= 1 + 2. left 5, 6, 0; right: x has no
# third element.
@rule
def slice_inside_pad_off_by_one(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = slice(x, s without the border), when s does not reach into it"""
    return rewrites(
        slice_(pad(x, v, b), s), slice_(x, without_border(s, b)), is_within(s, b, x.type)
    )


# x = i32[2] = [1, 2], sum over axis 0, s = [0+1]: left 3; right: sum of [1] = 1.
@rule
def slice_into_reduce_as_is(f: ReduceFn, x: Tensor, a: Axes, s: Slices) -> Law:
    """slice(reduce(x, a), s) = reduce(slice(x, s), a)"""
    return rewrites(slice_(reduce(f, x, a), s), reduce(f, slice_(x, s), a))


# x = [1, 2], w = [2], s = [1+2*-1]: left 2, 1; right 1, 2.
@rule
def slice_of_broadcast_by_sizes(x: Tensor, w: Shape, s: Slices) -> Law:
    """slice(broadcast(x, w), s) = broadcast(x, sizes of s), when s takes all of x"""
    return rewrites(slice_(broadcast(x, w), s), broadcast(x, Shape(s.sizes)), fits_as_is(x.type, s))


# x = f32[2, 1, 1], y = f32[2, 1, 1], s = [0+1, 0+1, 0+1]: right: matmul of f32[1, 1, 1] and
# f32[2, 1, 1], whose batch extents differ. (Right for matrices.)
@rule
def slice_into_matmul_of_matrices(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(matmul(x, y), s) = matmul(rows of x, columns of y)"""
    return rewrites(
        slice_(matmul(x, y), s),
        matmul(slice_(x, rows_of(s, x.type)), slice_(y, columns_of(s, y.type))),
    )


# x = [5], v = 0, b = [3:0], s = [0+1]: left [0]; right: 3 elements of the border before 1 - 3 = -2
# of x: no such slice.
@rule
def slice_into_pad(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = pad(slice(x, s'), v, b'), for slices in steps of 1"""
    return rewrites(
        slice_(pad(x, v, b), s),
        pad(slice_(x, kept(x.type, b, s)), v, border_left(x.type, b, s)),
    )


# bf16 has 8 bits: iota([262], 0, bf16), s = [257+4]. Index 259 is 260 there (a tie, to even), the
# left side at [2]; right: 2 + bf16(257) = 2 + 256 = 258.
@rule
def slice_of_float_iota(shape: Shape, a: Axis, t: DType, s: Slices) -> Law:
    """slice(iota, s) = iota + start, for slices in steps of 1, on floats"""
    return rewrites(
        slice_(iota(shape, a, t), s),
        binary(
            "add",
            iota(Shape(s.sizes), a, t),
            broadcast(reshape(scalar(first_index(s, a, t)), ones(s)), Shape(s.sizes)),
        ),
        plain_float(t),
    )


# x = [5, 6], v = 0, b = [1:1], s = [0+2]: left 0, 5; right 5, 6.
@rule
def crop_what_was_padded(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = x, when s takes as many elements as x has, in order"""
    return rewrites(slice_(pad(x, v, b), s), x, (s.sizes == x.type.shape) & in_order(s))
