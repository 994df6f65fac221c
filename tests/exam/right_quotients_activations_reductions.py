"""Laws of quotients, exponentials, activations and reductions, all of them right."""

import numpy as np

from satura.language import (
    Approximate,
    Axes,
    Constant,
    Law,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    constant,
    reduce,
    reshape,
    rewrites,
    rule,
    unary,
)


@attribute_function
def reciprocals(c: Constant) -> Constant:
    """1 / c, for powers of two, positive or negative, whose reciprocals are exact and normal."""
    if not c.type.dtype.is_float or c.type.dtype.is_narrow:
        raise Refuse("no plain floats")
    wide = c.array.astype(np.float64)
    mantissas, exponents = np.frexp(wide)
    if not bool(np.all((np.abs(mantissas) == 0.5) & (np.abs(exponents) <= 12))):
        raise Refuse("no powers of two between 2**-13 and 2**11")
    return Constant(np.array(1 / wide).astype(c.array.dtype).reshape(c.array.shape))


@rule
def divide_by_power_of_two(x: Tensor, c: Constant) -> Law:
    """x / c = x * (1 / c), for powers of two: both are rounded from the same number"""
    return rewrites(binary("div", x, constant(c)), binary("mul", x, constant(reciprocals(c))))


@rule(reassociates=True)
def complement_of_sigmoid(x: Tensor) -> Law:
    """1 - sigmoid(x) = sigmoid(neg(x))"""
    return rewrites(binary("sub", 1.0, unary("sigmoid", x)), unary("sigmoid", unary("neg", x)))


@rule(reassociates=True)
def sigmoid_by_tanh(x: Tensor) -> Law:
    """sigmoid(x) = 0.5 * (tanh(0.5 * x) + 1)"""
    return rewrites(
        unary("sigmoid", x),
        binary("mul", 0.5, binary("add", unary("tanh", binary("mul", 0.5, x)), 1.0)),
    )


@attribute_function
def is_wide(t: TensorType) -> bool:
    """Whether it has floats of 32 or 64 bits."""
    return t.dtype.is_float and not t.dtype.is_narrow and t.dtype.itemsize >= 4


@rule(reassociates=True)
def reciprocal_of_exp(x: Approximate) -> Law:
    """1 / exp(x) = exp(neg(x)), for floats of 32 or 64 bits"""
    return rewrites(
        binary("div", 1.0, unary("exp", x)), unary("exp", unary("neg", x)), is_wide(x.type)
    )


@attribute_function
def is_positive_float(c: Scalar) -> bool:
    """Whether c is a finite float above 0."""
    if not c.dtype.is_float or c.dtype.is_narrow:
        raise Refuse("no plain float")
    return 0.0 < float(c.value) < float("inf")


@attribute_function
def is_selection(f: ReduceFn) -> bool:
    """Whether f chooses one of its elements."""
    return f.name in ("max", "min")


@rule
def factor_out_of_selection(
    f: ReduceFn, x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes
) -> Law:
    """f(x * c everywhere) = f(x) * c everywhere, for max and min and finite floats c > 0"""
    chosen = reduce(f, x, axes)
    return rewrites(
        reduce(f, binary("mul", x, broadcast(reshape(c, ones), s)), axes),
        binary("mul", chosen, broadcast(reshape(c, ones), Shape(chosen.type.shape))),
        is_selection(f),
        is_positive_float(c),
    )


@attribute_function
def opposite(f: ReduceFn) -> ReduceFn:
    """`min` for `max`, and the other way round."""
    if f.name not in ("max", "min"):
        raise Refuse(f"{f} chooses nothing")
    return ReduceFn("min" if f.name == "max" else "max")


@rule
def negation_out_of_selection(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """f(neg(x), axes) = neg(g(x, axes)), for max and min of floats; of nothing they are infinite"""
    return rewrites(
        reduce(f, unary("neg", x), axes),
        unary("neg", reduce(opposite(f), x, axes)),
        x.type.dtype.is_float,
    )


@attribute_function
def is_odd_count(t: TensorType, axes: Axes) -> bool:
    """Whether an odd number of elements is combined, whatever the open sizes are."""
    count = 1
    for axis in axes.indices:
        if axis >= t.rank:
            raise Refuse("no such axis")
        extent = t.shape[axis]
        if not isinstance(extent, int):
            raise Refuse("an open extent")
        count *= extent
    return count % 2 == 1


@rule
def sign_out_of_product(x: Tensor, axes: Axes) -> Law:
    """prod(neg(x), axes) = neg(prod(x, axes)), where an odd number of elements is multiplied"""
    return rewrites(
        reduce("prod", unary("neg", x), axes),
        unary("neg", reduce("prod", x, axes)),
        is_odd_count(x.type, axes),
    )


@rule
def factor_out_of_integer_sum(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """sum(x * c everywhere) = sum(x) * c everywhere, for integers, which wrap"""
    total = reduce("sum", x, axes)
    return rewrites(
        reduce("sum", binary("mul", x, broadcast(reshape(c, ones), s)), axes),
        binary("mul", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        x.type.dtype.is_integer,
    )


@rule(reassociates=True)
def divide_by_root(x: Tensor, y: Tensor) -> Law:
    """x / sqrt(y) = x * (1 / sqrt(y)): no root is subnormal, nor so large that 1 by it is"""
    root = unary("sqrt", y)
    return rewrites(binary("div", x, root), binary("mul", x, binary("div", 1.0, root)))
