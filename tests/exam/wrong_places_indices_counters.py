"""Laws of places of extremes, indices, counters and sizes, all of them wrong."""

import numpy as np

from satura.language import (
    Axes,
    Axis,
    Constant,
    Count,
    DType,
    Law,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    extent,
    gather,
    iota,
    known_at_least,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    slice_,
    unary,
)


@attribute_function
def only(axis: Axis) -> Axes:
    return Axes((axis.index,))


@attribute_function
def is_increasing(f: UnaryFn) -> bool:
    return f.name in ("exp", "tanh", "sigmoid", "atan", "sinh")


# f = exp, x = [-1000, -500] (f32): exp gives [0, 0], whose first maximum is at 0; that of x is at
# 1.
@rule
def place_through_function(f: UnaryFn, x: Tensor, axis: Axis) -> Law:
    """arg_max(f(x)) = arg_max(x), for a strictly increasing f"""
    return rewrites(
        arg_reduce("max", unary(f, x), axis, Count(0)),
        arg_reduce("max", x, axis, Count(0)),
        is_increasing(f),
    )


@attribute_function
def whole_but(type_: TensorType, s: Slices, axis: Axis) -> bool:
    """Whether s turns the axis around and takes all else."""
    for i, n in enumerate(type_.shape):
        whole = (0, n, 1) if i != axis.index else (n - 1, n, -1)
        if (s.starts[i], s.sizes[i], s.steps[i]) != whole:
            return False
    return True


@attribute_function
def length(type_: TensorType, axis: Axis) -> Shape:
    return Shape((type_.shape[axis.index],))


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


@attribute_function
def other_end(last: Count) -> Count:
    return Count(1 - last.value)


# x = [1, 9, 3], s = [2+3*-1], last = 0: the reversed tensor has its max at 1; the right side is
# 3 - 1 = 2. (It should be extent - 1 - place.)
@rule
def place_in_reversed(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg_f(reversed x, last) = n - arg_f(x, not last)"""
    place = arg_reduce(f, x, axis, other_end(last))
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary(
            "sub",
            broadcast(
                reshape(extent(length(x.type, axis)), units(x.type)), Shape(place.type.shape)
            ),
            place,
        ),
        whole_but(x.type, s, axis),
    )


@attribute_function
def is_filled(type_: TensorType, axis: Axis) -> bool:
    return known_at_least(type_.shape[axis.index], 1)


# x = i32 [5], y = i32 [5], last = 0: the first maximum of [5, 5] is at 0. y's 5 is not less than
# x's 5, so 5 < 5 is false and the right side takes 0 + 1 = 1.
@rule
def place_in_parts(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """arg_max(concat(x, y)) = select(max(y) < max(x), arg_max(x), n + arg_max(y)), on integers"""
    place = arg_reduce("max", x, axis, Count(0))
    before = reshape(extent(length(x.type, axis)), units(x.type))
    return rewrites(
        arg_reduce("max", concat(x, y, axis), axis, Count(0)),
        select(
            binary("lt", reduce("max", y, only(axis)), reduce("max", x, only(axis))),
            place,
            binary(
                "add",
                broadcast(before, Shape(place.type.shape)),
                arg_reduce("max", y, axis, Count(0)),
            ),
        ),
        x.type.dtype.is_integer,
        is_filled(x.type, axis),
        is_filled(y.type, axis),
    )


@attribute_function
def is_in_order(c: Constant, type_: TensorType, axis: Axis) -> bool:
    """Whether c counts upwards and has as many elements as the axis."""
    return (
        c.type.rank == 1
        and c.type.shape[0] == type_.shape[axis.index]
        and bool(np.all(np.diff(c.array) > 0))
    )


# x = [10, 20], c = [-1, 0], axis = 0: -1 counts from the end, so the left side is [20, 10].
@rule
def drop_gather_in_order(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, c, axis) = x, when c is strictly increasing and as long as the axis"""
    return rewrites(gather(x, constant(c), axis), x, is_in_order(c, x.type, axis))


@attribute_function
def is_line(s: Shape) -> bool:
    return len(s.dims) == 1


# s = [3], indices = i64 [-1]: the element before the end is 2; the index is -1.
@rule
def gather_of_counter(s: Shape, i: Tensor) -> Law:
    """gather(iota(s), i, 0) = i, on one axis"""
    return rewrites(
        gather(iota(s, Axis(0), DType.I64), i, Axis(0)), i, is_line(s), i.type.dtype == DType.I64
    )


# t = i2, s = [3]: in i2 the counter is 0, 1, -2; in i64 it is 0, 1, 2. (t = i8: 128 becomes -128.)
@rule
def widen_counter(s: Shape, axis: Axis, t: DType) -> Law:
    """cast(iota(s, axis, t), i64) = iota(s, axis, i64), for integers t"""
    return rewrites(cast(iota(s, axis, t), DType.I64), iota(s, axis, DType.I64), t.is_integer)


@attribute_function
def last_place(s: Shape, axis: Axis) -> Scalar:
    n = s.dims[axis.index]
    if not isinstance(n, int):
        raise Refuse("the axis is open")
    return Scalar.of(n - 1, DType.I64)


@attribute_function
def as_ones(s: Shape) -> Shape:
    return Shape((1,) * len(s.dims))


# s = [0], axis = 0: the max of no i64 is -2**63; the right side is -1.
@rule
def most_of_counter(s: Shape, axis: Axis) -> Law:
    """max(iota(s, axis), axis) = n - 1"""
    left = reduce("max", iota(s, axis, DType.I64), only(axis))
    return rewrites(
        left,
        broadcast(reshape(scalar(last_place(s, axis)), as_ones(s)), Shape(left.type.shape)),
    )


@attribute_function
def part(d: Shape, c: Scalar) -> Shape:
    """How many pieces of c elements there are in d."""
    if c.dtype is not DType.I64 or int(c.value) < 1:
        raise Refuse("no pieces")
    return Shape(((d.dims[0] + int(c.value) - 1) // int(c.value),))


# d = [7], c = 2: 7 / 2 truncates to 3; the right side is (7 + 2 - 1) // 2 = 4.
@rule
def pieces_of_size(d: Shape, c: Scalar) -> Law:
    """extent(d) / c = extent(d / c), for c >= 1"""
    return rewrites(binary("div", extent(d), c), extent(part(d, c)))


# x = [3.0, 3.0] (f32): the first minimum is at 0, the last one at 1. (Right where all elements
# differ.)
@rule
def place_of_negated(x: Tensor, axis: Axis) -> Law:
    """arg_max(-x, the first) = arg_min(x, the last), on floats"""
    return rewrites(
        arg_reduce("max", unary("neg", x), axis, Count(0)),
        arg_reduce("min", x, axis, Count(1)),
        x.type.dtype.is_float,
    )
