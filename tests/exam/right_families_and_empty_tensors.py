"""Laws of families of ops, functions of elements and empty tensors, all of them right."""

from __future__ import annotations

import typing

from satura.language import (
    Approximate,
    Arithmetic,
    Axes,
    Axis,
    Contraction,
    Count,
    Dim,
    DType,
    Elementwise,
    Law,
    Movable,
    Operands,
    Others,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Scalars,
    Shape,
    Some,
    Tensor,
    TensorType,
    Term,
    Varying,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    equates,
    family,
    gather,
    matmul,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    transpose,
    unary,
)


@attribute_function
def ones(t: TensorType) -> Shape:
    """A shape of as many 1 as t has axes."""
    return Shape((1,) * t.rank)


@attribute_function
def full(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


@attribute_function
def number(value: Dim, t: TensorType) -> Scalar:
    """`value` as an element of t's type, where it is one."""
    refuse_unless(isinstance(value, int), "the number is not known")
    if t.dtype.is_integer:
        low, high = t.dtype.bounds
        refuse_unless(low <= typing.cast(int, value) <= high, "the type does not hold the number")
    return Scalar.of(value, t.dtype)


def everywhere(value: Scalar, like: TensorType) -> Term:
    """The scalar `value` repeated to the type `like`."""
    return broadcast(reshape(scalar(value), ones(like)), full(like))


@family
def gather_past(f: Arithmetic, xs: Operands[Varying], i: Tensor, axis: Axis) -> Law:
    """f(gather(x, i, axis)…) = gather(f(x…), i, axis), when all x have one shape"""
    return rewrites(f(xs.each(gather, i, axis)), gather(f(xs), i, axis), *xs.of_one_shape)


@family
def transpose_out_of_some(f: Elementwise, xs: Some[Varying], ys: Others[Movable], p: Perm) -> Law:
    """f(transpose(x, p)…, y…) = transpose(f(x…, transpose(y, p⁻¹)…), p)"""
    return rewrites(
        f(xs.each(transpose, p), ys), transpose(f(xs, ys.each(transpose, p.inverse)), p)
    )


@family
def pad_out_of_constants(f: Elementwise, xs: Operands[Tensor], vs: Scalars, b: Padding) -> Law:
    """f(pad(x, v, b)…) = pad(f(x…), f(v…), b)"""
    return rewrites(f(xs.each(pad, vs, b)), pad(f(xs), f(vs), b), *xs.of_one_shape)


@attribute_function
def is_ordinary(n: Scalar) -> bool:
    return n.dtype in (DType.F32, DType.F64) and 2.0**-20 <= abs(float(n.value)) <= 2.0**20


@family(reassociates=True)
def scale_out_of_contraction(
    f: Contraction, x: Approximate, w: Tensor, n: Scalar, u: Shape, s: Shape
) -> Law:
    """f(x, w * n) = f(x, w) * n, for a number n that is neither huge nor tiny"""
    result = f(x, w)
    return rewrites(
        f(x, binary("mul", w, broadcast(reshape(n, u), s))),
        binary("mul", result, everywhere(n, result.type)),
        is_ordinary(n),
    )


@attribute_function
def identity(f: ReduceFn, t: TensorType) -> Scalar:
    """What f of no elements is."""
    if f.name in ("sum", "prod"):
        return Scalar.of(int(f.name == "prod"), t.dtype)
    if t.dtype == DType.BOOL:
        return Scalar.of(f.name == "min", t.dtype)
    if t.dtype.is_float:
        return Scalar.of(float("inf") if f.name == "min" else -float("inf"), t.dtype)
    low, high = t.dtype.bounds
    return Scalar.of(high if f.name == "min" else low, t.dtype)


@attribute_function
def is_empty_along(t: TensorType, a: Axes) -> bool:
    return any(t.shape[i] == 0 for i in a.indices)


@rule
def sum_over_nothing(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """f(x, a) = f's identity everywhere, when an axis of a has no elements"""
    result = reduce(f, x, a)
    return rewrites(result, everywhere(identity(f, x.type), result.type), is_empty_along(x.type, a))


@rule
def product_over_nothing(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = 0 everywhere, when the inner axis has no elements"""
    result = matmul(x, y)
    return rewrites(result, everywhere(number(0, x.type), result.type), x.type.shape[-1] == 0)


@attribute_function
def first_place(t: TensorType) -> Scalar:
    return Scalar.of(0, DType.I64)


@rule
def place_of_the_only_one(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg(x, axis) = 0 everywhere, when the axis has one element"""
    found = arg_reduce(f, x, axis, last)
    return rewrites(
        found, everywhere(first_place(x.type), found.type), x.type.shape[axis.index] == 1
    )


@rule
def clip_before_narrowing(x: Tensor) -> Law:
    """cast(max(min(x, 127), -128), i8) = cast(x, i8), on floats: there a cast saturates"""
    return rewrites(
        cast(binary("max", binary("min", x, 127.0), -128.0), DType.I8),
        cast(x, DType.I8),
        x.type.dtype.is_float,
    )


@rule
def absolute_from_both_parts(x: Tensor) -> Law:
    """relu(x) + relu(-x) = abs(x), on floats; both ways"""
    return equates(
        binary("add", unary("relu", x), unary("relu", unary("neg", x))),
        unary("abs", x),
        x.type.dtype.is_float,
    )
