"""f32 exp, tanh, erf and sigmoid as straight-line LLVM code, so that loops over them vectorise.

Polynomials are near-minimax fits, lowest coefficient first. Largest errors in units in the last
place: exp 2, sigmoid 4, tanh 4, erf 4; results may be subnormal. NaN stays NaN, and the limits at
±inf are exact.
"""

from __future__ import annotations

from llvmlite import ir

from satura.backend.helpers.arithmetic import (
    F32,
    INT32,
    call,
    f32,
    muladd,
    polynomial,
)

# (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2
_EXP = (0.500000001, 0.166666668, 0.0416664649, 0.00833328603, 0.00139336522, 0.000199075697)
# (tanh(x) / x - 1) / x² in x², for |x| <= 0.6
_TANH = (-0.333333305, 0.133329325, -0.0538763155, 0.0211214457, -0.00628365358)
# erf(x) / x in x², for |x| <= 1
_ERF = (
    1.12837917, -0.376126271, 0.112836002, -0.0268544444, 0.00518953498, -0.000802083811,
    7.88910897e-05,
)  # fmt: skip
# log(1 - erf(x)) for 0.9 <= x <= 4.1; beyond, erf(x) is 1 in f32
_LOG_ERFC = (
    0.0001705558, -1.12949518, -0.633386605, -0.108236668, 0.0250915305, -0.00416054064,
    0.000432306, -2.09098305e-05,
)  # fmt: skip
# What is added to this is rounded, and stands in the low bits, with 254 more.
_ROUNDER = 1.5 * 2.0**23 + 254
_LN2_HIGH, _LN2_LOW = 0.693359375, -0.000212194442  # the high part has few bits: n·high is exact


def exp(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """2^n · e^r with x = n·ln 2 + r; the scale is applied in two steps, so that it may overflow."""
    # Beyond these the result is 0 or inf. NaN passes both, and makes r NaN.
    near = builder.select(builder.fcmp_ordered("<", x, f32(-104.0)), f32(-104.0), x)
    near = builder.select(builder.fcmp_ordered(">", near, f32(89.0)), f32(89.0), near)
    shifted = muladd(builder, near, f32(1.44269504), f32(_ROUNDER))
    n = builder.fsub(shifted, f32(_ROUNDER))
    r = muladd(builder, n, f32(-_LN2_HIGH), near)
    r = muladd(builder, n, f32(-_LN2_LOW), r)
    series = polynomial(builder, r, (1.0, 1.0, *_EXP))
    exponent = builder.bitcast(shifted, INT32)  # with twice the bias of f32's exponents
    half = builder.ashr(exponent, INT32(1))
    other = builder.sub(exponent, half)
    scaled = builder.fmul(series, builder.bitcast(builder.shl(half, INT32(23)), F32))
    return builder.fmul(scaled, builder.bitcast(builder.shl(other, INT32(23)), F32))


def sigmoid(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x))."""
    below = builder.fadd(f32(1.0), exp(builder, builder.fneg(x)))
    return builder.fdiv(f32(1.0), below)


def tanh(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """A polynomial near 0, else 1 - 2 / (exp(2|x|) + 1) with the sign of x."""
    size = call(builder, "llvm.fabs.f32", x)
    square = builder.fmul(x, x)
    tail = builder.fmul(square, polynomial(builder, square, _TANH))
    small = muladd(builder, tail, x, x)
    grown = exp(builder, builder.fadd(size, size))
    below = builder.fadd(grown, f32(1.0))
    large = builder.fsub(f32(1.0), builder.fdiv(f32(2.0), below))
    result = builder.select(builder.fcmp_ordered("<", size, f32(0.6)), small, large)
    return call(builder, "llvm.copysign.f32", result, x)


def erf(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """A polynomial up to 1, else 1 - exp(log(erfc|x|)) with the sign of x."""
    size = call(builder, "llvm.fabs.f32", x)
    square = builder.fmul(x, x)
    small = builder.fmul(x, polynomial(builder, square, _ERF))
    near = builder.select(builder.fcmp_ordered(">", size, f32(4.1)), f32(4.1), size)
    complement = exp(builder, polynomial(builder, near, _LOG_ERFC))
    large = builder.fsub(f32(1.0), complement)
    large = call(builder, "llvm.copysign.f32", large, x)
    return builder.select(builder.fcmp_ordered("<=", size, f32(1.0)), small, large)
