"""Scales of sums join those of what is summed, so that every addend is multiplied once.

What is quantised anew is (sums of integers · scale + bias) / scale, or so the sum of two. Laws
start from a cast, so that in a chain of scales and sums those of constants do not multiply.
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
from satura.rewrite.language.terms import Term, binary, broadcast, cast
from satura.rewrite.types.attributes import Shape
from satura.rewrite.types.tensor_type import DType, TensorType


@attribute_function
def joins(c: TensorType, b: TensorType) -> bool:
    """Whether a factor b, spread over what c is spread over, gives no more numbers than c has."""
    return len(c.shape) == len(b.shape) and all(
        many in (one, 1) for one, many in zip(c.shape, b.shape, strict=True)
    )


def scaled(x: Tensor, t: DType, c: Term, s: Shape) -> Term:
    """t(x) * broadcast(c)"""
    return binary("mul", cast(x, t), broadcast(c, s))


def joined(c: Tensor, b: Tensor) -> Term:
    """c * b, when c has all the axes that b has"""
    return binary("mul", c, broadcast(b, Shape(c.type.shape)))


@rule(reassociates=True)
def scale_into_biased(x: Varying, t: DType, c: Known, a: Known, b: Known, s: Shape) -> Law:
    """(t(x) * broadcast(c) + broadcast(a)) * broadcast(b) = t(x) * broadcast(c * b) +
    broadcast(a * b), when c and a have all the axes that b has"""
    before = binary("add", scaled(x, t, c, s), broadcast(a, s))
    return rewrites(
        binary("mul", before, broadcast(b, s)),
        binary("add", scaled(x, t, joined(c, b), s), broadcast(joined(a, b), s)),
        joins(c.type, b.type),
        joins(a.type, b.type),
    )


@rule(reassociates=True)
def scale_into_sum(x: Varying, y: Varying, t: DType, c: Known, d: Known, b: Known, s: Shape) -> Law:
    """(t(x) * broadcast(c) + t(y) * broadcast(d)) * broadcast(b) = t(x) * broadcast(c * b) +
    t(y) * broadcast(d * b), when c and d have all the axes that b has"""
    before = binary("add", scaled(x, t, c, s), scaled(y, t, d, s))
    return rewrites(
        binary("mul", before, broadcast(b, s)),
        binary("add", scaled(x, t, joined(c, b), s), scaled(y, t, joined(d, b), s)),
        joins(c.type, b.type),
        joins(d.type, b.type),
    )
