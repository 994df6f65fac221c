"""Laws of slices, flips and concatenations, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Law,
    Padding,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    concat,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
)


@attribute_function
def added_starts(a: Slices, b: Slices) -> Slices:
    refuse_unless(all(step > 0 for step in (*a.steps, *b.steps)), "only forward")
    return Slices(
        tuple(i + j for i, j in zip(a.starts, b.starts)),
        b.sizes,
        tuple(i * j for i, j in zip(a.steps, b.steps)),
    )


# x = i32[4] = 0..3, a = [0+2*2] (0,2), b = [1+1]: left [2]; right start 0+1: [1].
@rule
def add_starts(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, starts added, steps multiplied), when both go forward"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, added_starts(a, b)))


@attribute_function
def last_steps(a: Slices, b: Slices) -> Slices:
    starts = tuple(i + j * step for i, j, step in zip(a.starts, b.starts, a.steps))
    steps = tuple(j if j != 1 else i for i, j in zip(a.steps, b.steps))
    return Slices(starts, b.sizes, steps)


# x = i32[5] = 0..4, a = [0+3*2] (0,2,4), b = [0+2*2] (0,4): left [0,4]; right step 2: [0,2].
@rule
def keep_one_step(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a then b), with b's step, or a's where b's is 1"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, last_steps(a, b)))


@attribute_function
def ends_within(t: TensorType, s: Slices, axis: Axis) -> bool:
    at = axis.index
    values = (s.starts[at], s.sizes[at], t.shape[at])
    refuse_unless(all(isinstance(value, int) for value in values), "open")
    return typing.cast(int, s.starts[at] + s.sizes[at]) <= typing.cast(int, t.shape[at])


# x = i32[2] = [0,1], y = i32[2] = [2,3], s = [0+2*2]: left [0,2]; right reaches outside x.
@rule
def first_part_forgets_step(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = slice(x, s), when start + size is within x"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(x, s), ends_within(x.type, s, axis))


@attribute_function
def shifted(t: TensorType, s: Slices, axis: Axis) -> Slices:
    at, starts = axis.index, list(s.starts)
    refuse_unless(isinstance(starts[at], int) and isinstance(t.shape[at], int), "open")
    refuse_unless(typing.cast(int, starts[at]) >= typing.cast(int, t.shape[at]), "it begins in x")
    starts[at] -= t.shape[at]
    return Slices(tuple(starts), s.sizes, s.steps)


# x = i32[1] = [7], y = i32[1] = [8], s = [1+2*-1]: left [8,7]; right [0+2*-1] of y reaches outside.
@rule
def second_part_forgets_direction(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = slice(y, s shifted), when s starts in y"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(y, shifted(x.type, s, axis)))


# x = i32[2] = [0,1], s = [1+2*-1]: left [1,0], right [0,1].
@rule
def as_many_is_all(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s takes as many elements as there are"""
    return rewrites(slice_(x, s), x, s.sizes == x.type.shape)


@attribute_function
def out_of_border(t: TensorType, b: Padding, s: Slices) -> Slices:
    for dim, lo, start, size, step in zip(
        typing.cast(tuple[int, ...], t.shape),
        typing.cast(tuple[int, ...], b.lo),
        typing.cast(tuple[int, ...], s.starts),
        typing.cast(tuple[int, ...], s.sizes),
        s.steps,
    ):
        refuse_unless(all(isinstance(v, int) for v in (dim, lo, start, size)), "open")
        refuse_unless(step > 0 and start >= lo, "before x")
        refuse_unless(start + (size - 1) * step <= lo + dim, "behind x")
    return Slices(tuple(a - lo for a, lo in zip(s.starts, b.lo)), s.sizes, s.steps)


