"""Laws of elementwise functions, casts and constants, all of them wrong."""

import typing

from satura.language import (
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    cast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


# f32: x = -1e-10, c = 1.0: x + 1 rounds to 1.0, floor is 1.0; floor(x) + 1 = -1 + 1 = 0.0.
@attribute_function
def is_whole(c: Scalar) -> bool:
    return c.dtype.is_float and abs(float(c.value)) < 1000 and float(c.value).is_integer()


@rule
def whole_out_of_floor(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """floor(x + c) = floor(x) + c for whole constants c"""
    return rewrites(
        unary("floor", binary("add", x, broadcast(reshape(c, o), s))),
        binary("add", unary("floor", x), broadcast(reshape(c, o), s)),
        is_whole(c),
    )


# x f64 = 1 + 2**-11 + 2**-40, a = f32, b = f16: f32 rounds it to 1 + 2**-11, which is a tie and
# goes to the even 1.0 in f16; straight to f16 it is above the tie: 1 + 2**-10.
@attribute_function
def as_wide_floats(x: TensorType, a: DType, b: DType) -> bool:
    floats = x.dtype.is_float and a.is_float and b.is_float
    return floats and not a.is_narrow and not b.is_narrow and a.itemsize > b.itemsize


@rule
def merge_float_casts(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) for floats, when a is wider than b"""
    return rewrites(cast(cast(x, a), b), cast(x, b), as_wide_floats(x.type, a, b))


# x i32 = 16777217, a = f32: f32 has 24 digits, the left is 16777216; the right is 16777217.
@attribute_function
def same_width(x: TensorType, a: DType) -> bool:
    return (
        x.dtype.is_integer and a.is_float and a.itemsize >= x.dtype.itemsize and a is not DType.BF16
    )


@rule
def integers_through_floats(x: Tensor, a: DType) -> Law:
    """cast(cast(x, a), dtype of x) = x for integers, when the float a has as many bytes"""
    return rewrites(cast(cast(x, a), x.type.dtype), x, same_width(x.type, a))


# x u8 = 200, a = i8, b = i32: u8 to i8 gives -56, to i32 -56; straight it is 200.
@attribute_function
def only_widens(x: TensorType, a: DType, b: DType) -> bool:
    integers = x.dtype.is_integer and a.is_integer and b.is_integer
    return (
        integers
        and x.dtype.itemsize <= a.itemsize <= b.itemsize
        and not (x.dtype.is_narrow or a.is_narrow or b.is_narrow)
    )


@rule
def merge_integer_casts(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) on integers when no cast loses bits"""
    return rewrites(cast(cast(x, a), b), cast(x, b), only_widens(x.type, a, b))


# f32: c = false, x = inf, y = 1.0: the left is 1.0; 0 * inf + 1 * 1 = NaN.
@rule
def select_as_mixture(c: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, x, y) = c * x + (1 - c) * y, as c is 0 or 1"""
    weight = cast(c, x.type.dtype)
    return rewrites(
        select(c, x, y),
        binary("add", binary("mul", weight, x), binary("mul", binary("sub", 1, weight), y)),
        x.type.dtype != DType.BOOL,
        typing.cast(bool, ~x.type.dtype.is_narrow),
    )


# i8, a = b = 7, x = -1: -1 >> 7 >> 7 = -1; shifted by 14, which is the width or more, it is 0.
@attribute_function
def plain_shifts(a: Scalar, b: Scalar) -> bool:
    width = 8 * a.dtype.itemsize
    return (
        0 <= int(a.value) < width
        and 0 <= int(b.value) < width
        and int(a.value) + int(b.value) < 100
    )


@rule
def merge_right_shifts(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """(x >> a) >> b = x >> (a + b)"""
    return rewrites(
        binary("shr", binary("shr", x, broadcast(reshape(a, o), s)), broadcast(reshape(b, o), s)),
        binary("shr", x, broadcast(reshape(binary("add", a, b), o), s)),
        plain_shifts(a, b),
    )


# i32, x = -3, c = 4: fmod has the sign of x: -3; -3 & 3 = 1.
@attribute_function
def is_power_of_two(c: Scalar) -> bool:
    return c.dtype.is_integer and int(c.value) > 0 and int(c.value) & (int(c.value) - 1) == 0


@attribute_function
def less_one(c: Scalar) -> Scalar:
    refuse_unless(c.dtype.is_integer and int(c.value) > 0)
    return Scalar.of(int(c.value) - 1, c.dtype)


@rule
def remainder_as_mask(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """fmod(x, c) = x & (c - 1) for powers of two c"""
    return rewrites(
        binary("fmod", x, broadcast(reshape(c, o), s)),
        binary("and", x, broadcast(reshape(scalar(less_one(c)), o), s)),
        is_power_of_two(c),
    )


# i32, x = -1, c = 2: -1 / 2 truncates to 0; -1 >> 1 = -1.
@attribute_function
def exponent(c: Scalar) -> Scalar:
    refuse_unless(c.dtype.is_integer and int(c.value) > 0)
    return Scalar.of(int(c.value).bit_length() - 1, c.dtype)


@rule
def quotient_as_shift(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c = x >> log2(c) for powers of two c, on integers"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, o), s)),
        binary("shr", x, broadcast(reshape(scalar(exponent(c)), o), s)),
        is_power_of_two(c),
    )


# f32, c = 3.0: 1 / fl(1 / 3) = 3.0 in f32, so the condition holds; x = 5.0: 5 / 3 = 1.6666666,
# 5 * 0.33333334 = 1.6666667.
@attribute_function
def inverts_exactly(c: Scalar) -> bool:
    import numpy as np

    if c.dtype is not DType.F32 or float(c.value) == 0:
        return False
    one, value = np.float32(1), np.float32(c.value)
    with np.errstate(all="ignore"):
        return bool(one / (one / value) == value)


@rule
def divide_by_exact_reciprocal(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c), when c has an exact reciprocal"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, o), s)),
        binary("mul", x, broadcast(reshape(binary("div", 1.0, c), o), s)),
        inverts_exactly(c),
    )


# f32, x = -0.0: -0.0 + 0.0 = 0.0; the right is -0.0.
@rule
def add_nothing(x: Tensor) -> Law:
    """x + 0 = x"""
    return rewrites(binary("add", x, 0), x)
