"""Laws of activations, softmax and normalisations, up to rounding, all of them right."""

from satura.language import (
    FLOATS,
    Approximate,
    Axes,
    DType,
    Law,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
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


@attribute_function
def is_wide(of: DType) -> bool:
    return of in (DType.F32, DType.F64)


@rule(reassociates=True)
def sigmoid_of_negated(x: Tensor) -> Law:
    """sigmoid(-x) = 1 - sigmoid(x)"""
    return rewrites(
        unary("sigmoid", unary("neg", x)),
        binary("sub", 1.0, unary("sigmoid", x)),
        is_wide(x.type.dtype),
    )


@rule(reassociates=True)
def sigmoid_from_exp(x: Tensor) -> Law:
    """1 / (1 + exp(-x)) = sigmoid(x), on f32 and f64"""
    return rewrites(
        binary("div", 1.0, binary("add", 1.0, unary("exp", unary("neg", x)))),
        unary("sigmoid", x),
        is_wide(x.type.dtype),
    )


@rule(reassociates=True)
def tanh_from_sigmoid(x: Tensor) -> Law:
    """2 * sigmoid(2 * x) - 1 = tanh(x)"""
    return rewrites(
        binary(
            "sub",
            binary("mul", unary("sigmoid", binary("mul", x, 2.0)), 2.0),
            1.0,
        ),
        unary("tanh", x),
        is_wide(x.type.dtype),
    )


@rule(reassociates=True)
def tangent(x: Tensor) -> Law:
    """sin(x) / cos(x) = tan(x), on f64 and f32"""
    return rewrites(
        binary("div", unary("sin", x), unary("cos", x)), unary("tan", x), is_wide(x.type.dtype)
    )


@rule(reassociates=True)
def negation_out_of_sum(x: Tensor, axes: Axes) -> Law:
    """sum(-x) = -sum(x): of no elements they are 0.0 and -0.0"""
    return rewrites(reduce("sum", unary("neg", x), axes), unary("neg", reduce("sum", x, axes)))


@rule(reassociates=True)
def sum_of_sums(x: Tensor, y: Tensor, axes: Axes) -> Law:
    """sum(x + y) = sum(x) + sum(y)"""
    return rewrites(
        reduce("sum", binary("add", x, y), axes),
        binary("add", reduce("sum", x, axes), reduce("sum", y, axes)),
    )


@attribute_function
def is_moderate(c: Scalar) -> bool:
    """Whether c is a float that makes few numbers too large."""
    return c.dtype in (DType.F32, DType.F64) and 2.0**-10 <= abs(float(c.value)) <= 2.0**10


@rule(reassociates=True)
def softmax_shifted(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """softmax(x + c) = softmax(x), for one number c"""
    y = binary("add", x, broadcast(reshape(c, ones), s))
    exp_y = unary("exp", binary("sub", y, broadcast(reduce("max", y, axes), s)))
    exp_x = unary("exp", binary("sub", x, broadcast(reduce("max", x, axes), s)))
    return rewrites(
        binary("div", exp_y, broadcast(reduce("sum", exp_y, axes), s)),
        binary("div", exp_x, broadcast(reduce("sum", exp_x, axes), s)),
        is_moderate(c),
    )


@attribute_function
def is_count_along(d: Scalar, type_: TensorType, axes: Axes) -> bool:
    """Whether d is how many elements there are along the axes, and there are some."""
    count = product([type_.shape[axis] for axis in axes.indices])
    return isinstance(count, int) and count > 0 and float(d.value) == count


@rule(reassociates=True)
def centre_shifted(
    x: Tensor, c: Scalar, d: Scalar, ones: Shape, unit: Shape, s: Shape, axes: Axes
) -> Law:
    """y - sum(y) / d with y = x + c is the same with y = x, when d counts the elements of a sum"""
    y = binary("add", x, broadcast(reshape(c, ones), s))
    sum_y, sum_x = reduce("sum", y, axes), reduce("sum", x, axes)
    count = broadcast(reshape(d, unit), Shape(sum_x.type.shape))
    return rewrites(
        binary("sub", y, broadcast(binary("div", sum_y, count), s)),
        binary("sub", x, broadcast(binary("div", sum_x, count), s)),
        is_moderate(c),
        is_count_along(d, x.type, axes),
    )


@rule(reassociates=True)
def fold_normalisation(x: Tensor, m: Tensor, c: Tensor, s: Shape) -> Law:
    """(x - m) * c = x * c - m * c, with m and c broadcast"""
    mean, factor = broadcast(m, s), broadcast(c, s)
    return rewrites(
        binary("mul", binary("sub", x, mean), factor),
        binary("sub", binary("mul", x, factor), binary("mul", mean, factor)),
    )


@attribute_function
def scaled(a: Scalar, b: Scalar) -> Scalar:
    """a * b, where both are near 1."""
    if a.dtype not in FLOATS or a.dtype is not b.dtype:
        raise Refuse("no floats of one type")
    if not all(0.5 <= abs(float(c.value)) <= 2 for c in (a, b)):
        raise Refuse("not near 1")
    return Scalar.of(float(a.value) * float(b.value), a.dtype)


@rule(reassociates=True)
def merge_factors(x: Approximate, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x * a) * b = x * (a * b), for factors near 1"""
    return rewrites(
        binary(
            "mul", binary("mul", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("mul", x, broadcast(reshape(scaled(a, b), ones), s)),
    )


@rule(reassociates=True)
def divide_by_root(x: Tensor, v: Tensor) -> Law:
    """x * (1 / sqrt(v)) = x / sqrt(v)"""
    root = unary("sqrt", v)
    return rewrites(binary("mul", x, binary("div", 1.0, root)), binary("div", x, root))
