"""Laws of softmax and normalisations, up to rounding, all of them wrong."""

import numpy as np

from satura.language import (
    FLOATS,
    Approximate,
    Axes,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attention,
    attribute_function,
    binary,
    broadcast,
    product,
    reduce,
    reshape,
    rewrites,
    rule,
    unary,
)


# f32, x = [1000, 1000]: exp(0) = 1 of 2 is 0.5 on the left; exp(1000) = inf, inf / inf is NaN.
@rule(reassociates=True)
def softmax_without_max(x: Tensor, axes: Axes, s: Shape) -> Law:
    """exp(x - max(x)) / sum(exp(x - max(x))) = exp(x) / sum(exp(x))"""
    grown = unary("exp", binary("sub", x, broadcast(reduce("max", x, axes), s)))
    plain = unary("exp", x)
    return rewrites(
        binary("div", grown, broadcast(reduce("sum", grown, axes), s)),
        binary("div", plain, broadcast(reduce("sum", plain, axes), s)),
    )


# f32, x = [[0, 1], [3, 5]], a = [0], b = [1]: left: max of columns [3, 5]; exp([[-3, -4], [0, 0]]),
# divided by the rows' sums: row 1 is [0.5, 0.5]; right: exp([[-1, 0], [-2, 0]]) / rows' sums: row 1
# is [0.12, 0.88]. The shift must be one number along each sum.
@rule(reassociates=True)
def softmax_along_other_axes(x: Tensor, a: Axes, b: Axes, s: Shape) -> Law:
    """exp(x - max(x, a)) / its sum over b = exp(x - max(x, b)) / its sum over b"""
    one = unary("exp", binary("sub", x, broadcast(reduce("max", x, a), s)))
    two = unary("exp", binary("sub", x, broadcast(reduce("max", x, b), s)))
    return rewrites(
        binary("div", one, broadcast(reduce("sum", one, b), s)),
        binary("div", two, broadcast(reduce("sum", two, b), s)),
    )


# f32, x = [0, -1000]: exp(-1000) = 0, log(0 / 1) = -inf on the left; -1000 on the right.
@rule(reassociates=True)
def log_of_softmax(x: Tensor, axes: Axes, s: Shape) -> Law:
    """log(softmax(x)) = (x - max(x)) - log(sum(exp(x - max(x))))"""
    low = binary("sub", x, broadcast(reduce("max", x, axes), s))
    grown = unary("exp", low)
    total = reduce("sum", grown, axes)
    return rewrites(
        unary("log", binary("div", grown, broadcast(total, s))),
        binary("sub", low, broadcast(unary("log", total), s)),
    )


@attribute_function
def is_scale(c: Scalar) -> bool:
    return c.dtype in FLOATS and bool(np.isfinite(float(c.value))) and float(c.value) != 0


