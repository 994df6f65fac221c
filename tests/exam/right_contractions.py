"""Laws of contractions, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Constant,
    Contraction,
    Groups,
    Law,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    attention,
    attribute_function,
    binary,
    concat,
    constant,
    conv,
    family,
    matmul,
    pad,
    product,
    reduce,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
    unary,
)


@attribute_function
def swaps_last_two(p: Perm) -> bool:
    n = len(p.order)
    return n >= 2 and p.order == (*range(n - 2), n - 1, n - 2)


@rule(reassociates=True)
def transposed_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(y, p), transpose(x, p)), when p swaps the last
    two axes"""
    return rewrites(
        transpose(matmul(x, y), p), matmul(transpose(y, p), transpose(x, p)), swaps_last_two(p)
    )


@rule
def regroup_integer_products(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """matmul(matmul(x, y), z) = matmul(x, matmul(y, z)) on integers"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)), x.type.dtype.is_integer)


@attribute_function
def is_last(axis: Axis, t: TensorType) -> bool:
    return axis.index == t.rank - 1


@rule(reassociates=True)
def join_columns(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """concat(matmul(x, y), matmul(x, z), columns) = matmul(x, concat(y, z, columns))"""
    return rewrites(
        concat(matmul(x, y), matmul(x, z), axis),
        matmul(x, concat(y, z, axis)),
        is_last(axis, x.type),
    )


@rule
def add_kernels(x: Tensor, y: Tensor, z: Tensor, w: Window, g: Groups) -> Law:
    """conv(x, y) + conv(x, z) = conv(x, y + z) on integers, under one window and of one shape"""
    return rewrites(
        binary("add", conv(x, y, w, g), conv(x, z, w, g)),
        conv(x, binary("add", y, z), w, g),
        x.type.dtype.is_integer & (y.type == z.type),
    )


@attribute_function
def is_rows(axes: Axes, t: TensorType) -> bool:
    return axes.indices == (t.rank - 2,)


@rule
def sum_of_rows(x: Tensor, y: Tensor, axes: Axes) -> Law:
    """sum(matmul(x, y), rows) = matmul(sum(x, rows), y) on integers"""
    return rewrites(
        reduce("sum", matmul(x, y), axes),
        matmul(reduce("sum", x, axes), y),
        x.type.dtype.is_integer & is_rows(axes, x.type),
    )


@attribute_function
def is_unit_matrix(c: Constant) -> bool:
    import numpy as np

    shape = c.type.shape
    if len(shape) != 2 or shape[0] != shape[1] or not c.type.dtype.is_integer:
        return False
    return bool(np.array_equal(c.array, np.eye(typing.cast(int, shape[0]), dtype=c.array.dtype)))


@rule
def integer_product_with_unit(x: Tensor, c: Constant) -> Law:
    """matmul(x, identity) = x on integers"""
    return rewrites(matmul(x, constant(c)), x, is_unit_matrix(c))


@attribute_function
def is_columns(axis: Axis, t: TensorType) -> bool:
    return axis.index == t.rank - 1


@rule(reassociates=True)
def join_values(q: Tensor, k: Tensor, b: Tensor, v: Tensor, u: Tensor, axis: Axis) -> Law:
    """concat(attention(q, k, b, v), attention(q, k, b, u)) = attention(q, k, b, concat(v, u)) along
    the columns"""
    return rewrites(
        concat(attention(q, k, b, v), attention(q, k, b, u), axis),
        attention(q, k, b, concat(v, u, axis)),
        is_columns(axis, v.type),
    )


@attribute_function
def is_zero(v: Scalar) -> bool:
    return v.dtype.is_integer and int(v.value) == 0


@attribute_function
def pads_columns_after(b: Padding) -> bool:
    return all(n == 0 for n in (*b.lo, *b.hi[:-1]))


@attribute_function
def rows_met(x: TensorType, y: TensorType) -> Slices:
    sizes = (*y.shape[:-2], x.shape[-1], y.shape[-1])
    return Slices((0,) * y.rank, sizes, (1,) * y.rank)


@rule
def zeros_after_columns(x: Tensor, y: Tensor, v: Scalar, b: Padding) -> Law:
    """matmul(pad(x, 0 after the columns), y) = matmul(x, first rows of y) on integers"""
    return rewrites(
        matmul(pad(x, v, b), y),
        matmul(x, slice_(y, rows_met(x.type, y.type))),
        is_zero(v) & pads_columns_after(b),
    )


@attribute_function
def rows_of(s: Slices, x: TensorType) -> Slices:
    """s on all axes but the last, which is whole."""
    return Slices((*s.starts[:-1], 0), (*s.sizes[:-1], x.shape[-1]), (*s.steps[:-1], 1))


@attribute_function
def columns_of(s: Slices, y: TensorType) -> Slices:
    """s on all axes but the last but one, which is whole."""
    starts = (*s.starts[:-2], 0, s.starts[-1])
    sizes = (*s.sizes[:-2], y.shape[-2], s.sizes[-1])
    return Slices(starts, sizes, (*s.steps[:-2], 1, s.steps[-1]))


@rule(reassociates=True)
def slice_of_product(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(matmul(x, y), s) = matmul(slice(x, rows), slice(y, columns)), batches by both"""
    return rewrites(
        slice_(matmul(x, y), s),
        matmul(slice_(x, rows_of(s, x.type)), slice_(y, columns_of(s, y.type))),
    )


@attribute_function
def pixels(x: TensorType) -> Shape:
    return Shape((product(x.shape[:-1]), x.shape[-1]))


@attribute_function
def one_tap(w: Window, g: Groups) -> bool:
    flat = set(w.sizes) <= {1} and set(w.strides) <= {1}
    return flat and not w.has_border and g.count == 1


@rule(reassociates=True)
def conv_of_one_tap(x: Tensor, y: Tensor, w: Window, g: Groups) -> Law:
    """conv(x, y) = matmul(pixels of x, y) in the shape of the conv, for one tap, in steps of 1"""
    left = conv(x, y, w, g)
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, pixels(x.type)), reshape(y, pixels(y.type))), Shape(left.type.shape)
        ),
        one_tap(w, g),
    )


@family
def negate_second(f: Contraction, x: Tensor, y: Tensor) -> Law:
    """f(x, -y) = -f(x, y) on integers, for matmul and conv"""
    return rewrites(f(x, unary("neg", y)), unary("neg", f(x, y)), x.type.dtype.is_integer)
