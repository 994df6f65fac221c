"""Laws of factors, axes, groups and borders of contractions that do not fit, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Constant,
    DType,
    Groups,
    Known,
    Law,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    Window,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    conv,
    matmul,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
)


# x = f32[2, 2] = [[1, 1], [0, 0]], y = [[1, 0], [0, 0]]: (x y)^T = [[1, 0], [0, 0]];
# x^T y^T = [[1, 0], [1, 0]] [[1, 0], [0, 0]] = [[1, 0], [1, 0]].
@rule(reassociates=True)
def transpose_of_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(x, p), transpose(y, p)), where types agree"""
    left = transpose(matmul(x, y), p)
    right = matmul(transpose(x, p), transpose(y, p))
    return rewrites(left, right, left.type == right.type, typing.cast(bool, ~p.is_identity))


# x = w = f32[2, 2], c = f32[2, 1] = [1, 2]: x = [[1, 1], [1, 1]], w = [[1, 0], [0, 1]]: rows of x w
# times 1, 2: [[1, 1], [2, 2]]; x (w with its rows times 1, 2) = [[1, 2], [1, 2]].
@rule(reassociates=True)
def factor_into_weights(x: Varying, w: Known, c: Known, s: Shape) -> Law:
    """matmul(x, w) * broadcast(c) = matmul(x, w * broadcast(c)), where the types agree"""
    left = binary("mul", matmul(x, w), broadcast(c, s))
    right = matmul(x, binary("mul", w, broadcast(c, Shape(w.type.shape))))
    return rewrites(left, right, left.type == right.type)


# x = i8[1, 1] = [[100]], y = [[2]]: 200 in i32; in i8 it wraps to -56.
@attribute_function
def widens(x: TensorType, t: DType) -> bool:
    plain = x.dtype.is_integer and t.is_integer and not x.dtype.is_narrow and not t.is_narrow
    return plain and x.dtype.itemsize < t.itemsize


@rule
def widen_after_product(x: Tensor, y: Tensor, t: DType) -> Law:
    """matmul(cast(x, t), cast(y, t)) = cast(matmul(x, y), t) for integers that t holds"""
    return rewrites(
        matmul(cast(x, t), cast(y, t)),
        cast(matmul(x, y), t),
        widens(x.type, t),
        x.type.dtype == y.type.dtype,
    )


# x = f32[1, 1] = [[1]], padded by one column of 0.0, y = [[1], [inf]]: 1 * 1 + 0 * inf = NaN; the
# right is 1.0.
@attribute_function
def is_zero(v: Scalar) -> bool:
    return not any(v.bits)


@attribute_function
def first_rows(x: TensorType, y: TensorType) -> Slices:
    sizes = list(y.shape)
    sizes[-2] = x.shape[-1]
    return Slices((0,) * y.rank, tuple(sizes), (1,) * y.rank)


@attribute_function
def only_columns_after(b: Padding) -> bool:
    return not any(b.lo) and not any(b.hi[:-1])


@rule(reassociates=True)
def zero_columns(x: Tensor, y: Tensor, v: Scalar, b: Padding) -> Law:
    """matmul(pad(x, 0 after the columns), y) = matmul(x, first rows of y), up to rounding"""
    return rewrites(
        matmul(pad(x, v, b), y),
        matmul(x, slice_(y, first_rows(x.type, y.type))),
        only_columns_after(b) & is_zero(v),
    )


# x = y = f32[1, 2, 2], z = f32[1, 2, 2], axis = 0: the left is [2, 2, 2]; the right is ill typed,
# as batches are 2 and 1.
@attribute_function
def is_not_last(axis: Axis, t: TensorType) -> bool:
    return axis.index != t.rank - 1


