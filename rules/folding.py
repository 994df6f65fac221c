"""Scalar constants are computed while rewriting, so that laws can see their values."""

from __future__ import annotations

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.language.dsl import Law, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, cast, constant, reshape, scalar, unary
from satura.rewrite.ops import REGISTRY
from satura.rewrite.types.attributes import (
    Attribute,
    BinaryFn,
    Constant,
    Refuse,
    Scalar,
    Shape,
    UnaryFn,
    refuse_unless,
)
from satura.rewrite.types.tensor_type import DType


def _computed(op: str, scalars: tuple[Scalar, ...], *attributes: Attribute) -> Scalar:
    """`op` on 0-d constants, by the op's own type rule and reference."""
    declared = REGISTRY[op]
    try:
        declared.infer(tuple(Constant(value.array).type for value in scalars), attributes)
    except ProgramError as error:
        raise Refuse(str(error)) from error
    result = np.asarray(declared.reference(*(value.array for value in scalars), *attributes))
    return Scalar(DType.of(result.dtype), result.tobytes())


@attribute_function
def applied(f: UnaryFn, v: Scalar) -> Scalar:
    """f(v)."""
    return _computed("unary", (v,), f)


@attribute_function
def applied_to_two(f: BinaryFn, v: Scalar, w: Scalar) -> Scalar:
    """f(v, w)."""
    return _computed("binary", (v, w), f)


@attribute_function
def converted(v: Scalar, dtype: DType) -> Scalar:
    """v cast to `dtype`."""
    return _computed("cast", (v,), dtype)


@rule
def fold_unary(f: UnaryFn, v: Scalar) -> Law:
    """f(v) is a constant, for a constant v"""
    return rewrites(unary(f, v), scalar(applied(f, v)))


@rule
def fold_binary(f: BinaryFn, v: Scalar, w: Scalar) -> Law:
    """f(v, w) is a constant, for constants v and w"""
    return rewrites(binary(f, v, w), scalar(applied_to_two(f, v, w)))


@rule
def fold_cast(v: Scalar, dtype: DType) -> Law:
    """cast(v, t) is a constant, for a constant v"""
    return rewrites(cast(v, dtype), scalar(converted(v, dtype)))


@attribute_function
def only_element(value: Constant) -> Scalar:
    """The element of a constant that has one, but is no scalar."""
    refuse_unless(value.array.ndim > 0 and value.array.size == 1, "it has not just one element")
    return Scalar(value.type.dtype, value.array.tobytes())


@rule
def constant_of_one_element(value: Constant) -> Law:
    """a constant of one element = reshape(that scalar, its shape)"""
    return rewrites(constant(value), reshape(scalar(only_element(value)), Shape(value.type.shape)))
