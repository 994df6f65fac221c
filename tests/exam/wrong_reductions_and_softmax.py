"""Laws of reductions, softmax and places of extremes, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    matmul,
    product,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


# f32[1] x = [1000.0]: exp(0) / exp(0) = 1.0; exp(1000) is inf, inf / inf is NaN.
@rule(reassociates=True)
def softmax_without_maximum(x: Tensor, axes: Axes, s: Shape) -> Law:
    """exp(x - max) / sum(exp(x - max)) = exp(x) / sum(exp(x))"""
    stable = unary("exp", binary("sub", x, broadcast(reduce("max", x, axes), s)))
    plain = unary("exp", x)
    return rewrites(
        binary("div", stable, broadcast(reduce("sum", stable, axes), s)),
        binary("div", plain, broadcast(reduce("sum", plain, axes), s)),
    )


# f32[1, 2] x = [[0.0, 1.0]], a = (1), b = (0): x - max along axis 0 is 0, so the left side is
# [[0.5, 0.5]]; the right side is [[0.269, 0.731]].
@rule(reassociates=True)
def maximum_along_summed_axes(x: Tensor, a: Axes, b: Axes, s: Shape) -> Law:
    """e / sum(e, a) of e = exp(x - max(x, b)) is the same with max(x, a)"""
    left = unary("exp", binary("sub", x, broadcast(reduce("max", x, b), s)))
    right = unary("exp", binary("sub", x, broadcast(reduce("max", x, a), s)))
    return rewrites(
        binary("div", left, broadcast(reduce("sum", left, a), s)),
        binary("div", right, broadcast(reduce("sum", right, a), s)),
    )


@attribute_function
def count(x: TensorType, s: Shape, axes: Axes) -> Scalar:
    """How many elements a sum of repeated ones has."""
    if any(axis >= x.rank or x.shape[axis] != 1 for axis in axes.indices):
        raise Refuse("a summed axis is not repeated")
    number = product(s.dims)
    if not isinstance(number, int) or not x.dtype.is_integer or x.dtype.is_narrow:
        raise Refuse("open extents, or no integers")
    if number > x.dtype.bounds[1]:
        raise Refuse("too many elements")
    return Scalar.of(number, x.dtype)


@attribute_function
def reduced(s: Shape, axes: Axes) -> Shape:
    """s with 1 at the axes."""
    return Shape(tuple(1 if i in axes.indices else dim for i, dim in enumerate(s.dims)))


@attribute_function
def units(t: TensorType) -> Shape:
    """As many extents of 1 as t has axes."""
    return Shape((1,) * t.rank)


# i32[1, 1] x = [[1]], s = [2, 3], axes = (0): each column has the sum 2; the right side has 6.
@rule
def sum_of_repeated(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = broadcast(x * how often it is repeated, s with 1 at axes)"""
    factor = broadcast(reshape(scalar(count(x.type, s, axes)), units(x.type)), Shape(x.type.shape))
    return rewrites(
        reduce("sum", broadcast(x, s), axes),
        broadcast(binary("mul", x, factor), reduced(s, axes)),
    )


@attribute_function
def is_odd(axes: Axes) -> bool:
    """Whether the axes are odd in number."""
    return len(axes.indices) % 2 == 1


# i32[2] x = [1, 1], axes = (0), of which there is one: (-1) * (-1) = 1; -(1 * 1) = -1.
@rule
def sign_out_of_product(x: Tensor, axes: Axes) -> Law:
    """prod(neg(x), axes) = neg(prod(x, axes)), where an odd number is multiplied"""
    return rewrites(
        reduce("prod", unary("neg", x), axes),
        unary("neg", reduce("prod", x, axes)),
        is_odd(axes),
    )


@attribute_function
def is_no_negative_float(c: Scalar) -> bool:
    """Whether c is a finite float of at least 0."""
    if not c.dtype.is_float or c.dtype.is_narrow:
        raise Refuse("no plain float")
    return 0.0 <= float(c.value) < float("inf")


# f32[2] x = [-inf, 1.0], c = 0.0, axes = (0): -inf * 0 is NaN, so the left side is NaN; the maximum
# is 1.0, and 1 * 0 = 0.0.
@rule
def factor_out_of_maximum(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """max(x * c everywhere) = max(x) * c everywhere, for c >= 0"""
    most = reduce("max", x, axes)
    return rewrites(
        reduce("max", binary("mul", x, broadcast(reshape(c, ones), s)), axes),
        binary("mul", most, broadcast(reshape(c, ones), Shape(most.type.shape))),
        is_no_negative_float(c),
    )


# u8[2] x = [0, 1], axis = 0: the maximum is at 1; neg(x) = [0, 255], its minimum is at 0.
@rule
def place_of_maximum_by_negation(x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(max, x) = arg_reduce(min, neg(x))"""
    return rewrites(
        arg_reduce("max", x, axis, last), arg_reduce("min", unary("neg", x), axis, last)
    )


@attribute_function
def is_increasing(f: UnaryFn) -> bool:
    """Whether f increases strictly."""
    return f.name in ("exp", "sigmoid", "tanh", "atan", "sinh", "asinh", "erf")


# f = sigmoid, f32[2] x = [100.0, 200.0], axis = 0, last = 0: both become 1.0, so the first one
# counts: 0; the right side is 1.
@rule
def place_before_increasing(f: UnaryFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(max, f(x)) = arg_reduce(max, x), for f that increases strictly"""
    return rewrites(
        arg_reduce("max", unary(f, x), axis, last),
        arg_reduce("max", x, axis, last),
        is_increasing(f),
    )


# f32[0] x, axes = (0): the maximum of nothing is -inf, so the left side is 0.0; the right side is
# the maximum of nothing, -inf.
@rule
def relu_into_maximum(x: Tensor, axes: Axes) -> Law:
    """relu(max(x, axes)) = max(relu(x), axes)"""
    return rewrites(unary("relu", reduce("max", x, axes)), reduce("max", unary("relu", x), axes))


# bool[256] x, all true, axes = (0): the sum of 256 ones wraps to 0 in i8, which is false; the right
# side is true.
@rule
def any_by_counting(x: Tensor, axes: Axes) -> Law:
    """cast(sum(cast(x, i8)), bool) = max(x), for bools: whether there are any"""
    return rewrites(
        cast(reduce("sum", cast(x, DType.I8), axes), DType.BOOL),
        reduce("max", x, axes),
        x.type.dtype == DType.BOOL,
    )


@attribute_function
def last_but_one(t: TensorType) -> Axes:
    """The axis before the last."""
    if t.rank < 2:
        raise Refuse("no matrix")
    return Axes((t.rank - 2,))


# i32[2, 2] x = [[1, 2], [3, 4]], c = 1, s = [2, 2]: the rows' sums, [[3, 3], [7, 7]]; the right
# side has the columns' sums, [[4, 6], [4, 6]].
@rule
def multiply_by_everywhere(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """matmul(x, c everywhere) = broadcast(sum of x along the inner axis * c), for integers"""
    left = matmul(x, broadcast(reshape(c, ones), s))
    total = reduce("sum", x, last_but_one(x.type))
    right = broadcast(
        binary("mul", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        Shape(left.type.shape),
    )
    return rewrites(left, right, x.type.dtype.is_integer, left.type == right.type)
