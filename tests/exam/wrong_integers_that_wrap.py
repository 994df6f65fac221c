"""Laws of integers that wrap, all of them wrong."""

from satura.language import (
    Axes,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


@attribute_function
def power_of_two(c: Scalar) -> bool:
    return c.type.dtype.is_integer and int(c.value) > 0 and int(c.value).bit_count() == 1


@attribute_function
def log2(c: Scalar) -> Scalar:
    return Scalar.of(int(c.value).bit_length() - 1, c.type.dtype)


@attribute_function
def less_one(c: Scalar) -> Scalar:
    return Scalar.of(int(c.value) - 1, c.type.dtype)


@attribute_function
def nonzero(c: Scalar) -> bool:
    return c.type.dtype.is_integer and int(c.value) != 0


@attribute_function
def widens(t: DType, u: DType) -> bool:
    return t.is_integer and u.is_integer and t.is_signed == u.is_signed and u.itemsize > t.itemsize


# x = i8[1] [-128]: abs wraps to -128, relu of it is 0; the right side is -128.
@rule
def relu_of_abs(x: Tensor) -> Law:
    """relu(abs(x)) = abs(x)"""
    return rewrites(unary("relu", unary("abs", x)), unary("abs", x))


# x = u8[1] [5]: neg gives 251, max(5, 251) = 251; abs(5) = 5.
@rule
def abs_from_max(x: Tensor) -> Law:
    """max(x, -x) = abs(x)"""
    return rewrites(binary("max", x, unary("neg", x)), unary("abs", x))


# x = i8[1] [100], c = 2: 100 * 2 = -56, -56 / 2 = -28; the right side is 100.
@rule
def multiply_then_divide(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """(x * c) / c = x, on integers where c is not 0"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(binary("div", binary("mul", x, k), k), x, nonzero(c))


# x = i32[1] [-1], c = 2: div truncates to 0; -1 >> 1 = -1.
@rule
def divide_as_shift(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / 2^k = x >> k, on integers"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, ones), s)),
        binary("shr", x, broadcast(reshape(scalar(log2(c)), ones), s)),
        power_of_two(c),
    )


# x = i32[1] [-3], c = 4: fmod has the sign of x, -3; -3 & 3 = 1.
@rule
def fmod_as_mask(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x fmod 2^k = x & (2^k - 1), on integers"""
    return rewrites(
        binary("fmod", x, broadcast(reshape(c, ones), s)),
        binary("and", x, broadcast(reshape(scalar(less_one(c)), ones), s)),
        power_of_two(c),
    )


# x = i8 -128, y = i8 1: x - y wraps to 127, which is not < 0: false; -128 < 1 is true.
@rule
def order_by_difference(x: Tensor, y: Tensor) -> Law:
    """x - y < 0 = x < y, on signed integers"""
    t = x.type.dtype
    return rewrites(
        binary("lt", binary("sub", x, y), 0), binary("lt", x, y), t.is_integer, t.is_signed
    )


# c = i8 2, x = [0], y = [-128]: both products are 0, so true; 0 == -128 is false.
@rule
def cancel_factor_of_equality(x: Tensor, y: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * c == y * c = x == y, on integers where c is not 0"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("eq", binary("mul", x, k), binary("mul", y, k)), binary("eq", x, y), nonzero(c)
    )


# x = i8[2] [100, 100] to i32 over axis 0: the i8 sum is -56; the i32 sum is 200.
@rule
def widen_before_sum(x: Tensor, a: Axes, t: DType) -> Law:
    """cast(sum(x)) = sum(cast(x)), to a wider integer of the same sign"""
    return rewrites(
        cast(reduce("sum", x, a), t), reduce("sum", cast(x, t), a), widens(x.type.dtype, t)
    )


# u8: x = 255, a = 16, b = 17: (255 / 16) / 17 = 15 / 17 = 0; a * b wraps to 16, 255 / 16 = 15.
@rule
def quotient_of_quotient(x: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), on integers where a and b are not 0"""
    return rewrites(
        binary(
            "div", binary("div", x, broadcast(reshape(a, ones), s)), broadcast(reshape(b, ones), s)
        ),
        binary("div", x, broadcast(reshape(binary("mul", a, b), ones), s)),
        nonzero(a),
        nonzero(b),
    )


# x = u8 1, y = u8 2: x - y = 255, abs 255; max - min = 1.
@rule
def distance_from_bounds(x: Tensor, y: Tensor) -> Law:
    """abs(x - y) = max(x, y) - min(x, y)"""
    return rewrites(
        unary("abs", binary("sub", x, y)),
        binary("sub", binary("max", x, y), binary("min", x, y)),
    )


# i32: x = 1, y = 3: -1 mod 3 = 2 (the sign of y); -(1 mod 3) = -1.
@rule
def negation_out_of_mod(x: Tensor, y: Tensor) -> Law:
    """(-x) mod y = -(x mod y), on integers"""
    return rewrites(
        binary("mod", unary("neg", x), y),
        unary("neg", binary("mod", x, y)),
        x.type.dtype.is_integer,
    )


# i32: x = 2, y = -1, z = 1: 2^-1 truncates to 0, 0 * 2 = 0; 2^0 = 1.
@rule
def add_integer_exponents(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """x^y * x^z = x^(y + z), on integers"""
    return rewrites(
        binary("mul", binary("pow", x, y), binary("pow", x, z)),
        binary("pow", x, binary("add", y, z)),
        x.type.dtype.is_integer,
    )
