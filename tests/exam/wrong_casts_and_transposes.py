"""Laws of casts and transposes, all of them wrong."""

import typing

from satura.language import (
    Axes,
    DType,
    Law,
    Perm,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    cast,
    matmul,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    transpose,
    unary,
)


@attribute_function
def are_floats(a: DType, b: DType, c: DType) -> bool:
    """Whether all are floats that are computed with."""
    return all(t.is_float and not t.is_narrow for t in (a, b, c))


# x f64 = [1 + 2**-11 + 2**-30], a = f32, b = f16: f32 rounds to 1 + 2**-11, a tie that f16 rounds
# to 1.0; directly it is above the tie and rounds to 1 + 2**-10.
@rule
def merge_float_casts(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), on floats, when a is not shorter than b"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        are_floats(x.type.dtype, a, b),
        a.itemsize >= b.itemsize,
    )


# x f16 = [0.5], a = i32: left 0.0, right 0.5.
@rule
def cast_there_and_back(x: Tensor, a: DType) -> Law:
    """cast(cast(x, a), t) = x, where t is the type of x and a has more bytes"""
    return rewrites(cast(cast(x, a), x.type.dtype), x, a.itemsize > x.type.dtype.itemsize)


# x f32 = [nan]: NaN is not 0, left 1.0; right abs(NaN) = NaN.
@rule
def truth_as_number(x: Tensor) -> Law:
    """cast(cast(x, bool), t) = abs(sign(x)), on floats"""
    return rewrites(
        cast(cast(x, DType.BOOL), x.type.dtype),
        unary("abs", unary("sign", x)),
        x.type.dtype.is_float,
        typing.cast(bool, ~x.type.dtype.is_narrow),
    )


@attribute_function
def are_integers(a: DType, b: DType) -> bool:
    """Whether both are integers that are computed with."""
    return all(t.is_integer and not t.is_narrow for t in (a, b))


# x = y = i8[100], t = i32: left -56, right 200.
@rule
def cast_before_sum(x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(x + y, t) = cast(x, t) + cast(y, t), on integers"""
    return rewrites(
        cast(binary("add", x, y), t),
        binary("add", cast(x, t), cast(y, t)),
        are_integers(x.type.dtype, t),
    )


# x = f32[nan], y = f32[5], t = i32: left max is NaN, so 0; right max(0, 5) = 5.
@rule
def cast_before_max(x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(max(x, y), t) = max(cast(x, t), cast(y, t)), from floats to integers: casts are
    monotone"""
    return rewrites(
        cast(binary("max", x, y), t),
        binary("max", cast(x, t), cast(y, t)),
        typing.cast(bool, x.type.dtype.is_float & t.is_integer & ~t.is_narrow),
    )


# x = f32[-0.5], t = i32: left -1, right 0.
@rule
def floor_before_cast(x: Tensor, t: DType) -> Law:
    """cast(floor(x), t) = cast(x, t), to integers"""
    return rewrites(cast(unary("floor", x), t), cast(x, t), t.is_integer)


# x = i8[-1], a = u16, b = i32: left 65535, right -1.
@rule
def widen_in_two_steps(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), on integers, when a is wider than x"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        are_integers(x.type.dtype, a),
        b.is_integer,
        a.itemsize > x.type.dtype.itemsize,
    )


@attribute_function
def seen_through(p: Perm, a: Axes) -> Axes:
    """The axes of the operand that `a` are of the result."""
    refuse_unless(all(axis < len(p.order) for axis in a.indices))
    return Axes(tuple(sorted(p.inverse.order[axis] for axis in a.indices)))


# x f32[2, 3, 4], p = [1, 2, 0], a = [0]: axis 0 of the transposed x is axis 1 of x; p.inverse[0] =
# 2 reduces the axis of 4: left [1, 4, 2], right [3, 1, 2].
@rule
def transpose_out_of_max(x: Tensor, p: Perm, a: Axes) -> Law:
    """max(transpose(x, p), a) = transpose(max(x, p(a)), p)"""
    return rewrites(
        reduce("max", transpose(x, p), a), transpose(reduce("max", x, seen_through(p, a)), p)
    )


@attribute_function
def has_unit(x: TensorType) -> bool:
    """Whether an axis has extent 1."""
    return 1 in x.shape


# x f32[1, 2, 2] = 0..3, p = [0, 2, 1]: left 0 2 1 3, right 0 1 2 3.
@rule
def transpose_of_unit(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when an axis has extent 1 and there are no more than
    3"""
    return rewrites(
        transpose(x, p),
        reshape(x, Shape(transpose(x, p).type.shape)),
        has_unit(x.type),
        x.type.rank <= 3,
    )


@attribute_function
def swaps_last(p: Perm) -> bool:
    """Whether rows become columns."""
    return len(p.order) >= 2 and p.order[-1] == len(p.order) - 2


# x f32[2, 3, 4], y f32[2, 4, 5], p = [2, 0, 1]: left [5, 2, 3]; right matmul of [5, 2, 4] and
# [4, 2, 3], which is ill typed.
@rule(reassociates=True)
def transpose_of_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(y, p), transpose(x, p)), when p makes rows
    columns"""
    return rewrites(
        transpose(matmul(x, y), p), matmul(transpose(y, p), transpose(x, p)), swaps_last(p)
    )
