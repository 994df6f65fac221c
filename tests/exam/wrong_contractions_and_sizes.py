"""Laws of contractions and sizes, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Dim,
    DType,
    Groups,
    Law,
    ReduceFn,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    exact_quotient,
    extent,
    matmul,
    product,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    winograd,
)


# f32, q = [[[0]]], k = [[[0], [0]]], b = [[[0, 0]]], c = [[[0, 100]]] of extent 1 along the
# queries, v = [[[1], [3]]]: the left is 3.0 (the second key wins), the right (1 + 3) / 2 = 2.0.
@attribute_function
def one_per_row(c: TensorType) -> bool:
    return c.rank >= 2 and c.shape[-2] == 1


@rule(reassociates=True)
def shift_of_softmax(q: Tensor, k: Tensor, b: Tensor, c: Tensor, s: Shape, v: Tensor) -> Law:
    """attention(q, k, b + broadcast(c), v) = attention(q, k, b, v), when c is one per row"""
    return rewrites(
        attention(q, k, binary("add", b, broadcast(c, s)), v),
        attention(q, k, b, v),
        one_per_row(c.type),
    )


# x = f32[1, 5, 5, 1], w = f32[3, 3, 1, 1], dilations (2, 2): the conv has reach 5 and one position;
# a winograd takes no dilations: the right is ill typed.
@attribute_function
def three_by_three(w: Window, g: Groups) -> bool:
    return w.sizes == (3, 3) and w.strides == (1, 1) and g.count == 1


@rule(reassociates=True)
def conv_as_winograd(x: Tensor, y: Tensor, w: Window, g: Groups) -> Law:
    """conv(x, y) = winograd(x, y) on f32 for 3×3 taps in steps of 1"""
    return rewrites(
        conv(x, y, w, g), winograd(x, y, w), three_by_three(w, g), x.type.dtype == DType.F32
    )


# f32, x = [[1.1]], y = [[1.7]], z = [[1.6]]: (1.1 * 1.7) * 1.6 and 1.1 * (1.7 * 1.6) differ in the
# last bit, and the law is not marked.
@rule
def regroup_products(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """matmul(matmul(x, y), z) = matmul(x, matmul(y, z))"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)))


# x = f32[1, 2, 2] (n, length, channel), w = f32[1, 2, 2], stride 2: the conv has one position; the
# matmul of all rows has two: the reshape to the result is ill typed.
@attribute_function
def rows(t: TensorType) -> Shape:
    return Shape((product(t.shape[:-1]), t.shape[-1]))


@attribute_function
def is_pointwise(w: Window, g: Groups) -> bool:
    return set(w.sizes) <= {1} and not w.has_border and g.count == 1


@rule(reassociates=True)
def pointwise_conv(x: Tensor, y: Tensor, w: Window, g: Groups) -> Law:
    """conv(x, y) = matmul(rows of x, y), reshaped, for kernels of one tap"""
    left = conv(x, y, w, g)
    return rewrites(
        left,
        reshape(matmul(reshape(x, rows(x.type)), reshape(y, rows(y.type))), Shape(left.type.shape)),
        is_pointwise(w, g),
    )


# x = f32[1], s = [0] along axis 0, f = max: the left is the identity of an empty max, -inf; the
# right is x. (A broadcast to extent 0 is one of an axis of extent 1 repeated no times.)
@attribute_function
def is_selection(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def all_axes(t: TensorType) -> Axes:
    return Axes(tuple(range(t.rank)))


@attribute_function
def all_units(t: TensorType) -> bool:
    return all(n == 1 for n in t.shape)


@rule
def largest_of_repeated(f: ReduceFn, x: Tensor, s: Shape) -> Law:
    """reduce(f, broadcast(x, s)) = x, for max and min of one element that is repeated"""
    repeated = broadcast(x, s)
    return rewrites(
        reduce(f, repeated, all_axes(repeated.type)), x, is_selection(f) & all_units(x.type)
    )


# x = i8[256] of c = 2 everywhere: the product wraps to 2 ** 256 = 0; the count 256 in i8 is 0, and
# pow(2, 0) = 1.
@attribute_function
def count_as(s: Shape, t: TensorType) -> Scalar:
    import math

    refuse_unless(all(isinstance(n, int) for n in s.dims))
    size = math.prod(typing.cast(tuple[int, ...], s.dims))
    refuse_unless(t.dtype.is_integer and not t.dtype.is_narrow)
    bits = 8 * t.dtype.itemsize
    size %= 1 << bits
    if t.dtype.is_signed and size >= 1 << (bits - 1):
        size -= 1 << bits
    return Scalar.of(size, t.dtype)


@rule
def product_of_one_number(c: Scalar, o: Shape, s: Shape) -> Law:
    """prod(c everywhere) = pow(c, how many) on integers"""
    whole = broadcast(reshape(c, o), s)
    return rewrites(
        reduce("prod", whole, all_axes(whole.type)),
        reshape(binary("pow", c, scalar(count_as(s, c.type))), o),
    )


# n = 3, m = 0: extents n * m = 0 and m = 0: 0 / 0 = 0 for integers; the right is 3.
@attribute_function
def share(a: Shape, b: Shape) -> Shape:
    refuse_unless(b.dims[0] != 0)
    quotient = exact_quotient(a.dims[0], b.dims[0])
    refuse_unless(quotient is not None)
    return Shape((typing.cast(Dim, quotient),))


@rule
def quotient_of_sizes(a: Shape, b: Shape) -> Law:
    """extent(a) / extent(b) = extent(a / b), when it comes out even for all sizes"""
    return rewrites(binary("div", extent(a), extent(b)), extent(share(a, b)))


# x = f32[0, 3], axes = {0}: extents are 1 at most, but the left is f32[1, 3] of -inf, the right
# f32[0, 3].
@attribute_function
def at_most_one(t: TensorType, axes: Axes) -> bool:
    return all(
        isinstance(t.shape[i], int) and typing.cast(int, t.shape[i]) <= 1 for i in axes.indices
    )


@rule
def reduce_single(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """reduce(f, x, axes) = x for max and min, when there is no second element"""
    return rewrites(reduce(f, x, axes), x, is_selection(f), at_most_one(x.type, axes))


# x = f32[0, 2], y = f32[0, 3], axis = 1: y has no elements, but the left is f32[0, 5], the right
# f32[0, 2].
@attribute_function
def is_empty(t: TensorType) -> bool:
    return product(t.shape) == 0


@rule
def concat_with_nothing(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y, axis) = x, when y has no elements"""
    return rewrites(concat(x, y, axis), x, is_empty(y.type))
