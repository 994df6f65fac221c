"""Laws of numbers in reductions, pads, windows and contractions, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Count,
    Groups,
    Law,
    Padding,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    conv,
    matmul,
    pad,
    reduce,
    reshape,
    rewrites,
    rule,
    unary,
)


@attribute_function
def keeps_zero(f: UnaryFn) -> bool:
    return f.name in (
        "neg",
        "abs",
        "relu",
        "sign",
        "sqrt",
        "tanh",
        "erf",
        "sin",
        "floor",
        "ceil",
        "round",
    )


@attribute_function
def above_zero(c: Scalar) -> bool:
    return c.type.dtype.is_float and float(c.value) > 0


@attribute_function
def is_plain_zero(c: Scalar) -> bool:
    return not any(c.bits)


@attribute_function
def one_factor_per_last_axis(c: TensorType) -> bool:
    return c.rank == 2 and c.shape[0] == 1


@attribute_function
def all_but_last(w: TensorType) -> Axes:
    return Axes(tuple(range(w.rank - 1)))


# i32[2] [1, 1], c = 2, axis 0: 1 / 2 = 0 twice, the sum 0; 2 / 2 = 1.
@rule
def quotient_out_of_sum(x: Tensor, a: Axes, c: Scalar, ones: Shape, s: Shape) -> Law:
    """sum(x / c) = sum(x) / c, on integers, of which no sum is rounded"""
    total = reduce("sum", x, a)
    return rewrites(
        reduce("sum", binary("div", x, broadcast(reshape(c, ones), s)), a),
        binary("div", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        x.type.dtype.is_integer,
    )


# c = 5 as f32, s = [0], axis 0: the max of nothing is -inf; the right side is 5.
@rule
def max_of_repeated(c: Scalar, ones: Shape, s: Shape, a: Axes) -> Law:
    """max(c everywhere) = c everywhere"""
    m = reduce("max", broadcast(reshape(c, ones), s), a)
    return rewrites(m, broadcast(reshape(c, ones), Shape(m.type.shape)))


# f32[1] [-1], one 0 after it, axis 0: max(-1, 0) = 0; max(-1) = -1.
@rule
def zeros_under_max(x: Tensor, p: Padding, a: Axes) -> Law:
    """max(pad(x, 0)) = max(x), when only axes of the max are padded"""
    left, right = reduce("max", pad(x, 0, p), a), reduce("max", x, a)
    return rewrites(left, right, left.type == right.type)


# f = neg, f32: the border of the left side is -0.0, that of the right 0.0.
@rule
def function_into_zero_pad(f: UnaryFn, x: Tensor, p: Padding) -> Law:
    """f(pad(x, 0.0)) = pad(f(x), 0.0), for an f of which 0 stays 0"""
    return rewrites(unary(f, pad(x, 0.0, p)), pad(unary(f, x), 0.0, p), keeps_zero(f))


# i32: v = 1, w = 2, one element of border: 1 + 2 = 3 there; the right side has v = 1.
@rule
def sum_of_pads(x: Tensor, y: Tensor, v: Scalar, w: Scalar, p: Padding) -> Law:
    """pad(x, v) + pad(y, w) = pad(x + y, v)"""
    return rewrites(binary("add", pad(x, v, p), pad(y, w, p)), pad(binary("add", x, y), v, p))


# f32: x = [[inf]] (1x1), y all zeros (1x1): inf * 0 = NaN; the right side is 0.
@rule
def product_with_zeros(x: Tensor, zero: Scalar, ones: Shape, s: Shape) -> Law:
    """matmul(x, zeros) = zeros"""
    m = matmul(x, broadcast(reshape(zero, ones), s))
    return rewrites(m, broadcast(reshape(zero, ones), Shape(m.type.shape)), is_plain_zero(zero))


# i32, x = [[1, 0], [0, 1]], y = [[0, 1], [1, 0]], c = [[2, 3]]: left [[0, 3], [2, 0]]; x * c =
# [[2, 0], [0, 3]], times y is [[0, 2], [3, 0]].
@rule
def column_factors_into_rows(x: Tensor, y: Tensor, c: Tensor, s: Shape) -> Law:
    """matmul(x, y) * broadcast(c) = matmul(x * broadcast(c), y) on integers, for square x and y and
    one factor per column"""
    return rewrites(
        binary("mul", matmul(x, y), broadcast(c, s)),
        matmul(binary("mul", x, broadcast(c, s)), y),
        x.type == y.type,
        one_factor_per_last_axis(c.type),
        x.type.dtype.is_integer,
    )


# i32, one spatial axis of 1, window of 2 taps with lo = 1, fill 0, w = [1, 1], x = 0, c = 5: the
# border stays 0: left 0 + 5 = 5; right 0 + 5 * 2 = 10.
@rule
def shift_out_of_conv(
    x: Tensor, w: Tensor, c: Scalar, o: Shape, s: Shape, v: Window, g: Groups
) -> Law:
    """conv(x + c, w) = conv(x, w) + c * (sums of w's output channels), on integers"""
    plain = conv(x, w, v, g)
    t = Shape(plain.type.shape)
    sums = broadcast(reduce("sum", w, all_but_last(w.type)), t)
    return rewrites(
        conv(binary("add", x, broadcast(reshape(c, o), s)), w, v, g),
        binary("add", plain, binary("mul", sums, broadcast(reshape(c, o), t))),
        x.type.dtype.is_integer,
    )


# f32[1] [3], c = -1, axis 0: -3 / sqrt(9) = -1; 3 / 3 = 1.
@rule(reassociates=True)
def factor_before_l2_norm(x: Tensor, c: Scalar, ones: Shape, s: Shape, a: Axes) -> Law:
    """(c * x) / norm(c * x) = x / norm(x), up to rounding"""
    y = binary("mul", x, broadcast(reshape(c, ones), s))
    return rewrites(
        binary("div", y, broadcast(unary("sqrt", reduce("sum", binary("mul", y, y), a)), s)),
        binary("div", x, broadcast(unary("sqrt", reduce("sum", binary("mul", x, x), a)), s)),
    )


# i32[2] [1, 1], c = 2, axis 0: 2 * 2 = 4; 1 * 2 = 2: it has to be c^2.
@rule
def factor_out_of_prod(x: Tensor, a: Axes, c: Scalar, ones: Shape, s: Shape) -> Law:
    """prod(x * c) = prod(x) * c, on integers"""
    total = reduce("prod", x, a)
    return rewrites(
        reduce("prod", binary("mul", x, broadcast(reshape(c, ones), s)), a),
        binary("mul", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        x.type.dtype.is_integer,
    )


# i8[2] [127, 0], c = 1, axis 0: max(-128, 1) = 1; 127 + 1 = -128.
@rule
def term_out_of_max(x: Tensor, a: Axes, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x + c) = max(x) + c, on integers"""
    total = reduce("max", x, a)
    return rewrites(
        reduce("max", binary("add", x, broadcast(reshape(c, ones), s)), a),
        binary("add", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        x.type.dtype.is_integer,
    )


# f32[2] [2e38, 3e38], c = 2: [inf, inf], so index 0; without the factor index 1.
@rule
def factor_before_arg_max(x: Tensor, a: Axis, l: Count, c: Scalar, ones: Shape, s: Shape) -> Law:
    """argmax(x * c) = argmax(x), where c > 0"""
    return rewrites(
        arg_reduce("max", binary("mul", x, broadcast(reshape(c, ones), s)), a, l),
        arg_reduce("max", x, a, l),
        above_zero(c),
    )
