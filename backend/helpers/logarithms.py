"""f32 log and pow as straight-line LLVM code, so that loops over them vectorise.

Largest errors in units in the last place: log 1, pow 1; operands and results may be subnormal.
Special values are those of C's functions. pow computes in f64: exp2(b · log2|a|).
"""

from __future__ import annotations

from llvmlite import ir

from satura.backend.helpers.arithmetic import (
    F32,
    F64,
    INT32,
    INT64,
    f32,
    intrinsic,
    muladd,
    polynomial,
)

# (log(1 + f) - f + f² / 2) / f³ for sqrt(1/2) <= 1 + f < sqrt(2)
_LOG = (
    0.33333313465118, -0.25000008940696, 0.2000211924314499, -0.1666799634695053, 0.142195522785,
    -0.12405589222908, 0.11888162791729, -0.1167565137147903, 0.0674663856625557,
)  # fmt: skip
_LN2_HIGH, _LN2_LOW = 0.693359375, -0.000212194442  # the high part has few bits: n·high is exact
_SUBNORMAL = 2.0**-126
_ROOT_HALF = 0x3F3504F3  # bits of sqrt(1/2)
# log2((1 + s) / (1 - s)) / s in s²
_LOG2 = (
    2.88539008179008, 0.9617966733500634, 0.5770835832688342, 0.4116728269304178,
    0.34072800763527544,
)  # fmt: skip
_ROOT_HALF_F64 = 0x3FE6A09E667F3BCD
# 2^r for |r| <= 1/2
_EXP2 = (
    1.0000000005541683, 0.6931472057372616, 0.24022646890619995, 0.05550328776975032,
    0.00961848895864052, 0.0013399931216031588, 0.0001534581159257539,
)  # fmt: skip
_ROUNDER = 1.5 * 2.0**52  # what is added to this is rounded, and stands in the low bits
_LIMIT = 400.0  # 2 to this power is inf in f32, and its inverse 0
_LARGEST = 3.4028234663852886e38


def log(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """n · ln 2 + log(1 + f) with x = 2^n · (1 + f)."""
    is_small = builder.fcmp_ordered("<", x, f32(_SUBNORMAL))
    scaled = builder.select(is_small, builder.fmul(x, f32(2.0**24)), x)
    offset = builder.sub(builder.bitcast(scaled, INT32), INT32(_ROOT_HALF))
    exponent = builder.ashr(offset, INT32(23))
    fraction = builder.add(builder.and_(offset, INT32(0x7FFFFF)), INT32(_ROOT_HALF))
    f = builder.fsub(builder.bitcast(fraction, F32), f32(1.0))
    exponent = builder.sub(exponent, builder.select(is_small, INT32(24), INT32(0)))
    n = builder.sitofp(exponent, F32)
    square = builder.fmul(f, f)
    tail = builder.fmul(builder.fmul(square, f), polynomial(builder, f, _LOG))
    tail = muladd(builder, n, f32(_LN2_LOW), tail)
    tail = muladd(builder, square, f32(-0.5), tail)
    result = muladd(builder, n, f32(_LN2_HIGH), builder.fadd(f, tail))
    return _where_positive(builder, x, result)


def _where_positive(builder: ir.IRBuilder, x: ir.Value, result: ir.Value) -> ir.Value:
    """The result where x is positive and finite; else the logarithm of ±0, inf, NaN or below."""
    infinity = ir.Constant(x.type, float("inf"))
    zero = ir.Constant(x.type, 0.0)
    is_zero = builder.fcmp_ordered("==", x, zero)
    other = builder.select(
        is_zero, ir.Constant(x.type, -float("inf")), ir.Constant(x.type, float("nan"))
    )
    other = builder.select(builder.fcmp_ordered("==", x, infinity), x, other)
    is_plain = builder.and_(
        builder.fcmp_ordered(">", x, zero), builder.fcmp_ordered("<", x, infinity)
    )
    return builder.select(is_plain, result, other)


def power(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """As C's pow: of negative numbers for whole exponents only, 1 for exponent 0 or base 1."""
    size = builder.fpext(intrinsic(builder, "fabs", a), F64)
    logarithm = _where_positive(builder, size, _log2(builder, size))
    finite = _clamp(builder, b, f32(_LARGEST))  # 0 · inf would be NaN where |a| is 1
    exponent = builder.fmul(builder.fpext(finite, F64), logarithm)
    result = _exp2(builder, _clamp(builder, exponent, ir.Constant(F64, _LIMIT)))
    half = builder.fmul(b, f32(0.5))
    is_whole = builder.fcmp_ordered("==", intrinsic(builder, "rint", b), b)
    is_even = builder.fcmp_ordered("==", intrinsic(builder, "rint", half), half)
    is_odd = builder.and_(is_whole, builder.not_(is_even))
    is_negative = builder.icmp_signed("<", builder.bitcast(a, INT32), INT32(0))
    result = builder.select(builder.and_(is_odd, is_negative), builder.fneg(result), result)
    below = builder.fcmp_ordered("<", a, f32(0.0))
    above_minus_infinity = builder.fcmp_ordered(">", a, f32(-float("inf")))
    is_wrong = builder.and_(builder.and_(below, above_minus_infinity), builder.not_(is_whole))
    is_wrong = builder.or_(is_wrong, builder.fcmp_unordered("uno", a, b))
    result = builder.select(is_wrong, f32(float("nan")), result)
    is_one = builder.or_(
        builder.fcmp_ordered("==", b, f32(0.0)), builder.fcmp_ordered("==", a, f32(1.0))
    )
    return builder.select(is_one, f32(1.0), result)


def _clamp(builder: ir.IRBuilder, x: ir.Value, limit: ir.Value) -> ir.Value:
    """x between -limit and limit; NaN stays."""
    x = builder.select(builder.fcmp_ordered(">", x, limit), limit, x)
    lowest = builder.fneg(limit)
    return builder.select(builder.fcmp_ordered("<", x, lowest), lowest, x)


def _log2(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Of a positive normal f64, to 2^-37: n + log2((1 + s) / (1 - s)) with x = 2^n · m."""
    offset = builder.sub(builder.bitcast(x, INT64), INT64(_ROOT_HALF_F64 - (1023 << 52)))
    biased = builder.trunc(builder.lshr(offset, INT64(52)), INT32)
    n = builder.sitofp(builder.sub(biased, INT32(1023)), F64)
    fraction = builder.add(builder.and_(offset, INT64((1 << 52) - 1)), INT64(_ROOT_HALF_F64))
    m = builder.bitcast(fraction, F64)
    one = ir.Constant(F64, 1.0)
    s = builder.fdiv(builder.fsub(m, one), builder.fadd(m, one))
    return muladd(builder, s, polynomial(builder, builder.fmul(s, s), _LOG2), n)


def _exp2(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """2^x, rounded to f32 once, for x within ±_LIMIT."""
    shifted = builder.fadd(x, ir.Constant(F64, _ROUNDER))
    n = builder.fsub(shifted, ir.Constant(F64, _ROUNDER))
    series = polynomial(builder, builder.fsub(x, n), _EXP2)
    scale = builder.shl(builder.add(builder.bitcast(shifted, INT64), INT64(1023)), INT64(52))
    return builder.fptrunc(builder.fmul(series, builder.bitcast(scale, F64)), F32)
