"""Laws of roundings, quotients and remainders, all of them wrong."""

from satura.language import (
    FLOATS,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    reshape,
    rewrites,
    rule,
    unary,
)


@attribute_function
def is_whole(c: Scalar) -> bool:
    return c.type.dtype in FLOATS and float(c.value).is_integer()


@attribute_function
def is_power_of_two(c: Scalar) -> bool:
    import math

    return (
        c.type.dtype in FLOATS
        and math.isfinite(float(c.value))
        and abs(math.frexp(float(c.value))[0]) == 0.5
    )


@attribute_function
def is_finite_and_not_zero(c: Scalar) -> bool:
    import math

    return c.type.dtype in FLOATS and math.isfinite(float(c.value)) and float(c.value) != 0


@attribute_function
def above_zero(c: Scalar) -> bool:
    return c.type.dtype.is_float and float(c.value) > 0


# f32: x = 5, c = 3: 5 / 3 = 1.6666666; 5 * 0.33333334 = 1.6666667.
@rule
def multiply_by_the_reciprocal(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c), for a finite c that is not 0"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, ones), s)),
        binary("mul", x, broadcast(reshape(binary("div", 1.0, c), ones), s)),
        is_finite_and_not_zero(c),
    )


# f16: c = 2^-24, x = 2^-24: 1; 1 / c = 2^24 is infinite in f16, and so is x * inf. f32: c = 2^-149.
@rule
def multiply_by_reciprocal_power(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c), where c is a power of two: its reciprocal is exact"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, ones), s)),
        binary("mul", x, broadcast(reshape(binary("div", 1.0, c), ones), s)),
        is_power_of_two(c),
    )


# f32: x = 1, y = inf: 1 mod inf = 1; 1 - floor(0) * inf = 1 - NaN = NaN.
@rule
def mod_by_floor(x: Tensor, y: Tensor) -> Law:
    """x mod y = x - floor(x / y) * y, on floats"""
    return rewrites(
        binary("mod", x, y),
        binary("sub", x, binary("mul", unary("floor", binary("div", x, y)), y)),
        x.type.dtype.is_float,
    )


# f32: c = 3, x = -1: fmod has the sign of x: -1; mod has that of c: 2.
@rule
def fmod_as_mod(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x fmod c = x mod c, where c > 0"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(binary("fmod", x, k), binary("mod", x, k), above_zero(c))


# f32: x = 0.5: floor(1.0) = 1; round(0.5) = 0, the even one.
@rule
def round_by_floor(x: Tensor) -> Law:
    """floor(x + 0.5) = round(x)"""
    return rewrites(unary("floor", binary("add", x, 0.5)), unary("round", x))


# f32: x = 1: ceil(1) = 1; floor(1) + 1 = 2.
@rule
def ceil_by_floor(x: Tensor) -> Law:
    """ceil(x) = floor(x) + 1"""
    return rewrites(unary("ceil", x), binary("add", unary("floor", x), 1.0))


# f32: c = 1, x = 0.99999994: x + 1 is a tie between 1.9999999 and 2, so 2, floor 2; 0 + 1 = 1.
@rule
def whole_out_of_floor(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """floor(x + c) = floor(x) + c, for a whole c"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        unary("floor", binary("add", x, k)), binary("add", unary("floor", x), k), is_whole(c)
    )


# f32: c = 1, x = 0.5: round(1.5) = 2; round(0.5) + 1 = 1: a tie goes to the even one.
@rule
def zero_point_out_of_round(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """round(x) + c = round(x + c), for a whole c"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("add", unary("round", x), k), unary("round", binary("add", x, k)), is_whole(c)
    )


# x = i32 1, y = 0: 1.0 / 0.0 = inf, which saturates to 2147483647; 1 / 0 = 0 for integers.
@rule
def divide_as_integers(x: Tensor, y: Tensor) -> Law:
    """i32(f64(x) / f64(y)) = x / y, on i32, all of which f64 holds"""
    return rewrites(
        cast(binary("div", cast(x, DType.F64), cast(y, DType.F64)), DType.I32),
        binary("div", x, y),
        x.type.dtype == DType.I32,
        y.type.dtype == DType.I32,
    )


# f32: x = -1.5: ceil(-1.5) = -1; -floor(-1.5) = 2.
@rule
def ceil_as_negated_floor(x: Tensor) -> Law:
    """ceil(x) = -floor(x)"""
    return rewrites(unary("ceil", x), unary("neg", unary("floor", x)))


# f32: x = inf: inf - inf = NaN, max(NaN, 1) = NaN; max(0, 1) = 1 (y = 1).
@rule
def difference_with_itself(x: Tensor, y: Tensor) -> Law:
    """max(x - x, y) = max(0, y), on floats"""
    return rewrites(
        binary("max", binary("sub", x, x), y), binary("max", 0.0, y), x.type.dtype.is_float
    )