@rule(reassociates=True)
def stack_products(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """concat(matmul(x, z), matmul(y, z), axis) = matmul(concat(x, y, axis), z), unless the axis is
    that of the columns"""
    return rewrites(
        concat(matmul(x, z), matmul(y, z), axis),
        matmul(concat(x, y, axis), z),
        is_not_last(axis, x.type),
    )


# x = f32[1, 1, 4] = [1, 0, 0, 0], w = f32[1, 2, 4] of ones, groups 2: channels 0, 1 of the result
# are of group 0, so [0:2] is [1, 1]. Of w cut to 2 channels the second is of group 1: [1, 0].
@attribute_function
def of_weights(s: Slices, w: TensorType, g: Groups, x: TensorType) -> Slices:
    whole = all(
        (s.starts[i], s.sizes[i], s.steps[i]) == (0, x.shape[i], 1) for i in range(x.rank - 1)
    )
    count = s.sizes[-1]
    refuse_unless(whole and isinstance(count, int) and count > 0 and count % g.count == 0)
    return Slices(
        (*[0] * (w.rank - 1), s.starts[-1]),
        (*w.shape[:-1], count),
        (*[1] * (w.rank - 1), s.steps[-1]),
    )


@rule(reassociates=True)
def slice_of_channels(x: Tensor, w: Tensor, window: Window, g: Groups, s: Slices) -> Law:
    """slice(conv(x, w), channels) = conv(x, slice(w, channels)), when groups divide their number"""
    y = conv(x, w, window, g)
    return rewrites(slice_(y, s), conv(x, slice_(w, of_weights(s, w.type, g, y.type)), window, g))


# i32: x = [[[0]]], b = 1, w = [1, 1] taps with lo = 1, fill 0: the left is w1 * (0 + 1) = 1; the
# right adds b times the sum of both taps: 0 + 2.
@attribute_function
def taps(w: TensorType) -> Axes:
    return Axes(tuple(range(w.rank - 1)))


@attribute_function
def flat(w: TensorType, rank: TensorType) -> Shape:
    return Shape((1,) * (rank.rank - 1) + (w.shape[-1],))


@attribute_function
def units(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@attribute_function
def is_single(g: Groups) -> bool:
    return g.count == 1


@rule
def shift_out_of_conv(
    x: Tensor, b: Scalar, o: Shape, s: Shape, w: Tensor, window: Window, g: Groups
) -> Law:
    """conv(x + b, w) = conv(x, w) + b * (sums of w per channel) on integers, of one group"""
    y = conv(x, w, window, g)
    sums = broadcast(
        reshape(reduce("sum", w, taps(w.type)), flat(w.type, y.type)), Shape(y.type.shape)
    )
    return rewrites(
        conv(binary("add", x, broadcast(reshape(b, o), s)), w, window, g),
        binary(
            "add",
            y,
            binary("mul", sums, broadcast(reshape(b, units(y.type)), Shape(y.type.shape))),
        ),
        x.type.dtype.is_integer,
        is_single(g),
    )


# i32: x = [[[1]]], w one tap of 1 with lo = 1, fill 5, c = 2: the left is [5, 2], the right [10,
# 2].
@rule
def factor_out_of_conv(
    x: Tensor, c: Scalar, o: Shape, s: Shape, w: Tensor, window: Window, g: Groups
) -> Law:
    """conv(x * c, w) = conv(x, w) * c on integers"""
    y = conv(x, w, window, g)
    return rewrites(
        conv(binary("mul", x, broadcast(reshape(c, o), s)), w, window, g),
        binary("mul", y, broadcast(reshape(c, units(y.type)), Shape(y.type.shape))),
        x.type.dtype.is_integer,
    )


# x = f32[1, 2] = [[inf, 1]], identity of 2 by 2: column 1 is inf * 0 + 1 * 1 = NaN; the right is
# 1.0.
@attribute_function
def is_identity(c: Constant) -> bool:
    import numpy as np

    shape = c.type.shape
    square = len(shape) == 2 and shape[0] == shape[1]
    return square and bool(np.array_equal(c.array, np.eye(typing.cast(int, shape[0]))))


@rule(reassociates=True)
def product_with_identity(x: Tensor, c: Constant) -> Law:
    """matmul(x, identity) = x, up to rounding"""
    return rewrites(matmul(x, constant(c)), x, is_identity(c))


# i32: x = [[0, 0], [0, 0]], z = 1, w = [[0, 0], [1, 1]]: the left is -(sums of columns) = [[-1,
# -1], [-1, -1]]; the sums along the last axis are 0 and 2: [[0, 0], [-2, -2]].
@attribute_function
def last_axis(t: TensorType) -> Axes:
    refuse_unless(t.rank >= 2 and t.shape[-1] == t.shape[-2])
    return Axes((t.rank - 1,))


@rule
def zero_point_of_rows(x: Tensor, z: Scalar, o: Shape, s: Shape, w: Tensor) -> Law:
    """matmul(x - z, w) = matmul(x, w) - z * (sums of w) on integers, when x and w are square"""
    y = matmul(x, w)
    sums = broadcast(reduce("sum", w, last_axis(w.type)), Shape(y.type.shape))
    return rewrites(
        matmul(binary("sub", x, broadcast(reshape(z, o), s)), w),
        binary(
            "sub",
            y,
            binary("mul", sums, broadcast(reshape(z, units(y.type)), Shape(y.type.shape))),
        ),
        x.type.dtype.is_integer,
        x.type == w.type,
    )
