"""Laws of layout, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    Dim,
    Law,
    ReduceFn,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    concat,
    matmul,
    product,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
)


@attribute_function
def is_last(a: Axes, rank: int) -> bool:
    """Whether `a` is the last axis."""
    return a.indices == (rank - 1,)


@attribute_function
def last_extent(shape: tuple[Dim, ...]) -> Dim:
    """How long the last axis is."""
    refuse_unless(len(shape) > 0)
    return shape[-1]


@attribute_function
def last_axis(x: TensorType) -> Axes:
    """The last axis."""
    refuse_unless(x.rank > 0)
    return Axes((x.rank - 1,))


# x f32[2, 0], s = [3, 0], a = [1]: left f32[3, 1]; right reshapes f32[2, 1] to [3, 1]: ill typed.
@rule
def reshape_after_last(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """reduce(reshape(x, s), last) = reshape(reduce(x, last), …), when the last extent stays"""
    rows = reshape(x, s)
    return rewrites(
        reduce(f, rows, a),
        reshape(reduce(f, x, last_axis(x.type)), Shape(reduce(f, rows, a).type.shape)),
        is_last(a, rows.type.rank),
        last_extent(x.type.shape) == last_extent(s.dims),
    )


@attribute_function
def flat(shape: tuple[Dim, ...]) -> Shape:
    """One axis of as many elements."""
    return Shape((product(shape),))


# x f32[2, 1] = 1 2, y f32[2, 1] = 3 4, axis 1: left 1 3 2 4, right 1 2 3 4.
@rule
def flatten_concat(x: Tensor, y: Tensor, axis: Axis, s: Shape) -> Law:
    """reshape(concat(x, y, axis), flat) = concat(reshape(x, flat), reshape(y, flat))"""
    return rewrites(
        reshape(concat(x, y, axis), s),
        concat(reshape(x, flat(x.type.shape)), reshape(y, flat(y.type.shape)), Axis(0)),
        s == flat(concat(x, y, axis).type.shape),
    )


@attribute_function
def folded(x: TensorType) -> Shape:
    """All batches as rows of one."""
    refuse_unless(x.rank >= 3)
    return Shape((*(1,) * (x.rank - 2), product(x.shape[:-1]), x.shape[-1]))


@attribute_function
def first_batch(w: TensorType) -> Shape:
    """As many batches as a fold leaves: the first axes with extent 1, the others as they are."""
    refuse_unless(w.rank >= 3 and w.shape[0] == 1, "the weights differ from batch to batch")
    return Shape((*(1,) * (w.rank - 2), product(w.shape[1:-1]), w.shape[-1]))


# x f32[1, 2, 1, 1], w f32[1, 2, 1, 1] (broadcast as it is): left one product for each of 2 batches;
# right w becomes [1, 1, 2, 1], of 2 rows, and x [1, 1, 2, 1] has 1 column: ill typed. Right at rank
# 3.
@rule(reassociates=True)
def fold_batches(x: Tensor, w: Tensor, s: Shape) -> Law:
    """matmul(x, broadcast(w, s)) = matmul(x as one batch, w), when w has one first batch"""
    whole = matmul(x, broadcast(w, s))
    return rewrites(
        whole,
        reshape(
            matmul(reshape(x, folded(x.type)), reshape(w, first_batch(w.type))),
            Shape(whole.type.shape),
        ),
    )


@attribute_function
def is_all(a: Axes, x: TensorType) -> bool:
    """Whether `a` has all axes of x."""
    return a.indices == tuple(range(x.rank))


@attribute_function
def is_choice(f: ReduceFn) -> bool:
    """Whether the number of equal elements does not matter."""
    return f.name in ("max", "min")


# max, x f32[1] = [5], s = [0], a = [0]: left the max of nothing, -inf, right 5.
@rule
def choose_before_broadcast(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """f(broadcast(x, s), all axes) = f(x, all axes), for max and min"""
    return rewrites(reduce(f, broadcast(x, s), a), reduce(f, x, a), is_choice(f), is_all(a, x.type))


# x f32[1, 3], y f32[2, 1], s = [2, 3]: left is typed, right adds f32[1, 3] and f32[2, 1].
@rule
def broadcast_after_binary(f: BinaryFn, x: Tensor, y: Tensor, s: Shape) -> Law:
    """f(broadcast(x, s), broadcast(y, s)) = broadcast(f(x, y), s), for operands of one rank"""
    return rewrites(
        binary(f, broadcast(x, s), broadcast(y, s)),
        broadcast(binary(f, x, y), s),
        x.type.rank == y.type.rank,
    )


# x f32[1, 0], s = [5, 0]: both have no elements, left is f32[5, 0], right f32[1, 0].
@rule
def drop_broadcast(x: Tensor, s: Shape) -> Law:
    """broadcast(x, s) = x, when it has no more elements"""
    return rewrites(broadcast(x, s), x, broadcast(x, s).type.size == x.type.size)


@attribute_function
def then(a: Slices, b: Slices) -> Slices:
    """The slices by a and then by b."""
    return Slices(
        tuple(i + j for i, j in zip(a.starts, b.starts, strict=True)),
        b.sizes,
        tuple(i * j for i, j in zip(a.steps, b.steps, strict=True)),
    )


# x f32[5], a = [0+3*2], b = [1+1]: left is element 2, right element 1: b counts in steps of a.
@rule
def compose_slices(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a + b)"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, then(a, b)))


@attribute_function
def ends_within(s: Slices, axis: Axis, extent: object) -> bool:
    """Whether `s` takes elements before `extent` alone."""
    at = axis.index
    ends = s.starts[at] + s.sizes[at]
    return isinstance(ends, int) and isinstance(extent, int) and ends <= extent


# x f32[2], y f32[2], s = [0+2*3] takes elements 0 and 3; 0 + 2 <= 2: right reaches outside x.
@rule
def slice_of_first(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y, axis), s) = slice(x, s), when s ends within x"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        slice_(x, s),
        ends_within(s, axis, x.type.shape[axis.index]),
    )


def replaced(values: tuple[Dim, ...], at: int, value: Dim) -> tuple[Dim, ...]:
    """The tuple with another value at a place."""
    return (*values[:at], value, *values[at + 1 :])


@attribute_function
def first(a: Axes, x: TensorType) -> Slices:
    """The first element along the only axis of `a`."""
    refuse_unless(len(a.indices) == 1)
    return Slices((0,) * x.rank, replaced(x.shape, a.indices[0], 1), (1,) * x.rank)


@attribute_function
def rest(a: Axes, x: TensorType) -> Slices:
    """All but the first element along the only axis of `a`."""
    refuse_unless(len(a.indices) == 1)
    at = a.indices[0]
    sizes = replaced(x.shape, at, x.shape[at] - 1)
    return Slices(replaced((0,) * x.rank, at, 1), sizes, (1,) * x.rank)


@attribute_function
def is_empty(a: Axes, x: TensorType) -> bool:
    """Whether an axis of `a` has no elements."""
    return any(x.shape[axis] == 0 for axis in a.indices)


# x f32[n], open: at n = 0 left is the identity 0, right slices one element of none; the condition
# holds as n is not the number 0.
@rule
def sum_from_first(x: Tensor, a: Axes) -> Law:
    """sum(x, axis) = the first element + the sum of the rest, on integers, when there is a first"""
    return rewrites(
        reduce("sum", x, a),
        binary(
            "add",
            slice_(x, first(a, x.type)),
            reduce("sum", slice_(x, rest(a, x.type)), a),
        ),
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_narrow),
        typing.cast(bool, ~is_empty(a, x.type)),
    )
