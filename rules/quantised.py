"""Dequantised operands of contractions are multiplied as the integers that they come from.

What is dequantised is (q - zero point) · scale. Its scale goes past the contraction, whose sums of
integers are exact then, where those of f32 are rounded.
"""

from __future__ import annotations

from dataclasses import replace

from satura.rewrite.language.dsl import (
    Known,
    Law,
    Varying,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.terms import binary, broadcast, cast, conv, matmul, reshape, transpose
from satura.rewrite.types.attributes import Groups, Perm, Scalar, Shape, Window, refuse_unless
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules.contraction import is_per_channel

SMALL = (DType.I8, DType.U8, DType.I16, DType.U16)
LARGER = (*SMALL, DType.I32, DType.U32)


@attribute_function
def sums_are_exact(x: TensorType, w: TensorType) -> bool:
    """Whether no sum of products, of which memory holds the factors, is too large for i64."""
    return (x.dtype in SMALL and w.dtype in LARGER) or (x.dtype in LARGER and w.dtype in SMALL)


@attribute_function
def is_small(x: TensorType) -> bool:
    """Whether these are integers of at most 16 bits."""
    return x.dtype in SMALL


@attribute_function
def integer_window(window: Window) -> Window:
    """The window with a border of the integer 0, if it has none or one of 0.0."""
    refuse_unless(not window.has_border or float(window.fill.value) == 0.0, "the border is not 0")
    return replace(window, fill=Scalar.of(0, DType.I64))


@rule(reassociates=True)
def integer_conv(
    x: Varying, a: Scalar, w: Known, c: Known, ones: Shape, s: Shape, t: Shape, window: Window,
    groups: Groups,
) -> Law:  # fmt: skip
    """conv(f32(x) * a, f32(w) * c) = f32(conv(x, w)) * (a * c) on integers, when c has one factor
    per output channel or one in all, and the border is 0"""
    float_, wide = DType.F32, DType.I64
    before = conv(
        binary("mul", cast(x, float_), broadcast(reshape(a, ones), s)),
        binary("mul", cast(w, float_), broadcast(c, t)),
        window,
        groups,
    )
    sums = conv(cast(x, wide), cast(w, wide), integer_window(window), groups)
    scale = binary("mul", broadcast(reshape(a, ones), Shape(c.type.shape)), c)
    return rewrites(
        before,
        binary("mul", cast(sums, float_), broadcast(scale, Shape(before.type.shape))),
        sums_are_exact(x.type, w.type),
        is_per_channel(c.type),
    )


@rule(reassociates=True)
def integer_matmul(
    x: Varying, a: Scalar, w: Known, c: Known, ones: Shape, s: Shape, t: Shape
) -> Law:
    """matmul(f32(x) * a, f32(w) * c) = f32(matmul(x, w)) * (a * c) on integers, when c has one
    factor per column or one in all"""
    float_, wide = DType.F32, DType.I64
    before = matmul(
        binary("mul", cast(x, float_), broadcast(reshape(a, ones), s)),
        binary("mul", cast(w, float_), broadcast(c, t)),
    )
    sums = matmul(cast(x, wide), cast(w, wide))
    scale = binary("mul", broadcast(reshape(a, ones), Shape(c.type.shape)), c)
    return rewrites(
        before,
        binary("mul", cast(sums, float_), broadcast(scale, Shape(before.type.shape))),
        sums_are_exact(x.type, w.type),
        is_per_channel(c.type),
    )


@rule
def transpose_into_dequantised(w: Known, c: Known, f: DType, p: Perm, s: Shape) -> Law:
    """transpose(f(w) * broadcast(c), p) = f(transpose(w, p)) * broadcast(transpose(c, p)) for
    constants, where f is a cast from integers of at most 16 bits"""
    return rewrites(
        transpose(binary("mul", cast(w, f), broadcast(c, s)), p),
        binary("mul", cast(transpose(w, p), f), broadcast(transpose(c, p), s.permuted(p))),
        is_small(w.type),
    )
