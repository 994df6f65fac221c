"""Scalar constants are computed while rewriting, so that laws can see their values."""

from __future__ import annotations

from satura.rewrite.language.dsl import Law, attribute_function, family, rewrites, rule
from satura.rewrite.language.families import Elementwise, Scalars
from satura.rewrite.language.terms import constant, reshape, scalar
from satura.rewrite.types.attributes import Shape, refuse_unless
from satura.rewrite.types.constant import Constant, Scalar


@family
def fold(f: Elementwise, vs: Scalars) -> Law:
    """f(v…) is a constant, for constants v…"""
    return rewrites(f(vs), scalar(f.element(vs)))


@attribute_function
def only_element(value: Constant) -> Scalar:
    """The element of a constant that has one, but is not a scalar."""
    refuse_unless(value.type.rank > 0 and value.size == 1, "it has not just one element")
    return Scalar(value.type.dtype, value.array.tobytes())


@rule
def constant_of_one_element(value: Constant) -> Law:
    """a constant of one element = reshape(that scalar, its shape)"""
    return rewrites(constant(value), reshape(scalar(only_element(value)), Shape(value.type.shape)))
