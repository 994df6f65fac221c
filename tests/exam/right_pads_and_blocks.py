"""Laws of pads and blocks, all of them right."""

import typing
from collections.abc import Iterable

from satura.language import (
    Axes,
    Axis,
    DType,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    Varying,
    attribute_function,
    binary,
    broadcast,
    concat,
    equates,
    matmul,
    pad,
    reduce,
    reshape,
    rewrites,
    rule,
    slice_,
    unary,
)


@attribute_function
def keeps_zero(f: UnaryFn) -> bool:
    """Whether f(0.0) = 0.0, with this sign."""
    return f.name in ("tanh", "sqrt", "relu", "sin", "tan", "abs", "sign", "floor", "ceil", "round")


@rule
def zeros_out_of_function(f: UnaryFn, x: Varying, b: Padding) -> Law:
    """f(pad(x, 0.0)) = pad(f(x), 0.0), on floats, for an f with f(0.0) = 0.0"""
    return rewrites(unary(f, pad(x, 0.0, b)), pad(unary(f, x), 0.0, b), keeps_zero(f))


@attribute_function
def pads_only(b: Padding, a: Axes) -> bool:
    """Whether no other axes are padded than those of `a`."""
    return all(
        (lo, hi) == (0, 0) or i in a.indices
        for i, (lo, hi) in enumerate(zip(b.lo, b.hi, strict=True))
    )


@rule(reassociates=True)
def sum_without_border(x: Tensor, b: Padding, a: Axes) -> Law:
    """sum(pad(x, 0, b), a) = sum(x, a), when only axes of a are padded"""
    return rewrites(reduce("sum", pad(x, 0, b), a), reduce("sum", x, a), pads_only(b, a))


@attribute_function
def is_neutral(f: ReduceFn, v: Scalar) -> bool:
    """Whether v is what f gives of nothing."""
    if f.name not in ("max", "min") or v.dtype.is_narrow:
        return False
    largest = f.name == "min"
    if v.dtype is DType.BOOL:
        return bool(v.value) == largest
    if v.dtype.is_float:
        return float(v.value) == (float("inf") if largest else -float("inf"))
    return int(v.value) == v.dtype.bounds[largest]


@rule
def choice_without_border(f: ReduceFn, x: Tensor, v: Scalar, b: Padding, a: Axes) -> Law:
    """max(pad(x, v, b), a) = max(x, a), when v is the least of all and only axes of a are padded"""
    return rewrites(reduce(f, pad(x, v, b), a), reduce(f, x, a), is_neutral(f, v), pads_only(b, a))


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


@attribute_function
def sees_border(s: Slices, b: Padding, x: TensorType) -> bool:
    """Whether along some axis all that `s` takes is border."""
    entries = zip(s.starts, s.sizes, s.steps, b.lo, x.shape, strict=True)
    for start, size, step, lo, n in typing.cast(Iterable[tuple[int, int, int, int, int]], entries):
        if not all(isinstance(value, int) for value in (start, size, lo, n)):
            continue
        ends = (start, start + (size - 1) * step)
        if max(ends) < lo or min(ends) >= lo + n:
            return True
    return False


@rule
def slice_of_border(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = broadcast(v), when s sees nothing but the border along an axis"""
    part = slice_(pad(x, v, b), s)
    return rewrites(
        part, broadcast(reshape(v, units(x.type)), Shape(s.sizes)), sees_border(s, b, x.type)
    )


@attribute_function
def only_columns(b: Padding) -> bool:
    """Whether only the last axis is padded."""
    return len(b.lo) > 0 and all(n == 0 for n in (*b.lo[:-1], *b.hi[:-1]))


@attribute_function
def only_rows(b: Padding, columns: Padding) -> bool:
    """Whether only the last axis but one is padded, and as `columns` pads the last one."""
    if len(b.lo) < 2:
        return False
    rest = (*b.lo[:-2], *b.hi[:-2], b.lo[-1], b.hi[-1])
    return all(n == 0 for n in rest) and (b.lo[-2], b.hi[-2]) == (columns.lo[-1], columns.hi[-1])


@rule(reassociates=True)
def drop_padded_terms(x: Tensor, y: Tensor, a: Padding, b: Padding) -> Law:
    """matmul(pad(x, 0, columns), pad(y, 0, rows)) = matmul(x, y), when both are padded alike"""
    return rewrites(
        matmul(pad(x, 0, a), pad(y, 0, b)), matmul(x, y), only_columns(a), only_rows(b, a)
    )


@rule
def regroup_concat(x: Tensor, y: Tensor, z: Tensor, a: Axis) -> Law:
    """concat(concat(x, y, a), z, a) = concat(x, concat(y, z, a), a)"""
    return equates(concat(concat(x, y, a), z, a), concat(x, concat(y, z, a), a))


@attribute_function
def is_from_end(axis: Axis, x: TensorType, back: int) -> bool:
    """Whether the axis is number `back` from the end."""
    return axis.index == x.rank - back


@rule(reassociates=True)
def product_of_blocks(x: Tensor, y: Tensor, z: Tensor, w: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y, columns), concat(z, w, rows)) = matmul(x, z) + matmul(y, w), for x.k =
    z.k"""
    return rewrites(
        matmul(concat(x, y, a), concat(z, w, b)),
        binary("add", matmul(x, z), matmul(y, w)),
        is_from_end(a, x.type, 1),
        is_from_end(b, z.type, 2),
        x.type.shape[a.index] == z.type.shape[b.index],
    )


@rule(reassociates=True)
def product_of_columns(x: Tensor, y: Tensor, z: Tensor, a: Axis) -> Law:
    """matmul(x, concat(y, z, columns)) = concat(matmul(x, y), matmul(x, z), columns)"""
    return rewrites(
        matmul(x, concat(y, z, a)),
        concat(matmul(x, y), matmul(x, z), a),
        is_from_end(a, y.type, 1),
    )
