"""Laws of elementwise functions as in peephole simplifiers, all of them wrong."""

from satura.language import (
    BinaryFn,
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


@attribute_function
def units(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@attribute_function
def one_of(t: TensorType) -> Scalar:
    return Scalar.of(1, t.dtype)


@attribute_function
def zero_of(t: TensorType) -> Scalar:
    return Scalar.of(0, t.dtype)


# x = f32[1] = [inf]: inf - inf = NaN on the left, the right is 0.0.
@rule
def difference_with_itself(x: Tensor) -> Law:
    """x - x = 0"""
    return rewrites(
        binary("sub", x, x),
        broadcast(reshape(scalar(zero_of(x.type)), units(x.type)), Shape(x.type.shape)),
    )


# x = i32[1] = [0]: 0 / 0 is 0 for integers, the right is 1.
@rule
def integer_quotient_of_itself(x: Tensor) -> Law:
    """x / x = 1 on integers, which have no NaN"""
    return rewrites(
        binary("div", x, x),
        broadcast(reshape(scalar(one_of(x.type)), units(x.type)), Shape(x.type.shape)),
        x.type.dtype.is_integer,
    )


# i8: x = 100, y = 2, y | 1 = 3: 100 * 3 wraps to 44, 44 / 3 = 14; the right is 100.
@rule
def product_divided_again(x: Tensor, y: Tensor) -> Law:
    """(x * y) / y = x on signed integers, for odd y, which are not 0"""
    safe = binary("or", y, 1)
    return rewrites(
        binary("div", binary("mul", x, safe), safe),
        x,
        x.type.dtype.is_integer & x.type.dtype.is_signed,
    )


# f32: x = NaN, y = 1.0: 1 < NaN is false, so the left is y = 1.0; max(NaN, 1.0) = NaN.
@rule
def select_is_max(x: Tensor, y: Tensor) -> Law:
    """select(y < x, x, y) = max(x, y)"""
    return rewrites(select(binary("lt", y, x), x, y), binary("max", x, y))


# f32: x = y = inf: inf - inf = NaN, NaN == 0 is false; inf == inf is true.
@rule
def zero_difference_is_equality(x: Tensor, y: Tensor) -> Law:
    """(x - y == 0) = (x == y)"""
    return rewrites(binary("eq", binary("sub", x, y), 0), binary("eq", x, y))


# i8: x = -128, y = 1: x - y wraps to 127, 127 < 0 is false; -128 < 1 is true.
@rule
def sign_of_difference_is_order(x: Tensor, y: Tensor) -> Law:
    """(x - y < 0) = (x < y) on signed integers"""
    return rewrites(
        binary("lt", binary("sub", x, y), 0),
        binary("lt", x, y),
        x.type.dtype.is_integer & x.type.dtype.is_signed,
    )


# f32: x = 1e30: x * x = inf, sqrt(inf) = inf; abs(x) = 1e30. Also x = 1e-30: 0.0 and 1e-30.
@rule
def root_of_square(x: Tensor) -> Law:
    """sqrt(x * x) = abs(x)"""
    return rewrites(unary("sqrt", binary("mul", x, x)), unary("abs", x))


# f32: x = -1000.0: exp(x) = 0.0, log(0.0) = -inf; the right is -1000.0, which is not infinite.
@rule(reassociates=True)
def log_of_exp(x: Tensor) -> Law:
    """log(exp(x)) = x, up to rounding"""
    return rewrites(unary("log", unary("exp", x)), x)


# f32: x = -0.0, f = sqrt: sqrt(-0.0) = -0.0, relu(-0.0) = 0.0; the right is -0.0.
@attribute_function
def gives_no_negative(f: UnaryFn) -> bool:
    return f.name in ("exp", "sigmoid", "sqrt", "cosh", "acosh")


@rule
def relu_after_nonnegative(f: UnaryFn, x: Tensor) -> Law:
    """relu(f(x)) = f(x) for functions that are never negative"""
    return rewrites(unary("relu", unary(f, x)), unary(f, x), gives_no_negative(f))


# f32, f = floor: x = 0.5: floor(-0.5) = -1.0; -floor(0.5) = -0.0.
@attribute_function
def is_odd(f: UnaryFn) -> bool:
    return f.name in ("round", "floor", "ceil")


@rule
def rounding_is_odd(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = -f(x) for the roundings"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(f, x)), is_odd(f))


# f32, f = sqrt, g = max: x = -1.0, y = 4.0: max(NaN, 2.0) = NaN; sqrt(max(-1, 4)) = 2.0.
@attribute_function
def never_falls(f: UnaryFn) -> bool:
    return f.name in ("relu", "sqrt", "log", "floor", "ceil", "round")


@attribute_function
def is_lattice(g: BinaryFn) -> bool:
    return g.name in ("max", "min")


@rule
def monotone_out_of_lattice(f: UnaryFn, g: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """g(f(x), f(y)) = f(g(x, y)) for monotone f and g max or min"""
    return rewrites(
        binary(g, unary(f, x), unary(f, y)),
        unary(f, binary(g, x, y)),
        never_falls(f) & is_lattice(g),
    )


# f32: x = 0.0, y = inf: 0 * inf = NaN, so the left is true; neither is NaN, so the right is false.
@rule
def nan_of_product(x: Tensor, y: Tensor) -> Law:
    """isnan(x * y) = isnan(x) or isnan(y)"""
    return rewrites(
        unary("isnan", binary("mul", x, y)),
        binary("or", unary("isnan", x), unary("isnan", y)),
    )


@attribute_function
def is_even(f: UnaryFn) -> bool:
    return f.name in ("abs", "isnan", "isinf")


# f = abs, u8: x = 1: -1 wraps to 255, whose abs is 255; abs(1) = 1.
@rule
def negation_under_even(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = f(x), for functions that do not look at the sign"""
    return rewrites(unary(f, unary("neg", x)), unary(f, x), is_even(f))
