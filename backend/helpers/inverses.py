"""f32 asin, acos, atan and atanh as straight-line LLVM code, so that loops over them vectorise.

Polynomials are near-minimax fits, lowest coefficient first. Largest errors in units in the last
place: asin 3, acos 2, atan 2, atanh 2. Special values are those of C's functions.
"""

from __future__ import annotations

from math import pi

from llvmlite import ir

from satura.backend.helpers.arithmetic import f32, intrinsic, muladd, polynomial
from satura.backend.helpers.logarithms import log

# (f(x) / x - 1) / x² in x², for |x| <= 1 / 2 and atan's |x| <= 1
_ASIN = (0.166667536, 0.0749523267, 0.045478344, 0.0241409875, 0.0422305502)
_ATANH = (0.333332986, 0.200025946, 0.142213598, 0.118350916, 0.0509404503, 0.177262798)
_ATAN = (
    -0.333331674, 0.199941367, -0.142142087, 0.106789395, -0.0758057609, 0.0435535163,
    -0.0165811684, 0.00297458656,
)  # fmt: skip


def asin(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """π/2 - 2·asin(sqrt((1 - x) / 2)) where x is above 1/2."""
    is_large, part = _parts_of_asin(builder, x)
    turned = muladd(builder, part, f32(-2.0), f32(pi / 2))
    return _with_sign(builder, builder.select(is_large, turned, part), x)


def acos(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """2·asin(sqrt((1 - x) / 2)) where x is above 1/2, π less that of -x where it is below -1/2."""
    is_large, part = _parts_of_asin(builder, x)
    twice = builder.fmul(part, f32(2.0))
    is_below = builder.fcmp_ordered("<", x, f32(0.0))
    large = builder.select(is_below, builder.fsub(f32(pi), twice), twice)
    small = builder.fsub(f32(pi / 2), _with_sign(builder, part, x))
    return builder.select(is_large, large, small)


def atan(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """π/2 - atan(1 / x) where x is above 1."""
    size = intrinsic(builder, "fabs", x)
    is_large = builder.fcmp_ordered(">", size, f32(1.0))
    near = builder.select(is_large, builder.fdiv(f32(1.0), size), size)
    part = _odd(builder, near, builder.fmul(near, near), _ATAN)
    turned = builder.fsub(f32(pi / 2), part)
    return _with_sign(builder, builder.select(is_large, turned, part), x)


def atanh(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """log((1 + x) / (1 - x)) / 2 where x is above 1/2."""
    size, one = intrinsic(builder, "fabs", x), f32(1.0)
    small = _odd(builder, size, builder.fmul(size, size), _ATANH)
    quotient = builder.fdiv(builder.fadd(one, size), builder.fsub(one, size))
    large = builder.fmul(log(builder, quotient), f32(0.5))
    is_large = builder.fcmp_ordered(">", size, f32(0.5))
    return _with_sign(builder, builder.select(is_large, large, small), x)


def _parts_of_asin(builder: ir.IRBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether |x| is above 1/2, and asin(sqrt((1 - |x|) / 2)) there, else asin(|x|)."""
    size = intrinsic(builder, "fabs", x)
    is_large = builder.fcmp_ordered(">", size, f32(0.5))
    half = muladd(builder, size, f32(-0.5), f32(0.5))
    square = builder.select(is_large, half, builder.fmul(size, size))
    root = builder.select(is_large, intrinsic(builder, "sqrt", half), size)
    return is_large, _odd(builder, root, square, _ASIN)


def _odd(
    builder: ir.IRBuilder, x: ir.Value, square: ir.Value, coefficients: tuple[float, ...]
) -> ir.Value:
    """x + x³ times a polynomial in x²."""
    tail = builder.fmul(square, polynomial(builder, square, coefficients))
    return muladd(builder, tail, x, x)


def _with_sign(builder: ir.IRBuilder, size: ir.Value, x: ir.Value) -> ir.Value:
    return intrinsic(builder, "copysign", size, x)
