"""Constants move into the weights of contractions, where they are computed once.

All of these laws change how products and sums are rounded.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import (
    Known,
    Law,
    Tensor,
    Varying,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.terms import binary, broadcast, conv, matmul, reshape, transpose
from satura.rewrite.types.attributes import Groups, Perm, Shape, Window, refuse_unless
from satura.rewrite.types.tensor_type import TensorType


@attribute_function
def is_per_channel(type_: TensorType) -> bool:
    """Whether all axes but the last have extent 1."""
    return all(dim == 1 for dim in type_.shape[:-1])


@rule(reassociates=True)
def scale_into_conv(
    x: Varying, w: Known, c: Known, s: Shape, window: Window, groups: Groups
) -> Law:
    """conv(x, w) * broadcast(c) = conv(x, w * broadcast(c)), when c has one factor per output
    channel or one in all"""
    return rewrites(
        binary("mul", conv(x, w, window, groups), broadcast(c, s)),
        conv(x, binary("mul", w, broadcast(c, Shape(w.type.shape))), window, groups),
        is_per_channel(c.type),
    )


@rule(reassociates=True)
def scale_into_matmul(x: Varying, w: Known, c: Known, s: Shape) -> Law:
    """matmul(x, w) * broadcast(c) = matmul(x, w * broadcast(c)), when c has one factor per column
    or one in all"""
    return rewrites(
        binary("mul", matmul(x, w), broadcast(c, s)),
        matmul(x, binary("mul", w, broadcast(c, Shape(w.type.shape)))),
        is_per_channel(c.type),
    )


@rule(reassociates=True)
def gather_biases_of_conv(
    x: Tensor, w: Tensor, a: Known, b: Known, s: Shape, window: Window, groups: Groups
) -> Law:
    """(conv(x, w) + broadcast(a)) + broadcast(b) = conv(x, w) + broadcast(a + b), when a and b have
    one shape; starting from a contraction, so that the sums of constants do not multiply"""
    product = conv(x, w, window, groups)
    return rewrites(
        binary("add", binary("add", product, broadcast(a, s)), broadcast(b, s)),
        binary("add", product, broadcast(binary("add", a, b), s)),
        a.type.shape == b.type.shape,
    )


@rule(reassociates=True)
def gather_biases_of_matmul(x: Tensor, y: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """(matmul(x, y) + broadcast(a)) + broadcast(b) = matmul(x, y) + broadcast(a + b), when a and b
    have one shape"""
    product = matmul(x, y)
    return rewrites(
        binary("add", binary("add", product, broadcast(a, s)), broadcast(b, s)),
        binary("add", product, broadcast(binary("add", a, b), s)),
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
