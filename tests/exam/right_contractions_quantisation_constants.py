"""Laws of contractions, quantisation, constants and patterns of values, all of them right."""

import typing

import numpy as np

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    Constant,
    Contraction,
    DType,
    Known,
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
    cast,
    constant,
    family,
    iota,
    known_at_least,
    matmul,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


@attribute_function
def only_element(v: Constant) -> Scalar:
    """The element that all are, bit for bit."""
    size = v.type.dtype.itemsize
    data = np.ascontiguousarray(v.array).tobytes()
    refuse_unless(v.size > 0, "it has no elements")
    refuse_unless(data == data[:size] * v.size, "they differ")
    return Scalar.of(v.array.reshape(-1)[0], v.type.dtype)


@attribute_function
def one_per_axis(v: Constant) -> Shape:
    return Shape((1,) * v.type.rank)


@attribute_function
def is_finite_scalar(v: Constant) -> bool:
    return v.type.dtype.is_integer and not v.type.dtype.is_narrow


@attribute_function
def counts_from_zero(v: Constant) -> bool:
    if v.type.rank != 1 or v.type.dtype is not DType.I64:
        return False
    return bool(np.array_equal(v.array, np.arange(typing.cast(int, v.type.shape[0]))))


@attribute_function
def all_minus_one(v: Constant) -> bool:
    t = v.type.dtype
    return not t.is_narrow and t.is_signed and bool(np.all(v.array == -1))


@attribute_function
def all_bits(v: Constant) -> bool:
    t = v.type.dtype
    if t is DType.BOOL:
        return bool(np.all(v.array))
    return t.is_integer and not t.is_narrow and bool(np.all(np.invert(v.array) == 0))


@attribute_function
def positive_finite(c: Scalar) -> bool:
    return c.type.dtype == DType.F32 and 0 < float(c.value) < float("inf")


@attribute_function
def short_integer(t: DType) -> bool:
    return t in (DType.I8, DType.U8, DType.I16, DType.U16)


@attribute_function
def moderate_power_of_two(c: Scalar) -> bool:
    if c.type.dtype is not DType.F32 or not np.isfinite(c.value):
        return False
    mantissa, exponent = np.frexp(float(c.value))
    return abs(float(mantissa)) == 0.5 and -60 <= int(exponent) <= 60


@attribute_function
def chooses(f: BinaryFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def selects(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def never_empty(t: TensorType) -> bool:
    return all(known_at_least(d, 1) for d in t.shape)


@attribute_function
def widens(t: DType, u: DType) -> bool:
    if not t.is_integer or not u.is_integer or t.is_narrow or u.is_narrow:
        return False
    return u.bounds[0] <= t.bounds[0] and t.bounds[1] <= u.bounds[1]


@attribute_function
def times_count(c: Scalar, s: Shape, a: Axes) -> Scalar:
    t = c.type.dtype
    if not t.is_integer or t.is_narrow:
        raise Refuse("no integers")
    value = int(c.value)
    for axis in a.indices:
        if not isinstance(s.dims[axis], int):
            raise Refuse("an open size")
        value *= typing.cast(int, s.dims[axis])
    width = 8 * t.itemsize
    value %= 1 << width
    return Scalar.of(value - (1 << width) if value > t.bounds[1] else value, t)


@family
def factor_out_of_weights(
    f: Contraction, x: Tensor, w: Tensor, c: Scalar, o: Shape, s: Shape
) -> Law:
    """f(x, w * c) = f(x, w) * c, on integers, for any contraction"""
    plain = f(x, w)
    return rewrites(
        f(x, binary("mul", w, broadcast(reshape(c, o), s))),
        binary("mul", plain, broadcast(reshape(c, o), Shape(plain.type.shape))),
        x.type.dtype.is_integer,
    )


@rule
def matmul_of_negations(x: Tensor, y: Tensor) -> Law:
    """matmul(-x, -y) = matmul(x, y): the products are the same"""
    return rewrites(matmul(unary("neg", x), unary("neg", y)), matmul(x, y))


@rule
def centre_bytes_by_bit(x: Tensor) -> Law:
    """i32(x) - 128 = i32(i8(x ^ 128)), for x of u8"""
    return rewrites(
        binary("sub", cast(x, DType.I32), 128),
        cast(cast(binary("xor", x, 128), DType.I8), DType.I32),
        x.type.dtype == DType.U8,
    )


@rule
def repeat_one_element(f: BinaryFn, x: Tensor, v: Constant) -> Law:
    """f(x, a constant all of whose elements are the same) = f(x, that element everywhere)"""
    return rewrites(
        binary(f, x, constant(v)),
        binary(
            f, x, broadcast(reshape(scalar(only_element(v)), one_per_axis(v)), Shape(v.type.shape))
        ),
    )


@rule
def constant_as_iota(v: Constant) -> Law:
    """a constant that counts from 0 = iota, of i64"""
    return rewrites(constant(v), iota(Shape(v.type.shape), Axis(0), DType.I64), counts_from_zero(v))


@rule
def multiply_by_minus_ones(x: Tensor, v: Constant) -> Law:
    """x * -1 = -x, for a constant of -1 alone"""
    return rewrites(binary("mul", x, constant(v)), unary("neg", x), all_minus_one(v))


@rule
def mask_of_all_bits(x: Tensor, v: Constant) -> Law:
    """x & v = x, for a constant that has all bits"""
    return rewrites(binary("and", x, constant(v)), x, all_bits(v))


@rule
def bound_before_dequantising(
    f: BinaryFn, x: Tensor, y: Tensor, c: Scalar, ones: Shape, s: Shape
) -> Law:
    """max(f32(x) * c, f32(y) * c) = f32(max(x, y)) * c, for short integers and c > 0; so for min"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary(f, binary("mul", cast(x, DType.F32), k), binary("mul", cast(y, DType.F32), k)),
        binary("mul", cast(binary(f, x, y), DType.F32), k),
        chooses(f),
        x.type == y.type,
        short_integer(x.type.dtype),
        positive_finite(c),
    )


@rule
def quantise_what_was_dequantised(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """u8(round((f32(x) * c) / c)) = x of u8, for a power of two c that is neither huge nor tiny"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        cast(unary("round", binary("div", binary("mul", cast(x, DType.F32), k), k)), DType.U8),
        x,
        x.type.dtype == DType.U8,
        moderate_power_of_two(c),
    )


@rule
def widen_after_reduce(f: ReduceFn, x: Tensor, a: Axes, t: DType) -> Law:
    """max(cast(x, t)) = cast(max(x), t), for integers t that hold all of x, where no axis is
    empty"""
    return rewrites(
        reduce(f, cast(x, t), a),
        cast(reduce(f, x, a), t),
        selects(f),
        never_empty(x.type),
        widens(x.type.dtype, t),
    )


@rule
def term_out_of_sum(x: Tensor, a: Axes, c: Scalar, ones: Shape, s: Shape) -> Law:
    """sum(x + c) = sum(x) + c times the number of terms, on integers of known extents"""
    total = reduce("sum", x, a)
    return rewrites(
        reduce("sum", binary("add", x, broadcast(reshape(c, ones), s)), a),
        binary(
            "add",
            total,
            broadcast(reshape(scalar(times_count(c, s, a)), ones), Shape(total.type.shape)),
        ),
    )


@rule
def shared_bound_of_constants(f: BinaryFn, x: Tensor, a: Known, b: Known) -> Law:
    """max(max(x, a), b) = max(x, max(a, b)) for constants a and b, and the same for min"""
    return rewrites(binary(f, binary(f, x, a), b), binary(f, x, binary(f, a, b)), chooses(f))
