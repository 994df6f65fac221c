"""A tensor of one value, as laws write it."""

from __future__ import annotations

from satura.rewrite.language.terms import Term, broadcast, reshape
from satura.rewrite.types.attributes import Shape
from satura.rewrite.types.constant import Scalar


def filled(value: Scalar, ones: Shape, s: Shape) -> Term:
    """`value` in every element."""
    return broadcast(reshape(value, ones), s)
