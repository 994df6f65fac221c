"""Laws of comparisons and selects, all of them wrong."""

from satura.language import (
    BinaryFn,
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
    select,
    unary,
)


@attribute_function
def positive(c: Scalar) -> bool:
    return not c.type.dtype.is_narrow and c.type.dtype is not DType.BOOL and float(c.value) > 0


@attribute_function
def square(c: Scalar) -> Scalar:
    return Scalar.of(float(c.value) ** 2, c.type.dtype)


@attribute_function
def whole_of_at_most_32_bits(t: DType) -> bool:
    return t.is_integer and not t.is_narrow and t.itemsize <= 4


@attribute_function
def reversed_order(f: BinaryFn) -> BinaryFn:
    return BinaryFn({"lt": "le", "le": "lt"}.get(f.name, f.name))


@attribute_function
def is_order(f: BinaryFn) -> bool:
    return f.name in ("lt", "le")


# f32: x = NaN, y = 1: not (NaN < 1) = true; 1 <= NaN is false.
@rule
def negate_any_order(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """not (x < y) = y <= x, and not (x <= y) = y < x"""
    return rewrites(unary("not", binary(f, x, y)), binary(reversed_order(f), y, x), is_order(f))


# f32: x = NaN, y = 1: NaN == NaN is false, so 1; the right side is NaN.
@rule
def select_where_equal_to_itself(x: Tensor, y: Tensor) -> Law:
    """select(x == x, x, y) = x"""
    return rewrites(select(binary("eq", x, x), x, y), x)


# f32: x = NaN, y = 1: NaN < 1 is false, so 1; min(NaN, 1) = NaN.
@rule
def select_smaller(x: Tensor, y: Tensor) -> Law:
    """select(x < y, x, y) = min(x, y)"""
    return rewrites(select(binary("lt", x, y), x, y), binary("min", x, y))


# f32: x = -0.0: -0.0 < 0 is false, so -0.0; relu(-0.0) = 0.0.
@rule
def select_as_relu(x: Tensor) -> Law:
    """select(x < 0, 0, x) = relu(x)"""
    return rewrites(select(binary("lt", x, 0), 0, x), unary("relu", x))


# c = true, d = false: the left side is y; c or d is true, the right side x.
@rule
def merge_nested_select(c: Tensor, d: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, select(d, x, y), y) = select(c or d, x, y)"""
    return rewrites(select(c, select(d, x, y), y), select(binary("or", c, d), x, y))


# i8: x = -128, y = 0: neg(-128) = -128 < 0 is true; 0 < -128 is false.
@rule
def order_of_negations(x: Tensor, y: Tensor) -> Law:
    """-x < -y = y < x, where numbers have signs"""
    return rewrites(
        binary("lt", unary("neg", x), unary("neg", y)), binary("lt", y, x), x.type.dtype.is_signed
    )


# f32: x = NaN, y = 1: not (NaN == 1) = true; neither NaN < 1 nor 1 < NaN.
@rule
def unequal_as_orders(x: Tensor, y: Tensor) -> Law:
    """not (x == y) = x < y or y < x"""
    return rewrites(
        unary("not", binary("eq", x, y)), binary("or", binary("lt", x, y), binary("lt", y, x))
    )


# f32: x = inf, y = -inf: x + y = NaN, so true; neither x nor y is NaN.
@rule
def nan_of_sum(x: Tensor, y: Tensor) -> Law:
    """isnan(x + y) = isnan(x) or isnan(y)"""
    return rewrites(
        unary("isnan", binary("add", x, y)), binary("or", unary("isnan", x), unary("isnan", y))
    )


# f32: c = 2, x = 2e38, y = 3e38: inf < inf is false; 2e38 < 3e38 is true. i8: 1 < 100 is true, 2 <
# -56 false.
@rule
def cancel_factor_of_order(x: Tensor, y: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * c < y * c = x < y, where c > 0"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("lt", binary("mul", x, k), binary("mul", y, k)), binary("lt", x, y), positive(c)
    )


# i8: x = -128, c = 5: abs(-128) = -128 < 5 is true; -5 < -128 is false.
@rule
def bound_of_abs(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """abs(x) < c = -c < x and x < c, where numbers have signs"""
    k = broadcast(reshape(c, ones), s)
    minus = broadcast(reshape(unary("neg", c), ones), s)
    return rewrites(
        binary("lt", unary("abs", x), k),
        binary("and", binary("lt", minus, x), binary("lt", x, k)),
        x.type.dtype.is_signed,
    )


# f32: x = -1, c = 2: sqrt(-1) = NaN < 2 is false; -1 < 4 is true.
@rule
def bound_of_root(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """sqrt(x) < c = x < c * c, where c > 0"""
    return rewrites(
        binary("lt", unary("sqrt", x), broadcast(reshape(c, ones), s)),
        binary("lt", x, broadcast(reshape(binary("mul", c, c), ones), s)),
        positive(c),
    )


# i32: x = 2^24, y = 2^24 + 1: both are 2^24 in f32, so false; 2^24 < 2^24 + 1 is true.
@rule
def compare_before_cast(x: Tensor, y: Tensor) -> Law:
    """f32(x) < f32(y) = x < y, for integers of at most 32 bits"""
    return rewrites(
        binary("lt", cast(x, DType.F32), cast(y, DType.F32)),
        binary("lt", x, y),
        whole_of_at_most_32_bits(x.type.dtype),
        whole_of_at_most_32_bits(y.type.dtype),
        x.type.dtype == y.type.dtype,
    )
