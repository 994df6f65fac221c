"""What is quantised as it was before is left alone.

Whether steps undo each other is tried on every integer of at most 16 bits.
"""

from __future__ import annotations

import numpy as np

from satura.rewrite.language.dsl import Law, Varying, attribute_function, replaces, rule
from satura.rewrite.language.terms import binary, broadcast, cast, reshape, unary
from satura.rewrite.ops import REGISTRY
from satura.rewrite.types.attributes import BinaryFn, Shape, UnaryFn
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.rules.quantised import SMALL

CODES = np.arange(1 << 16)  # what 16 bits can be; of fewer bits, several times each


def _every(dtype: DType) -> Array:
    """All integers of a dtype of at most 16 bits."""
    return CODES.astype(dtype.numpy)


def _cast(values: Array, dtype: DType) -> Array:
    return np.asarray(REGISTRY["cast"].reference(values, dtype))


def _binary(f: str, values: Array, scalar: Scalar) -> Array:
    return np.asarray(REGISTRY["binary"].reference(values, scalar.array.reshape(1), BinaryFn(f)))


@attribute_function
def leaves_integers(f: BinaryFn, x: TensorType, t: DType, c: Scalar) -> bool:
    """Whether f(v, c) = v for every v of x's dtype as a t."""
    if x.dtype not in SMALL:
        return False
    values = _cast(_every(x.dtype), t)
    return _binary(f.name, values, c).tobytes() == values.tobytes()


@rule
def drop_function_that_leaves_integers(
    f: BinaryFn, x: Varying, t: DType, c: Scalar, ones: Shape, s: Shape
) -> Law:
    """f(t(x), c everywhere) = t(x), when f leaves all integers of x's dtype as they are, such as
    max(f32(x), 0) of a u8"""
    wide = cast(x, t)
    return replaces(
        binary(f, wide, broadcast(reshape(c, ones), s)), wide, leaves_integers(f, x.type, t, c)
    )


@attribute_function
def rounds_back(x: TensorType, t: DType, a: Scalar) -> bool:
    """Whether round(v * a / a) = v for every v of x's dtype as a t."""
    if x.dtype not in SMALL:
        return False
    values = _cast(_every(x.dtype), t)
    scaled = _binary("div", _binary("mul", values, a), a)
    rounded = np.asarray(REGISTRY["unary"].reference(scaled, UnaryFn("round")))
    return rounded.tobytes() == values.tobytes()


@rule
def round_what_is_scaled_back(x: Varying, t: DType, a: Scalar, ones: Shape, s: Shape) -> Law:
    """round(t(x) * a / a) = t(x), when that holds for all integers of x's dtype"""
    scale, wide = broadcast(reshape(a, ones), s), cast(x, t)
    return replaces(
        unary("round", binary("div", binary("mul", wide, scale), scale)),
        wide,
        rounds_back(x.type, t, a),
    )


@attribute_function
def moves_back(x: TensorType, i: DType, z: Scalar, t: DType, c: Scalar) -> bool:
    """Whether t(i(v) - z) + c = t(v) for every v of x's dtype."""
    if x.dtype not in SMALL:
        return False
    values = _every(x.dtype)
    moved = _cast(_binary("sub", _cast(values, i), z), t)
    return _binary("add", moved, c).tobytes() == _cast(values, t).tobytes()


@rule
def add_zero_point_back(
    x: Varying, i: DType, z: Scalar, t: DType, c: Scalar, ones: Shape, s: Shape
) -> Law:
    """t(i(x) - z) + c = t(x), when that holds for all integers of x's dtype"""
    moved = binary("sub", cast(x, i), broadcast(reshape(z, ones), s))
    return replaces(
        binary("add", cast(moved, t), broadcast(reshape(c, ones), s)),
        cast(x, t),
        moves_back(x.type, i, z, t, c),
    )
