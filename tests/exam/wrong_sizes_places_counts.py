"""Laws of sizes, places and counts, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    Perm,
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
    iota,
    known_at_least,
    product,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
)


# x = i8[2] = [-128, 0], last = 0: -x is -128 (it wraps), 0, whose largest is at 1; the least of x
# is at 0.
@rule
def place_of_negated(x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(max, -x, axis) = arg_reduce(min, x, axis)"""
    return rewrites(
        arg_reduce("max", unary("neg", x), axis, last), arg_reduce("min", x, axis, last)
    )


# f32, f = sigmoid, x = [100.0, 200.0], last = 0: both sigmoids are 1.0, the first counts: 0; in x
# it is 1.
@attribute_function
def rises(f: UnaryFn) -> bool:
    return f.name in ("sigmoid", "tanh", "exp")


@rule
def place_after_activation(f: UnaryFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(max, f(x), axis) = arg_reduce(max, x, axis) for strictly rising functions f"""
    return rewrites(
        arg_reduce("max", unary(f, x), axis, last), arg_reduce("max", x, axis, last), rises(f)
    )


# x = [[0, 1], [1, 0]], a = {0}, b = {1}: the least of each column is 0, 0, the largest of these 0;
# the largest of each row is 1, 1, the least of these 1.
@rule
def exchange_extremes(x: Tensor, a: Axes, b: Axes) -> Law:
    """max(min(x, a), b) = min(max(x, b), a)"""
    return rewrites(reduce("max", reduce("min", x, a), b), reduce("min", reduce("max", x, b), a))


# i32, x = [1, 1, 1] broadcast to [3] itself: the sum is 3; the right is 3 * 3 = 9.
@attribute_function
def repeats(s: Shape, axes: Axes, t: TensorType) -> Scalar:
    count = product(s.dims[i] for i in axes.indices)
    refuse_unless(isinstance(count, int) and 0 <= count <= 127)
    refuse_unless(t.dtype.is_integer and not t.dtype.is_narrow)
    return Scalar.of(count, t.dtype)


@attribute_function
def with_ones(s: Shape, axes: Axes) -> Shape:
    return Shape(tuple(1 if i in axes.indices else n for i, n in enumerate(s.dims)))


@attribute_function
def units(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@rule
def sum_of_repeated(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = broadcast(sum(x, axes)) * (extents of s along the axes), on
    integers"""
    once = broadcast(reduce("sum", x, axes), with_ones(s, axes))
    return rewrites(
        reduce("sum", broadcast(x, s), axes),
        binary(
            "mul",
            once,
            broadcast(
                reshape(scalar(repeats(s, axes, x.type)), units(once.type)), Shape(once.type.shape)
            ),
        ),
    )


# x = f32[2], y = f32[2], s = [0 + 2, step 2]: elements 0 and 2, which is y's first; 0 + 2 <= 2
# holds, but the same slice of x is outside.
@attribute_function
def lies_in_first(s: Slices, x: TensorType, axis: Axis) -> bool:
    at = axis.index
    end = s.starts[at] + s.sizes[at]
    return s.steps[at] > 0 and known_at_least(x.shape[at] - end, 0)


@rule
def slice_of_first(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y, axis), s) = slice(x, s), when s starts and ends in x"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(x, s), lies_in_first(s, x.type, axis))


# x = f32[6] of 0..5, s = t' = [2, 3], p = (1, 0): 0 3 1 4 2 5, and once more: rows 0 3 1 / 4 2 5
# give 0 4 3 2 1 5, which is not x. For s = [2, 2] it is.
@attribute_function
def undoes_itself(p: Perm) -> bool:
    return p.inverse == p


@attribute_function
def same_shape(t: Shape, x: TensorType) -> bool:
    return tuple(t.dims) == tuple(x.shape)


@rule
def shuffle_twice(x: Tensor, s: Shape, p: Perm, t: Shape) -> Law:
    """a channel shuffle by a p that is its own inverse, done twice, is nothing"""
    once = reshape(transpose(reshape(x, s), p), t)
    return rewrites(
        reshape(transpose(reshape(once, s), p), t),
        x,
        undoes_itself(p) & same_shape(t, x.type),
    )


# iota(s = [4]) of i64 is 0..3, n = 3: 3 >= 4 - 1 holds, but 3 < 3 is false; the right is true
# everywhere.
@attribute_function
def exceeds(n: Scalar, s: Shape, a: Axis) -> bool:
    refuse_unless(isinstance(s.dims[a.index], int))
    return (
        n.dtype in (DType.I32, DType.I64) and int(n.value) >= typing.cast(int, s.dims[a.index]) - 1
    )


@attribute_function
def true_of(t: TensorType) -> Scalar:
    return Scalar.of(True, DType.BOOL)


@rule
def mask_that_keeps_all(s: Shape, a: Axis, t: DType, n: Scalar, o: Shape) -> Law:
    """(iota(s, a) < n) = true, when n reaches the last index"""
    places = iota(s, a, t)
    return rewrites(
        binary("lt", places, broadcast(reshape(n, o), s)),
        broadcast(reshape(scalar(true_of(places.type)), o), s),
        exceeds(n, s, a),
    )


# s = [200], t = i8, u = i32: index 150 is -106 in i8, and stays so in i32; the right has 150.
@attribute_function
def signed_integers(t: DType, u: DType) -> bool:
    return t in (DType.I8, DType.I16) and u in (DType.I32, DType.I64)


@rule
def wider_places(s: Shape, a: Axis, t: DType, u: DType) -> Law:
    """cast(iota(s, a, t), u) = iota(s, a, u) for integers that get wider"""
    return rewrites(cast(iota(s, a, t), u), iota(s, a, u), signed_integers(t, u))
