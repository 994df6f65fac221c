"""Laws of bounds, relu, sign and abs, all of them wrong."""

from satura.language import (
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


@attribute_function
def is_zero(c: Scalar) -> bool:
    return c.type.dtype is not DType.BOOL and float(c.value) == 0


@attribute_function
def not_negative(c: Scalar) -> bool:
    return c.type.dtype is not DType.BOOL and float(c.value) >= 0


@attribute_function
def above_zero(c: Scalar) -> bool:
    return c.type.dtype is not DType.BOOL and float(c.value) > 0


@attribute_function
def at_most_one(c: Scalar) -> bool:
    return c.type.dtype.is_float and 0 <= float(c.value) <= 1


# f32, zero = -0.0: x = -0.0: max(-0.0, -0.0) = -0.0; relu(-0.0) = 0.0.
@rule
def relu_from_max_with_any_zero(x: Tensor, zero: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x, 0 everywhere) = relu(x)"""
    return rewrites(
        binary("max", x, broadcast(reshape(zero, ones), s)), unary("relu", x), is_zero(zero)
    )


# i32: x = 3, lo = 5, hi = 1: min(max(3, 5), 1) = 1; max(min(3, 1), 5) = 5.
@rule
def exchange_clip_bounds(x: Tensor, lo: Scalar, hi: Scalar, ones: Shape, s: Shape) -> Law:
    """min(max(x, lo), hi) = max(min(x, hi), lo)"""
    low, high = broadcast(reshape(lo, ones), s), broadcast(reshape(hi, ones), s)
    return rewrites(
        binary("min", binary("max", x, low), high), binary("max", binary("min", x, high), low)
    )


# i32: a = 0, b = 1, c = 2, d = 3, x = 0: clip to [0, 1] gives 0, then 2; right: min(max(0, 2), 1) =
# 1.
@rule
def merge_clips(x: Tensor, a: Scalar, b: Scalar, c: Scalar, d: Scalar, o: Shape, s: Shape) -> Law:
    """clip(clip(x, a, b), c, d) = clip(x, max(a, c), min(b, d))"""
    inner = binary(
        "min", binary("max", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)
    )
    return rewrites(
        binary(
            "min", binary("max", inner, broadcast(reshape(c, o), s)), broadcast(reshape(d, o), s)
        ),
        binary(
            "min",
            binary("max", x, broadcast(reshape(binary("max", a, c), o), s)),
            broadcast(reshape(binary("min", b, d), o), s),
        ),
    )


# i32: x = 1, y = 2: -max(1, 2) = -2; max(-1, -2) = -1.
@rule
def negation_into_max(x: Tensor, y: Tensor) -> Law:
    """-max(x, y) = max(-x, -y)"""
    return rewrites(
        unary("neg", binary("max", x, y)), binary("max", unary("neg", x), unary("neg", y))
    )


# f32: c = 0, x = -inf, y = 1: max(-inf * 0, 1 * 0) = max(NaN, 0) = NaN; max(-inf, 1) * 0 = 0.
@rule
def factor_out_of_max(x: Tensor, y: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x * c, y * c) = max(x, y) * c, on floats where c is not negative"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("max", binary("mul", x, k), binary("mul", y, k)),
        binary("mul", binary("max", x, y), k),
        not_negative(c),
        x.type.dtype.is_float,
    )


# f32: a = 0, x = inf: inf * 0 = NaN, max(inf, NaN) = NaN; inf < 0 is false, the right side is inf.
@rule
def leaky_relu_from_max(x: Tensor, a: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x, x * a) = select(x < 0, x * a, x), for 0 <= a <= 1"""
    scaled = binary("mul", x, broadcast(reshape(a, ones), s))
    return rewrites(
        binary("max", x, scaled), select(binary("lt", x, 0.0), scaled, x), at_most_one(a)
    )


# f32: x = y = 1e-30: the product is 0, its sign 0; 1 * 1 = 1.
@rule
def sign_of_product(x: Tensor, y: Tensor) -> Law:
    """sign(x * y) = sign(x) * sign(y), on floats"""
    return rewrites(
        unary("sign", binary("mul", x, y)),
        binary("mul", unary("sign", x), unary("sign", y)),
        x.type.dtype.is_float,
    )


# f32: x = -0.0: sign(-0.0) = 0.0, abs = 0.0, their product 0.0; the right side is -0.0.
@rule
def sign_times_abs(x: Tensor) -> Law:
    """sign(x) * abs(x) = x"""
    return rewrites(binary("mul", unary("sign", x), unary("abs", x)), x)


# i8: x = 3, y = -50: -150 wraps to 106, abs 106; 3 * 50 = 150 wraps to -106.
@rule
def abs_of_product(x: Tensor, y: Tensor) -> Law:
    """abs(x * y) = abs(x) * abs(y)"""
    return rewrites(
        unary("abs", binary("mul", x, y)), binary("mul", unary("abs", x), unary("abs", y))
    )


# i8: x = -128: relu(-128) = 0, -(-128) = -128, whose relu is 0; 0 - 0 = 0, not -128.
@rule
def both_halves(x: Tensor) -> Law:
    """relu(x) - relu(-x) = x, on signed integers"""
    return rewrites(
        binary("sub", unary("relu", x), unary("relu", unary("neg", x))),
        x,
        x.type.dtype.is_integer,
        x.type.dtype.is_signed,
    )


# f32: c = inf, x = 0 gives NaN on both; x = -1: relu(-inf) = 0; relu(-1) * inf = 0 * inf = NaN.
# i8: c = 2, x = 100: relu(-56) = 0; 100 * 2 = -56.
@rule
def factor_out_of_relu(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """relu(x * c) = relu(x) * c, where c > 0"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        unary("relu", binary("mul", x, k)), binary("mul", unary("relu", x), k), above_zero(c)
    )


# i8: c = 1, x = 127: max(127, -128) = 127; 127 + max(1, 0) = -128. f32: c = -1, x = -0.0: -0.0;
# 0.0.
@rule
def common_term_out_of_max(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x, x + c) = x + relu(c)"""
    return rewrites(
        binary("max", x, binary("add", x, broadcast(reshape(c, ones), s))),
        binary("add", x, broadcast(reshape(unary("relu", c), ones), s)),
    )
