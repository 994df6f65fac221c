"""Attention without its scores as a tensor. All of these laws change how sums are rounded.

What the scores would take in memory, and so where they are better not stored, is for extraction to
say.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import (
    Known,
    Law,
    Tensor,
    Term,
    Varying,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.terms import (
    attention,
    binary,
    broadcast,
    matmul,
    reduce,
    reshape,
    scalar,
    unary,
)
from satura.rewrite.types.attributes import Axes, Shape
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules.algebra import unit_shape
from satura.rules.quantised import is_one_number


@rule(reassociates=True)
def scale_rows_of_matmul(x: Varying, y: Varying, c: Known, s: Shape) -> Law:
    """matmul(x, y) * broadcast(c) = matmul(x * broadcast(c), y), when c has one element"""
    scaled = binary("mul", x, broadcast(c, Shape(x.type.shape)))
    return rewrites(
        binary("mul", matmul(x, y), broadcast(c, s)), matmul(scaled, y), is_one_number(c.type)
    )


def softmax(x: Term, axes: Axes, shape: Shape) -> Term:
    """exp(x - m) / Σ exp(x - m), where m is the largest element along `axes`."""
    grown = unary("exp", binary("sub", x, broadcast(reduce("max", x, axes), shape)))
    return binary("div", grown, broadcast(reduce("sum", grown, axes), shape))


@attribute_function
def are_scores(type_: TensorType, axes: Axes) -> bool:
    """Whether a tensor of f32 is reduced along its last axis."""
    return type_.dtype is DType.F32 and axes.indices == (type_.rank - 1,)


@attribute_function
def no_bias(type_: TensorType) -> Scalar:
    """0 of the type's dtype."""
    return Scalar.of(0, type_.dtype)


@rule(reassociates=True)
def stream_attention(q: Tensor, k: Varying, v: Tensor, axes: Axes, s: Shape) -> Law:
    """softmax(matmul(q, k)) times v = attention(q, k, 0, v), on f32"""
    zeros = broadcast(reshape(scalar(no_bias(q.type)), unit_shape(q.type)), s)
    return rewrites(
        matmul(softmax(matmul(q, k), axes, s), v),
        attention(q, k, zeros, v),
        are_scores(q.type, axes),
    )


@rule(reassociates=True)
def stream_biased_attention(
    q: Tensor, k: Varying, b: Tensor, v: Tensor, axes: Axes, s: Shape
) -> Law:
    """softmax(matmul(q, k) + b) times v = attention(q, k, b, v), on f32"""
    return rewrites(
        matmul(softmax(binary("add", matmul(q, k), b), axes, s), v),
        attention(q, k, b, v),
        are_scores(q.type, axes),
    )