# x = i32[1] = [5], v = 9, b = [0:1], s = [0+2]: last taken is 1 <= 0 + 1; left [5,9]; right [0+2]
# of one element reaches outside.
@rule
def slice_touches_border(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = slice(x, s shifted), when s does not reach behind x (off by one)"""
    return rewrites(slice_(pad(x, v, b), s), slice_(x, out_of_border(x.type, b, s)))


# x = i32[2] = [1,2], axes = [0], s = [0+1]: left 3; right slice(x) = [1], sum 1.
@rule
def slice_below_sum(x: Tensor, axes: Axes, s: Slices) -> Law:
    """slice(sum(x, axes), s) = sum(slice(x, s), axes)"""
    return rewrites(slice_(reduce("sum", x, axes), s), reduce("sum", slice_(x, s), axes))


@attribute_function
def rows_of(t: TensorType, s: Slices) -> Shape:
    refuse_unless(t.rank == 1 and isinstance(t.shape[0], int), "one axis")
    step = s.steps[0]
    refuse_unless(step > 1 and t.shape[0] == step * s.sizes[0], "even shares")
    refuse_unless(s.starts[0] == 0, "from the first on")
    return Shape((step, s.sizes[0]))


@attribute_function
def first_row(s: Slices) -> Slices:
    refuse_unless(len(s.sizes) == 1)
    return Slices((0, 0), (1, s.sizes[0]), (1, 1))


# x = i32[4] = 0..3, s = [0+2*2]: left [0,2]; right [[0,1],[2,3]][0] = [0,1].
@rule
def strided_is_a_row(x: Tensor, s: Slices) -> Law:
    """slice(x, every k-th) = the first row of reshape(x, [k, n / k]) (it is a column of [n / k,
    k])"""
    return rewrites(
        slice_(x, s), reshape(slice_(reshape(x, rows_of(x.type, s)), first_row(s)), Shape(s.sizes))
    )


@attribute_function
def covers(t: TensorType, a: Slices, b: Slices, axis: Axis) -> bool:
    at = axis.index
    whole = all(
        i == at or (s.starts[i] == 0 and s.sizes[i] == dim and s.steps[i] == 1)
        for s in (a, b)
        for i, dim in enumerate(t.shape)
    )
    return (
        whole
        and a.starts[at] == 0
        and a.steps[at] == b.steps[at] == 1
        and a.sizes[at] + b.sizes[at] == t.shape[at]
    )


# x = i32[2] = [0,1], a = [0+1], b = [0+1]: left [0,0], right [0,1].
@rule
def pieces_of_right_size(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = x, when a begins x and the sizes add up"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), x, covers(x.type, a, b, axis))


@attribute_function
def is_whole_flip(t: TensorType, s: Slices, axis: Axis) -> bool:
    return all(
        s.sizes[i] == dim
        and (
            (s.starts[i] == dim - 1 and s.steps[i] == -1)
            if i == axis.index
            else (s.starts[i] == 0 and s.steps[i] == 1)
        )
        for i, dim in enumerate(t.shape)
    )


@attribute_function
def flip(t: TensorType, axis: Axis) -> Slices:
    at = axis.index
    return Slices(
        tuple(dim - 1 if i == at else 0 for i, dim in enumerate(t.shape)),
        t.shape,
        tuple(-1 if i == at else 1 for i in range(t.rank)),
    )


# x = i32[1] = [0], y = i32[1] = [1]: left [1,0], right concat([0], [1]).
@rule
def flip_each_part(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """flip(concat(x, y)) = concat(flip(x), flip(y)) (the parts change places)"""
    whole = concat(x, y, axis)
    return rewrites(
        slice_(whole, s),
        concat(slice_(x, flip(x.type, axis)), slice_(y, flip(y.type, axis)), axis),
        is_whole_flip(whole.type, s, axis),
    )


@attribute_function
def phase_of(t: TensorType, s: Slices, axis: Axis, is_first: bool) -> Slices:
    at, step, dim = axis.index, s.steps[axis.index], t.shape[axis.index]
    refuse_unless(isinstance(dim, int) and isinstance(s.sizes[at], int), "open")
    refuse_unless(s.starts[at] == 0 and step > 0, "from the first on")
    head = -(-typing.cast(int, dim) // step)
    refuse_unless(typing.cast(int, s.sizes[at]) >= head, "only the first part")
    starts, sizes = list(s.starts), list(s.sizes)
    starts[at], sizes[at] = 0, head if is_first else s.sizes[at] - head
    return Slices(tuple(starts), tuple(sizes), s.steps)


# x = i32[1] = [0], y = i32[2] = [1,2], s = [0+2*2]: left [0,2]; right concat([0], y[0:1:2]) =
# [0,1].
@rule
def step_restarts_in_second_part(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), every k-th) = concat(slice(x, every k-th), slice(y, every k-th)), when it
    begins with the first (forgets that x has a multiple of k)"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        concat(
            slice_(x, phase_of(x.type, s, axis, True)),
            slice_(y, phase_of(x.type, s, axis, False)),
            axis,
        ),
    )
