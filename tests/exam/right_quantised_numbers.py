"""Laws of casts, bounds, zero points and scales of quantised networks, all of them right."""

import typing

from satura.language import (
    Axes,
    BinaryFn,
    DType,
    Groups,
    Known,
    Law,
    Perm,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Term,
    UnaryFn,
    Window,
    attribute_function,
    binary,
    broadcast,
    cast,
    conv,
    matmul,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    transpose,
    unary,
)


def everywhere(c: Term | Scalar, o: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, o), s)


@rule
def narrow_at_once(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) on integers, when b is no wider than a: the low bits are the
    same"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        x.type.dtype.is_integer & a.is_integer & b.is_integer,
        typing.cast(bool, ~x.type.dtype.is_narrow & ~a.is_narrow & ~b.is_narrow),
        b.itemsize <= a.itemsize,
    )


@attribute_function
def is_never_negative(x: DType, t: DType) -> bool:
    """Whether no element of x is negative in t."""
    if x.is_signed or not x.is_integer:
        return False
    return t.is_float or not t.is_signed or t.itemsize > x.itemsize


@rule
def relu_of_unsigned(x: Tensor, t: DType) -> Law:
    """relu(cast(x, t)) = cast(x, t), when x is unsigned, and no number of it negative in t"""
    return rewrites(unary("relu", cast(x, t)), cast(x, t), is_never_negative(x.type.dtype, t))


@rule
def cast_saturates(x: Tensor) -> Law:
    """u8(max(min(round(x), 255), 0)) = u8(round(x)), for floats x"""
    return rewrites(
        cast(binary("max", binary("min", unary("round", x), 255), 0), DType.U8),
        cast(unary("round", x), DType.U8),
    )


@attribute_function
def is_in(z: Scalar, t: DType) -> bool:
    """Whether z is a number of the type of 8 bits t."""
    return t in (DType.I8, DType.U8) and t.bounds[0] <= int(z.value) <= t.bounds[1]


@rule
def clamp_before_zero_point(x: Tensor, z: Scalar, o: Shape, s: Shape) -> Law:
    """relu(i32(x) - z) = max(i32(x), z) - z, for x of 8 bits and a zero point z in their range"""
    return rewrites(
        unary("relu", binary("sub", cast(x, DType.I32), everywhere(z, o, s))),
        binary("sub", binary("max", cast(x, DType.I32), everywhere(z, o, s)), everywhere(z, o, s)),
        is_in(z, x.type.dtype),
    )


@attribute_function
def inner(w: TensorType) -> Axes:
    """The axis over which a matmul sums."""
    return Axes((w.rank - 2,))


@rule
def zero_point_out_of_integer_matmul(x: Tensor, z: Scalar, w: Tensor, o: Shape, s: Shape) -> Law:
    """matmul(x - z everywhere, w) = matmul(x, w) - z * (sums of w's columns), on integers"""
    left = matmul(binary("sub", x, everywhere(z, o, s)), w)
    sums = reduce("sum", w, inner(w.type))
    correction = binary("mul", sums, everywhere(z, o, Shape(sums.type.shape)))
    return rewrites(
        left,
        binary("sub", matmul(x, w), broadcast(correction, Shape(left.type.shape))),
        x.type.dtype.is_integer,
    )


@attribute_function
def all_but_last(w: TensorType) -> Axes:
    """All axes but that of the output channels."""
    return Axes(tuple(range(w.rank - 1)))


@rule
def zero_point_out_of_borderless_conv(
    x: Tensor, z: Scalar, w: Tensor, o: Shape, s: Shape, window: Window, groups: Groups
) -> Law:
    """conv(x - z everywhere, w) = conv(x, w) - z * (sums of w's output channels), on integers,
    without a border"""
    left = conv(binary("sub", x, everywhere(z, o, s)), w, window, groups)
    sums = reduce("sum", w, all_but_last(w.type))
    correction = binary("mul", sums, everywhere(z, o, Shape(sums.type.shape)))
    return rewrites(
        left,
        binary("sub", conv(x, w, window, groups), broadcast(correction, Shape(left.type.shape))),
        x.type.dtype.is_integer,
        typing.cast(bool, ~window.has_border),
    )


@rule
def distribute_bounds(x: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """min(max(x, broadcast(a)), broadcast(b)) = max(min(x, broadcast(b)), broadcast(min(a, b))),
    for a and b of one shape"""
    return rewrites(
        binary("min", binary("max", x, broadcast(a, s)), broadcast(b, s)),
        binary("max", binary("min", x, broadcast(b, s)), broadcast(binary("min", a, b), s)),
        a.type.shape == b.type.shape,
    )


@attribute_function
def rounds(f: UnaryFn) -> bool:
    """Whether f leaves whole numbers."""
    return f.name in ("floor", "ceil", "round")


@rule
def whole_numbers_stay(f: UnaryFn, x: Tensor, t: DType) -> Law:
    """f(cast(x, t)) = cast(x, t), for floor, ceil and round of floats that come from integers or
    bools"""
    return rewrites(
        unary(f, cast(x, t)),
        cast(x, t),
        rounds(f),
        x.type.dtype.is_integer | (x.type.dtype == DType.BOOL),
    )


@rule
def transpose_into_quantised(
    f: BinaryFn,
    g: BinaryFn,
    x: Tensor,
    t: DType,
    z: Scalar,
    o: Shape,
    s: Shape,
    c: Known,
    w: Shape,
    p: Perm,
) -> Law:
    """transpose(f(g(t(x), z everywhere), broadcast(c)), p) = f(g(t(transpose(x, p)), z everywhere),
    broadcast(transpose(c, p)))"""
    return rewrites(
        transpose(binary(f, binary(g, cast(x, t), everywhere(z, o, s)), broadcast(c, w)), p),
        binary(
            f,
            binary(g, cast(transpose(x, p), t), everywhere(z, o, s.permuted(p))),
            broadcast(transpose(c, p), w.permuted(p)),
        ),
    )


@attribute_function
def exponent(c: Scalar) -> Scalar:
    """log2 of a power of two."""
    refuse_unless(c.dtype.is_integer and not c.dtype.is_narrow, "no integer")
    value = int(c.value)
    refuse_unless(value > 0 and value & value - 1 == 0, "no power of two")
    return Scalar.of(value.bit_length() - 1, c.dtype)


@rule
def multiply_by_shift(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x * c everywhere = x << log2(c) everywhere, on integers, for positive powers of two c"""
    return rewrites(
        binary("mul", x, everywhere(c, o, s)),
        binary("shl", x, everywhere(scalar(exponent(c)), o, s)),
    )