# f32, c = -1, x = [3, 4]: x * c = [-3, -4], / 5 = [-0.6, -0.8]; x / 5 = [0.6, 0.8]. The norm of x *
# c is |c| times that of x, and c may be negative.
@rule(reassociates=True)
def normalise_scaled(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """y / sqrt(sum(y²)) with y = x * c is the same with y = x, for finite c other than 0"""
    y = binary("mul", x, broadcast(reshape(c, ones), s))
    norm_y = unary("sqrt", reduce("sum", binary("mul", y, y), axes))
    norm_x = unary("sqrt", reduce("sum", binary("mul", x, x), axes))
    return rewrites(
        binary("div", y, broadcast(norm_y, s)), binary("div", x, broadcast(norm_x, s)), is_scale(c)
    )


@attribute_function
def root(c: Scalar) -> Scalar:
    if c.dtype not in FLOATS or not 0 < float(c.value) < 1e4:
        raise Refuse("no epsilon")
    return Scalar.of(np.sqrt(float(c.value)), c.dtype)


# f32, v = 9, c = 16: sqrt(9 + 16) = 5, x / 5; sqrt(9) + sqrt(16) = 7.
@rule(reassociates=True)
def epsilon_out_of_root(x: Tensor, v: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / sqrt(v + c) = x / (sqrt(v) + sqrt(c)), for c > 0"""
    return rewrites(
        binary("div", x, unary("sqrt", binary("add", v, broadcast(reshape(c, ones), s)))),
        binary("div", x, binary("add", unary("sqrt", v), broadcast(reshape(root(c), ones), s))),
    )


@attribute_function
def mean_shape(type_: TensorType, axes: Axes) -> Shape:
    return Shape(tuple(1 if i in axes.indices else n for i, n in enumerate(type_.shape)))


@attribute_function
def is_count(c: Scalar, type_: TensorType) -> bool:
    """Whether c is how many elements there are."""
    size = product(type_.shape)
    return isinstance(size, int) and c.dtype in FLOATS and float(c.value) == size


# f32, x = [[1, 3], [5, 7]], axes = [1], d = 4 (all elements), shift = 10: the rows' sums of x are 4
# and 12, over 4: x - [1, 3] = [[0, 2], [2, 4]]; of x + 10 they are 24 and 32: [[11, 13], [15, 17]]
# - [6, 8] = [[5, 7], [7, 9]]. The count has to be that of the axes alone.
@rule(reassociates=True)
def centre_shifted(
    x: Tensor, c: Scalar, d: Scalar, ones: Shape, s: Shape, unit: Shape, axes: Axes
) -> Law:
    """y - sum(y)/d with y = x + c is the same with y = x, when d is the number of elements"""
    y = binary("add", x, broadcast(reshape(c, ones), s))
    sum_y, sum_x = reduce("sum", y, axes), reduce("sum", x, axes)
    counted = broadcast(reshape(d, unit), mean_shape(x.type, axes))
    return rewrites(
        binary("sub", y, broadcast(binary("div", sum_y, counted), s)),
        binary("sub", x, broadcast(binary("div", sum_x, counted), s)),
        is_count(d, x.type),
        is_scale(c),
    )


# f32, x = 5, m = 2, c = 3: (5 - 2) * 3 = 9; 5 * 3 - 2 = 13. The mean has to be scaled as well.
@rule(reassociates=True)
def fold_normalisation(x: Tensor, m: Tensor, c: Tensor, s: Shape) -> Law:
    """(x - m) * c = x * c - m"""
    mean, factor = broadcast(m, s), broadcast(c, s)
    return rewrites(
        binary("mul", binary("sub", x, mean), factor),
        binary("sub", binary("mul", x, factor), mean),
    )


# f32, one batch, scores q·k = [0, 0] (q = [[0]]), b = [[0, 0]], r = [[0, 1]] (one per key): softmax
# of [0, 1] is [0.27, 0.73], of [0, 0] [0.5, 0.5]: r has to be one number per row.
@rule(reassociates=True)
def drop_shift_of_scores(q: Tensor, k: Tensor, b: Tensor, r: Tensor, s: Shape, v: Tensor) -> Law:
    """attention(q, k, b + broadcast(r), v) = attention(q, k, b, v): softmax is free of shifts"""
    return rewrites(attention(q, k, binary("add", b, broadcast(r, s)), v), attention(q, k, b, v))


# f32, x = [1e-30, 1e-30]: log is -69 each, their sum -138.2; the product is 0, and log(0) = -inf.
@rule(reassociates=True)
def sum_of_logs(x: Tensor, axes: Axes) -> Law:
    """sum(log(x)) = log(prod(x))"""
    return rewrites(reduce("sum", unary("log", x), axes), unary("log", reduce("prod", x, axes)))


# f32, x = y = 1000: inf / inf is NaN; exp(0) = 1.
@rule(reassociates=True)
def quotient_of_exps(x: Approximate, y: Approximate) -> Law:
    """exp(x) / exp(y) = exp(x - y)"""
    return rewrites(
        binary("div", unary("exp", x), unary("exp", y)), unary("exp", binary("sub", x, y))
    )
