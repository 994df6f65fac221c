"""f32 exp, tanh, erf and sigmoid as straight-line LLVM code, so that loops over them vectorise.

Polynomials are near-minimax fits, lowest coefficient first. Largest errors in units in the last
place: exp 2, sigmoid 4, tanh 5, erf 4; results may be subnormal. NaN stays NaN, and the limits at
±inf are exact.
"""

from __future__ import annotations

from llvmlite import ir

from satura.backend.helpers.arithmetic import (
    F32,
    INT32,
    ROUNDER,
    call,
    f32,
    hold,
    intrinsic,
    muladd,
    polynomial,
)

# (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2
_EXP = (0.499999934, 0.166665204, 0.0416683908, 0.00836874473, 0.00138145395)
# tanh(x) / x as a quotient of polynomials in x², for |x| <= _TANH_END. At the end the product with
# x is just above 1, whether or not the CPU has an FMA; tanh(x) rounds to 1 from 9.02 on.
_TANH_END = 9.0
_TANH = (1.0, 0.133885294, 0.00350447348, 2.07557496e-05, 1.35639677e-08)
_TANH_UNDER = (1.0, 0.467218518, 0.0259108394, 0.000330016133, 7.86056944e-07)
# erf(x) / x in 2·x² / _ERF_END² - 1, for |x| <= _ERF_END. At the end the product with x is just
# above 1, whether or not the CPU has an FMA; erf(x) rounds to 1 from 3.92 on.
_ERF_END = 3.83
_ERF_SCALE = 0.1363428682088852
_ERF = (
    0.369199038, -0.184231281, 0.136823073, -0.11071863, 0.0908258781, -0.0728507712,
    0.0559213385, -0.0406439491, 0.0276818387, -0.0173077006, 0.0102433907, -0.00634169718,
    0.00339441188, -0.000954450516, 0.000389279739, -0.000592782686, 0.000259654742,
)  # fmt: skip
_ROUNDER_BITS = 0x4B400000  # of `ROUNDER` as a number
_BIAS = 127  # of f32's exponents
_LEAST_BITS = 25  # a subnormal number of fewer bits is 0
_MOST_EXPONENT = 254  # of a finite number
# Below, exp is 0: there n is so small that the bits of the scale are those of 0. A product that
# vanishes otherwise takes a CPU as long as fifty others, and masks make many.
_LEAST, _LEAST_NORMAL = -105.36, -88.2
_LN2_HIGH, _LN2_LOW = 0.693359375, -0.000212194442  # the high part has few bits: n·high is exact


def exp(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """2^n · e^r with x = n·ln 2 + r; the scale is applied in two steps, so that it may overflow.

    The second one is as for negative x, up to where the first has all bits.
    """
    most = hold(builder, f32(89.0))  # beyond, the result is inf
    near = builder.select(builder.fcmp_ordered(">", x, most), most, x)
    series, exponent = _parts_of_exp(builder, near, 2 * _BIAS)
    first = builder.sub(exponent, INT32(_ROUNDER_BITS + _BIAS - _LEAST_BITS))
    first = intrinsic(builder, "smin", first, INT32(_MOST_EXPONENT))
    second = builder.sub(exponent, first)
    scaled = builder.fmul(series, builder.bitcast(builder.shl(first, INT32(23)), F32))
    return builder.fmul(scaled, builder.bitcast(builder.shl(second, INT32(23)), F32))


def exp_up_to_0(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """exp(x) for x that is not above 0, or NaN: of the two steps of the scale one is fixed."""
    series, exponent = _parts_of_exp(builder, x, _BIAS + _LEAST_BITS)
    large = builder.bitcast(builder.shl(exponent, INT32(23)), F32)
    return builder.fmul(series, builder.fmul(large, hold(builder, f32(0.5**_LEAST_BITS))))


def exp_or_0(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """As `exp_up_to_0`, but below 2^-126.5 it is 0.

    Some CPUs take as long for a product with a subnormal number as for fifty others.
    """
    series, exponent = _parts_of_exp(builder, x, _BIAS, _LEAST_NORMAL)
    return builder.fmul(series, builder.bitcast(builder.shl(exponent, INT32(23)), F32))


def _parts_of_exp(
    builder: ir.IRBuilder, x: ir.Value, bias: int, lowest: float = _LEAST
) -> tuple[ir.Value, ir.Value]:
    """e^r and, in its low bits, n + `bias`, with x = n·ln 2 + r, or with `lowest` for less."""
    least = hold(builder, f32(lowest))  # NaN stays, and makes r NaN
    near = builder.select(builder.fcmp_ordered("<", x, least), least, x)
    rounder = hold(builder, f32(ROUNDER + bias))
    shifted = muladd(builder, near, hold(builder, f32(1.44269504)), rounder)
    n = builder.fsub(shifted, rounder)
    r = muladd(builder, n, hold(builder, f32(-_LN2_HIGH)), near)
    r = muladd(builder, n, hold(builder, f32(-_LN2_LOW)), r)
    a, b, c, d, e = (hold(builder, f32(each)) for each in _EXP)
    square = builder.fmul(r, r)
    rest = muladd(builder, e, square, muladd(builder, d, r, c))
    rest = muladd(builder, rest, square, muladd(builder, b, r, a))
    series = muladd(builder, rest, square, builder.fadd(r, hold(builder, f32(1.0))))
    return series, builder.bitcast(shifted, INT32)


def sigmoid(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """1 / (1 + t) with t = exp(-|x|), or t / (1 + t) below 0."""
    decay = exp_up_to_0(builder, builder.fneg(call(builder, "llvm.fabs.f32", x)))
    above = builder.select(builder.fcmp_ordered("<", x, f32(0.0)), decay, f32(1.0))
    return builder.fdiv(above, builder.fadd(decay, f32(1.0)))


def tanh(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """x times a quotient: x and the result are kept within bounds that NaN passes."""
    near = _within(builder, x, _TANH_END)
    square = builder.fmul(near, near)
    above = builder.fmul(near, polynomial(builder, square, _TANH))
    return _within(builder, builder.fdiv(above, polynomial(builder, square, _TANH_UNDER)), 1.0)


def erf(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """One polynomial: x and the result are kept within bounds that NaN passes."""
    near = _within(builder, x, _ERF_END)
    place = muladd(builder, builder.fmul(near, near), f32(_ERF_SCALE), f32(-1.0))
    return _within(builder, builder.fmul(near, polynomial(builder, place, _ERF)), 1.0)


def _within(builder: ir.IRBuilder, x: ir.Value, bound: float) -> ir.Value:
    """x between -bound and bound; NaN stays."""
    above = builder.select(builder.fcmp_ordered("<", x, f32(-bound)), f32(-bound), x)
    return builder.select(builder.fcmp_ordered(">", above, f32(bound)), f32(bound), above)
