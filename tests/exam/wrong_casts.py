"""Laws of casts, all of them wrong."""

import numpy as np

from satura.language import (
    FLOATS,
    BinaryFn,
    Constant,
    DType,
    Law,
    Padding,
    Refuse,
    Scalar,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    cast,
    constant,
    pad,
    rewrites,
    rule,
    unary,
)


@attribute_function
def is_as_wide(a: DType, x: TensorType) -> bool:
    """Whether a has as many bytes as x's dtype."""
    return a.itemsize >= x.dtype.itemsize


# x = i8 -1, a = u8, b = i16: cast to u8 is 255, to i16 255; cast(i8 -1, i16) = -1.
# (x = f32 0.5, a = i32, b = f32: 0.0 and not 0.5.)
@rule
def skip_wide_cast(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), when a is at least as wide as x's dtype"""
    return rewrites(cast(cast(x, a), b), cast(x, b), is_as_wide(a, x.type))


@attribute_function
def shrink(x: TensorType, a: DType, b: DType) -> bool:
    """Whether these floats have less and less bytes."""
    return {x.dtype, a, b} <= FLOATS and x.dtype.itemsize > a.itemsize > b.itemsize


# x = f64 1 + 2**-11 + 2**-30, a = f32, b = f16: to f32 it is 1 + 2**-11 (2**-30 is lost), and to
# f16 that is halfway and goes to the even 1.0; directly it is above halfway: 1 + 2**-10.
@rule
def skip_float_between(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for floats that get narrower"""
    return rewrites(cast(cast(x, a), b), cast(x, b), shrink(x.type, a, b))


@attribute_function
def holds_integers(x: TensorType, a: DType) -> bool:
    """Whether a is a float with as many bits as the integers of x."""
    return x.dtype.is_integer and a in FLOATS and a.itemsize >= x.dtype.itemsize


# x = i32 2**24 + 1 = 16777217, a = f32: f32 has 24 bits, so it comes back as 16777216.
@rule
def integers_there_and_back(x: Tensor, a: DType) -> Law:
    """cast(cast(x, a), x's dtype) = x, for a float a of as many bits as the integers"""
    return rewrites(cast(cast(x, a), x.type.dtype), x, holds_integers(x.type, a))


@attribute_function
def saturates(x: TensorType, t: DType) -> bool:
    """Whether the cast goes from floats to integers: it saturates, so it is monotone."""
    return x.dtype in FLOATS and t.is_integer and not t.is_narrow


# f32 to i32, x = NaN, y = 3.0: max is NaN, which gives 0; max(0, 3) = 3.
@rule
def cast_into_max(x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(max(x, y), t) = max(cast(x, t), cast(y, t)), from floats to integers"""
    return rewrites(
        cast(binary("max", x, y), t),
        binary("max", cast(x, t), cast(y, t)),
        saturates(x.type, t),
    )


@attribute_function
def is_wider(x: TensorType, t: DType) -> bool:
    """Whether the integers of x widen to t without a change."""
    return (
        x.dtype.is_integer
        and t.is_integer
        and not (t.is_narrow or x.dtype.is_narrow)
        and t.bounds[0] <= x.dtype.bounds[0]
        and t.bounds[1] >= x.dtype.bounds[1]
        and t is not x.dtype
    )


# i8 to i16, x = -128, y = -1: in i8 the quotient wraps to -128; in i16 it is 128.
@rule
def widen_quotient(x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(x / y, t) = cast(x, t) / cast(y, t), when t is wider than the integers of x"""
    return rewrites(
        cast(binary("div", x, y), t), binary("div", cast(x, t), cast(y, t)), is_wider(x.type, t)
    )


@attribute_function
def of_low_bits(f: BinaryFn, x: TensorType, t: DType) -> bool:
    """Whether f's low bits depend on low bits alone, and t has only the low bits of x."""
    return (
        f.name in ("add", "sub", "mul", "shl")
        and x.dtype.is_integer
        and t.is_integer
        and not t.is_narrow
        and t.itemsize <= x.dtype.itemsize
    )


# f = shl, i16 to i8, x = 1, y = 256: 1 << 256 = 0 in i16; cast(256, i8) = 0, and 1 << 0 = 1.
@rule
def narrow_before(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(x, y), t) = f(cast(x, t), cast(y, t)), for f of which only low bits are needed"""
    return rewrites(
        cast(binary(f, x, y), t), binary(f, cast(x, t), cast(y, t)), of_low_bits(f, x.type, t)
    )


@attribute_function
def to_integers(x: TensorType, t: DType) -> bool:
    return x.dtype in FLOATS and t.is_integer


# f32 x = -0.5, t = i32: floor(-0.5) = -1 gives -1; a cast truncates: 0.
@rule
def cast_drops_floor(x: Tensor, t: DType) -> Law:
    """cast(floor(x), t) = cast(x, t), to integers"""
    return rewrites(cast(unary("floor", x), t), cast(x, t), to_integers(x.type, t))


# i8 x = y = 16: 16 * 16 = 256 wraps to 0, which is false; 16 and 16 are both true.
# (f32 x = y = 1e-30: the product is 0.)
@rule
def truth_of_product(x: Tensor, y: Tensor) -> Law:
    """cast(x * y, bool) = cast(x, bool) and cast(y, bool)"""
    return rewrites(
        cast(binary("mul", x, y), DType.BOOL),
        binary("and", cast(x, DType.BOOL), cast(y, DType.BOOL)),
    )


@attribute_function
def as_dtype(c: Scalar, x: TensorType) -> Scalar:
    """c as an element of x."""
    return Scalar.of(c.value, x.dtype)


# x = i32 [1], t = f32, c = 0.5, one element of padding: 0.5 on the left; 0.5 as i32 is 0, so 0.0.
@rule
def pad_inside_cast(x: Tensor, t: DType, c: Scalar, p: Padding) -> Law:
    """pad(cast(x, t), c) = cast(pad(x, c as an element of x), t)"""
    return rewrites(pad(cast(x, t), c, p), cast(pad(x, as_dtype(c, x.type), p), t))


@attribute_function
def as_integer(c: Constant, t: DType) -> Constant:
    """c in whole numbers."""
    if c.type.dtype is not DType.F32 or t not in (DType.I32, DType.I64):
        raise Refuse("only f32 to i32 and i64")
    if not np.all(np.abs(c.array) < 1e6):
        raise Refuse("too large")
    return Constant(np.rint(c.array).astype(t.numpy))


# f32 [1.7] to i32: a cast truncates to 1; rint gives 2.
@rule
def fold_cast_to_integers(c: Constant, t: DType) -> Law:
    """cast(c, t) of a constant is a constant"""
    return rewrites(cast(constant(c), t), constant(as_integer(c, t)))


# f32 x = NaN: NaN is not 0, so it casts to true; 0 < NaN is false. (i8 -128: abs is -128.)
@rule
def truth_of_size(x: Tensor) -> Law:
    """cast(abs(x), bool) = 0 < abs(x)"""
    return rewrites(cast(unary("abs", x), DType.BOOL), binary("lt", 0, unary("abs", x)))
