"""Laws of layout with indices and sizes, and of windows, all of them wrong."""

from dataclasses import replace

from satura.language import (
    Axes,
    Axis,
    Constant,
    Count,
    DType,
    Law,
    Perm,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    constant,
    gather,
    pool,
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


# x = f32[n, m] with open n and m, p = (1, 0): no extent is a number above 1, so the condition
# holds; for n = m = 2 the left is [x00, x10, x01, x11], the right [x00, x01, x10, x11].
@attribute_function
def moves_units(p: Perm, t: TensorType) -> Shape:
    longer = [n for n in t.shape if isinstance(n, int) and n > 1]
    refuse_unless(len(longer) <= 1)
    return Shape(p.apply(t.shape))


@rule
def transpose_of_row(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when no two extents are above 1"""
    return rewrites(transpose(x, p), reshape(x, moves_units(p, x.type)))


# x = f32[2, 3], i = i64[] = 1, of rank 0, j = i64[1] = [2]: gather(x, i, 0) is x[1] = f32[3], of
# which j takes element 2; gather(i, j, 0) of a 0-d tensor is ill typed.
@rule
def gather_of_gathered(x: Tensor, i: Tensor, j: Tensor) -> Law:
    """gather(gather(x, i, 0), j, 0) = gather(x, gather(i, j, 0), 0)"""
    return rewrites(
        gather(gather(x, i, Axis(0)), j, Axis(0)), gather(x, gather(i, j, Axis(0)), Axis(0))
    )


# x = f32[2] = [1.0, 1.0], f = max, last = 0: reversed, the first largest is 0, and so in x: the
# left is 0, the right 2 - 1 - 0 = 1. Of equal elements the other one would have to count.
@attribute_function
def is_reversal(s: Slices, axis: Axis, t: TensorType) -> bool:
    at = axis.index
    for i, n in enumerate(t.shape):
        wanted = (n - 1, n, -1) if i == at else (0, n, 1)
        if (s.starts[i], s.sizes[i], s.steps[i]) != wanted:
            return False
    return True


@attribute_function
def last_index(t: TensorType, axis: Axis) -> Scalar:
    n = t.shape[axis.index]
    if not isinstance(n, int):
        raise Refuse("open extent")
    return Scalar.of(n - 1, DType.I64)


@attribute_function
def unit_shape(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@rule
def place_in_reversed(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg_reduce(f, reversed x, axis) = n - 1 - arg_reduce(f, x, axis)"""
    place = arg_reduce(f, x, axis, last)
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary(
            "sub",
            broadcast(
                reshape(scalar(last_index(x.type, axis)), unit_shape(x.type)),
                Shape(place.type.shape),
            ),
            place,
        ),
        is_reversal(s, axis, x.type),
    )


# constant = [-1, 0], x = f32[3] = [a, b, c]: the gather gives c, a; the slice from -1 on is no
# slice.
@attribute_function
def run(indices: Constant, x: TensorType, axis: Axis) -> Slices:
    values = [int(v) for v in indices.array.ravel()]
    refuse_unless(len(indices.type.shape) == 1 and len(values) > 0)
    refuse_unless(values == list(range(values[0], values[0] + len(values))))
    refuse_unless(axis.index < x.rank)
    starts = [0] * x.rank
    sizes = list(x.shape)
    starts[axis.index], sizes[axis.index] = values[0], len(values)
    return Slices(tuple(starts), tuple(sizes), (1,) * x.rank)


@rule
def gather_of_run(x: Tensor, indices: Constant, axis: Axis) -> Law:
    """gather(x, k, k + 1, …, axis) = slice(x, from k on)"""
    return rewrites(gather(x, constant(indices), axis), slice_(x, run(indices, x.type, axis)))


# x = f32[3, 3] of 0..8, s = [0 + 3, 2 + 3 * -1]: it takes 3 of 3 elements of each axis, but the
# second backwards: row 0 is 2, 1, 0; the right has 0, 1, 2.
@rule
def slice_of_all(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s takes as many elements as there are"""
    return rewrites(slice_(x, s), x, slice_(x, s).type == x.type)


def merged(a: Window, b: Window) -> Window:
    plain = not a.has_border and not b.has_border
    refuse_unless(plain and set(a.dilations + b.dilations) <= {1})
    sizes = tuple(m + n - 1 for m, n in zip(a.sizes, b.sizes, strict=True))
    strides = tuple(m * n for m, n in zip(a.strides, b.strides, strict=True))
    return replace(a, sizes=sizes, strides=strides)


# x = f32[5] = [0, 0, 0, 0, 9], a = size 1, stride 2 (x0, x2, x4), b = size 3: the left is 9.0; the
# merged window has size 1 + 3 - 1 = 3, not 1 + 2 * 2 = 5, and stride 2: [0, 9], of another shape.
@attribute_function
def both_windows(a: Window, b: Window) -> Window:
    return merged(a, b)


@rule
def merge_max_pools(x: Tensor, a: Window, b: Window) -> Law:
    """pool(max, pool(max, x, a), b) = pool(max, x, a then b)"""
    return rewrites(pool("max", pool("max", x, a), b), pool("max", x, both_windows(a, b)))


# i32, x = [1, 1, 1], a = b = size 2, stride 1: sums of pairs are 2, 2, whose sum is 4; the right is
# the sum of three: 3.
@attribute_function
def overlapping(a: Window, b: Window) -> Window:
    refuse_unless(set(a.strides) <= {1})
    return merged(a, b)


@rule
def merge_sum_pools(x: Tensor, a: Window, b: Window) -> Law:
    """pool(sum, pool(sum, x, a), b) = pool(sum, x, a then b), when a moves in steps of 1"""
    return rewrites(
        pool("sum", pool("sum", x, a), b),
        pool("sum", x, overlapping(a, b)),
        x.type.dtype.is_integer,
    )


# x = f32[1] = [-5.0], window of size 1 with lo = 1 and fill -inf: the first position sees only
# fill: relu first gives max = -inf; relu last gives relu(-inf) = 0.0.
@rule
def relu_after_pool(x: Tensor, w: Window) -> Law:
    """pool(max, relu(x), w) = relu(pool(max, x, w))"""
    return rewrites(pool("max", unary("relu", x), w), unary("relu", pool("max", x, w)))


# f32, x = [0.0], window of size 1 with lo = 1 and fill 3.0: the left is -max(3) = -3.0 there, the
# right min(3) = 3.0.
@rule
def negated_pool(x: Tensor, w: Window) -> Law:
    """-pool(max, -x, w) = pool(min, x, w) on floats"""
    return rewrites(
        unary("neg", pool("max", unary("neg", x), w)), pool("min", x, w), x.type.dtype.is_float
    )


# x = f32[3] = [-1, -2, -3], window of size 3, stride 3, lo = 1, hi = 0, fill 0.0: one position, of
# fill, x0, x1: the max is 0.0; the max of x is -1.0. Both have shape [1].
@attribute_function
def covers(w: Window, t: TensorType) -> bool:
    return tuple(w.sizes) == tuple(t.shape) and set(w.dilations) <= {1}


@attribute_function
def all_axes(t: TensorType) -> Axes:
    return Axes(tuple(range(t.rank)))


@rule
def global_pool(x: Tensor, w: Window) -> Law:
    """pool(max, x, w) = reduce(max, x), when the window has the extents of x and one position"""
    left = pool("max", x, w)
    right = reduce("max", x, all_axes(x.type))
    return rewrites(left, right, covers(w, x.type), left.type == right.type)


# f32[4] of 0..3, size 1, stride 3, no border: positions 0 and 3, (4 - 1) // 3 + 1 = 2 of them;
# 4 // 3 = 1 element.
@attribute_function
def strided(w: Window, t: TensorType) -> Slices:
    refuse_unless(not w.has_border and set(w.sizes) <= {1})
    sizes = tuple(n // s for n, s in zip(t.shape, w.strides, strict=True))
    return Slices((0,) * t.rank, sizes, w.strides)


@rule
def pool_of_single_elements(x: Tensor, w: Window) -> Law:
    """pool(max, x, w) = slice(x, steps as the strides), when the window has one element"""
    return rewrites(pool("max", x, w), slice_(x, strided(w, x.type)))
