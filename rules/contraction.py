"""Constants move into the weights of contractions, where they are computed once.

A matmul of one row, as of the query of a new token, or one column, as of a score, packs nothing: it
is a sum. All of these laws change how products and sums are rounded.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import (
    Known,
    Law,
    Tensor,
    Varying,
    attribute_function,
    family,
    rewrites,
    rule,
)
from satura.rewrite.language.families import Contraction
from satura.rewrite.language.terms import binary, broadcast, matmul, reduce, reshape, transpose
from satura.rewrite.types.attributes import Axes, Perm, Shape, refuse_unless
from satura.rewrite.types.tensor_type import DType, TensorType


@attribute_function
def is_per_channel(type_: TensorType) -> bool:
    """Whether all axes but the last have extent 1."""
    return all(dim == 1 for dim in type_.shape[:-1])


@family(reassociates=True)
def scale_into(f: Contraction, x: Varying, w: Known, c: Known, s: Shape) -> Law:
    """f(x, w) * broadcast(c) = f(x, w * broadcast(c)), when c has one factor per output channel or
    one in all"""
    scaled = binary("mul", w, broadcast(c, Shape(w.type.shape)))
    return rewrites(binary("mul", f(x, w), broadcast(c, s)), f(x, scaled), is_per_channel(c.type))


@family(reassociates=True)
def scale_biased(f: Contraction, x: Varying, w: Known, a: Known, b: Known, s: Shape) -> Law:
    """(f(x, w) + broadcast(a)) * broadcast(b) = f(x, w) * broadcast(b) + broadcast(a) *
    broadcast(b); starting from a contraction, whose weights the factor can join"""
    products, scale = f(x, w), broadcast(b, s)
    return rewrites(
        binary("mul", binary("add", products, broadcast(a, s)), scale),
        binary("add", binary("mul", products, scale), binary("mul", broadcast(a, s), scale)),
    )


@family(reassociates=True)
def gather_biases_of(f: Contraction, x: Tensor, y: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """(f(x, y) + broadcast(a)) + broadcast(b) = f(x, y) + broadcast(a + b), when a and b have one
    shape; starting from a contraction, so that the sums of constants do not multiply"""
    return rewrites(
        binary("add", binary("add", f(x, y), broadcast(a, s)), broadcast(b, s)),
        binary("add", f(x, y), broadcast(binary("add", a, b), s)),
        a.type.shape == b.type.shape,
    )


@attribute_function
def flattens(type_: TensorType, perm: Perm, shape: Shape) -> bool:
    """Whether perm keeps axis 0 of x in place and the reshape merges all other axes into one."""
    return perm.order[:1] == (0,) and len(shape.dims) == 2 and shape.dims[0] == type_.shape[0]


@attribute_function
def rows_by_axis(type_: TensorType, perm: Perm, weight: TensorType) -> Shape:
    """Shape of the weight with its rows split into the merged axes."""
    refuse_unless(type_.shape[0] != 0, "the tensor is empty")
    return Shape((*perm.apply(type_.shape)[1:], weight.shape[-1]))


@attribute_function
def row_perm(perm: Perm) -> Perm:
    """The permutation that brings the weight's row axes into the order of x's axes."""
    return Perm((*(axis - 1 for axis in perm.inverse.order[1:]), len(perm.order) - 1))


@rule(reassociates=True)
def permute_rows_of_matmul(x: Varying, w: Known, p: Perm, s: Shape) -> Law:
    """matmul(reshape(transpose(x, p), s), w) = matmul(reshape(x, s), w with its rows in the order
    of x), when s keeps the first axis and flattens all others"""
    rows = reshape(w, rows_by_axis(x.type, p, w.type))
    return rewrites(
        matmul(reshape(transpose(x, p), s), w),
        matmul(reshape(x, s), reshape(transpose(rows, row_perm(p)), Shape(w.type.shape))),
        flattens(x.type, p, s),
    )


@attribute_function
def down_columns(type_: TensorType) -> Axes:
    """The last axis but one."""
    return Axes((type_.rank - 2,))


@attribute_function
def last_axis(type_: TensorType) -> Axes:
    """The last axis."""
    return Axes((type_.rank - 1,))


@attribute_function
def has_one_row(type_: TensorType) -> bool:
    """Whether the last axis but one has extent 1."""
    return type_.shape[-2] == 1


@attribute_function
def has_one_column(type_: TensorType) -> bool:
    """Whether the last axis has extent 1."""
    return type_.shape[-1] == 1


@attribute_function
def keeps_products(type_: TensorType) -> bool:
    """Whether products are rounded as sums are: f16 and bf16 are summed in f32."""
    return type_.dtype in (DType.F32, DType.F64)


@attribute_function
def last_axes_swapped(type_: TensorType) -> Perm:
    """The permutation that transposes matrices."""
    *batch, rows, columns = range(type_.rank)
    return Perm((*batch, columns, rows))


@rule(reassociates=True)
def matmul_of_one_row(x: Tensor, y: Varying) -> Law:
    """matmul(x, y) = sum of y's rows, each times its element of x, when x has one row"""
    factors = broadcast(transpose(x, last_axes_swapped(x.type)), Shape(y.type.shape))
    return rewrites(
        matmul(x, y),
        reduce("sum", binary("mul", factors, y), down_columns(y.type)),
        has_one_row(x.type),
        keeps_products(x.type),
    )


@rule(reassociates=True)
def matmul_of_one_column(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = sum of x's columns, each times its element of y, when y has one column"""
    factors = broadcast(transpose(y, last_axes_swapped(y.type)), Shape(x.type.shape))
    return rewrites(
        matmul(x, y),
        reduce("sum", binary("mul", x, factors), last_axis(x.type)),
        has_one_column(y.type),
        keeps_products(x.type),
    )


@rule(reassociates=True)
def matmul_of_one_term(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = each element of x times each of y, when x has one column"""
    whole = Shape(matmul(x, y).type.shape)
    return rewrites(
        matmul(x, y),
        binary("mul", broadcast(x, whole), broadcast(y, whole)),
        has_one_column(x.type),
    )
