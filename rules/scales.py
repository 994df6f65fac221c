"""Scales of sums join those of what is summed, so that every addend is multiplied once.

What is quantised anew is (sums of integers · scale + bias) / scale, and a residual of two such.
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
from satura.rewrite.language.terms import Term, binary, broadcast
from satura.rewrite.types.attributes import Shape
from satura.rewrite.types.tensor_type import TensorType


@attribute_function
def joins(c: TensorType, b: TensorType) -> bool:
    """Whether a factor b, spread over what c is spread over, gives no more numbers than c has."""
    return len(c.shape) == len(b.shape) and all(
        many in (one, 1) for one, many in zip(c.shape, b.shape, strict=True)
    )


def joined(c: Tensor, b: Tensor, s: Shape) -> Term:
    """broadcast(c * b), when c has all the axes that b has"""
    return broadcast(binary("mul", c, broadcast(b, Shape(c.type.shape))), s)


@rule(reassociates=True)
def scale_into_biased(x: Varying, c: Known, a: Known, b: Known, s: Shape) -> Law:
    """(x * broadcast(c) + broadcast(a)) * broadcast(b) = x * broadcast(c * b) + broadcast(a * b),
    when c and a have all the axes that b has"""
    scaled = binary("mul", x, broadcast(c, s))
    return rewrites(
        binary("mul", binary("add", scaled, broadcast(a, s)), broadcast(b, s)),
        binary("add", binary("mul", x, joined(c, b, s)), joined(a, b, s)),
        joins(c.type, b.type),
        joins(a.type, b.type),
    )


@rule(reassociates=True)
def scale_into_sum_of_scaled(x: Varying, c: Known, y: Varying, d: Known, b: Known, s: Shape) -> Law:
    """(x * broadcast(c) + y * broadcast(d)) * broadcast(b) = x * broadcast(c * b) +
    y * broadcast(d * b), when c and d have all the axes that b has"""
    scaled = binary("mul", x, broadcast(c, s)), binary("mul", y, broadcast(d, s))
    return rewrites(
        binary("mul", binary("add", *scaled), broadcast(b, s)),
        binary("add", binary("mul", x, joined(c, b, s)), binary("mul", y, joined(d, b, s))),
        joins(c.type, b.type),
        joins(d.type, b.type),
    )
