"""Selections: the first element in an order is the largest, which is found in vectors."""

from __future__ import annotations

from satura.rewrite.language.dsl import Law, Tensor, rewrites, rule
from satura.rewrite.language.terms import arg_reduce, first_places
from satura.rewrite.types.attributes import Axis, Count


@rule
def first_place_of_largest(x: Tensor) -> Law:
    """first_places(x, 1), largest first = arg_reduce(max, x) along rows, of equal ones the first"""
    return rewrites(first_places(x, Count(1), Count(1)), arg_reduce("max", x, Axis(1), Count(0)))
