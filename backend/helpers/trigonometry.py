"""f32 sin, cos and tan as straight-line LLVM code, so that loops over them vectorise.

Largest errors in units in the last place, over all finite numbers: sin 3, cos 3, tan 5. With
|x| = n · π/2 + r, |r| <= π/4, n mod 4 chooses among the polynomials of r and their signs. Up to
4096, n · π/2 is subtracted in parts with few bits, so that products are exact; beyond, x is
multiplied by the 96 bits of 2/π that matter (Payne and Hanek).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from llvmlite import ir

from satura.backend.helpers.arithmetic import (
    F32,
    INT32,
    INT64,
    ROUNDER,
    call,
    f32,
    intrinsic,
    muladd,
    polynomial,
)

# (sin(r) / r - 1) / r² and (cos(r) - 1 + r² / 2) / r⁴ in r², for |r| <= π/4
_SIN = (-0.1666666716337204, 0.008333329111337662, -0.0001983933470910415, 2.71830413112184e-06)
_COS = (0.0416666679084301, -0.0013888883404433727, 2.4799459424684756e-05, -2.72056837502532e-07)
_HALF_PI = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
_HALF_PI_HIGH, _HALF_PI_LOW = 1.57079637050628662, -4.37113900018624e-08
_LARGE = 4096.0
_LARGE_EXPONENT = 127 + 12  # of _LARGE, biased
# 2/π after 13 zero bits: what matters of it for an exponent begins that many bits above _LARGE's.
_TWO_OVER_PI = (
    0x000517CC, 0x1B727220, 0xA94FE13A, 0xBE8FA9A6, 0xEE06DB14, 0xACC9E21C, 0x820FF28B,
)  # fmt: skip


class _Turned(NamedTuple):
    """|x| as quarter turns (modulo 4 is what counts) and a rest."""

    quarters: ir.Value
    rest: ir.Value


def sin(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """The sine of the rest, or its cosine after an odd number of quarter turns."""
    size, turned = _quarter_turns(builder, x)
    sine, cosine = _sine_and_cosine(builder, turned.rest)
    result = builder.select(_bit(builder, turned.quarters, 1), cosine, sine)
    result = _negate_where(builder, result, builder.shl(turned.quarters, INT32(30)))
    result = _negate_where(builder, result, builder.bitcast(x, INT32))
    return _where_finite(builder, size, result)


def cos(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """As `sin`, a quarter turn ahead."""
    size, turned = _quarter_turns(builder, x)
    sine, cosine = _sine_and_cosine(builder, turned.rest)
    result = builder.select(_bit(builder, turned.quarters, 1), sine, cosine)
    ahead = builder.add(turned.quarters, INT32(1))
    return _where_finite(
        builder, size, _negate_where(builder, result, builder.shl(ahead, INT32(30)))
    )


def tan(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """sin / cos, or -cos / sin after an odd number of quarter turns."""
    size, turned = _quarter_turns(builder, x)
    sine, cosine = _sine_and_cosine(builder, turned.rest)
    odd = _bit(builder, turned.quarters, 1)
    above = builder.select(odd, builder.fneg(cosine), sine)
    result = builder.fdiv(above, builder.select(odd, sine, cosine))
    result = _negate_where(builder, result, builder.bitcast(x, INT32))
    return _where_finite(builder, size, result)


def _quarter_turns(builder: ir.IRBuilder, x: ir.Value) -> tuple[ir.Value, _Turned]:
    """|x|, and what it is in quarter turns."""
    size = intrinsic(builder, "fabs", x)
    is_large = builder.fcmp_ordered(">=", size, f32(_LARGE))
    near = _near(builder, builder.select(is_large, f32(0.0), size))
    far = _far(builder, size)
    chosen = (builder.select(is_large, b, a) for a, b in zip(near, far, strict=True))
    return size, _Turned(*chosen)


def _near(builder: ir.IRBuilder, size: ir.Value) -> _Turned:
    """Quarter turns for |x| < `_LARGE`; NaN stays NaN."""
    shifted = muladd(builder, size, f32(0.636619772), f32(ROUNDER))
    n = builder.fsub(shifted, f32(ROUNDER))
    rest = size
    for part in _HALF_PI:
        rest = muladd(builder, n, f32(-part), rest)
    return _Turned(builder.bitcast(shifted, INT32), rest)


def _far(builder: ir.IRBuilder, size: ir.Value) -> _Turned:
    """Of finite numbers from `_LARGE` on."""
    bits = builder.bitcast(size, INT32)
    skipped = builder.sub(builder.lshr(bits, INT32(23)), INT32(_LARGE_EXPONENT))
    words: list[ir.Value] = [INT32(word) for word in _TWO_OVER_PI]
    for bit in (64, 32):
        later, further = words[bit // 32 :], _bit(builder, skipped, bit)
        words = [builder.select(further, b, a) for a, b in zip(words, later, strict=False)]
    window = [call(builder, "llvm.fshl.i32", a, b, skipped) for a, b in pairwise(words)]
    mantissa = builder.or_(builder.and_(bits, INT32(0x7FFFFF)), INT32(0x800000))
    wide = builder.zext(mantissa, INT64)
    high = builder.shl(builder.zext(builder.mul(mantissa, window[0]), INT64), INT64(32))
    middle = builder.mul(wide, builder.zext(window[1], INT64))
    low = builder.lshr(builder.mul(wide, builder.zext(window[2], INT64)), INT64(32))
    product = builder.add(builder.add(high, middle), low)  # quarter turns · 2^62, modulo 4
    upper = builder.trunc(builder.lshr(product, INT64(32)), INT32)
    lower = builder.trunc(product, INT32)
    quarters = builder.lshr(builder.add(upper, INT32(1 << 29)), INT32(30))
    upper = builder.sub(upper, builder.shl(quarters, INT32(30)))
    upper = builder.add(upper, builder.lshr(lower, INT32(31)))  # as the lower is signed now
    whole = builder.sitofp(upper, F32)
    turns = muladd(builder, builder.sitofp(lower, F32), f32(2.0**-32), whole)
    rest = builder.fmul(turns, f32(_HALF_PI_LOW * 2.0**-30))
    return _Turned(quarters, muladd(builder, turns, f32(_HALF_PI_HIGH * 2.0**-30), rest))


def _sine_and_cosine(builder: ir.IRBuilder, r: ir.Value) -> tuple[ir.Value, ir.Value]:
    square = builder.fmul(r, r)
    tail = builder.fmul(square, polynomial(builder, square, _SIN))
    sine = muladd(builder, tail, r, r)
    tail = builder.fmul(builder.fmul(square, square), polynomial(builder, square, _COS))
    cosine = builder.fadd(muladd(builder, square, f32(-0.5), f32(1.0)), tail)
    return sine, cosine


def _bit(builder: ir.IRBuilder, number: ir.Value, bit: int) -> ir.Value:
    return builder.icmp_unsigned("!=", builder.and_(number, INT32(bit)), INT32(0))


def _negate_where(builder: ir.IRBuilder, value: ir.Value, sign: ir.Value) -> ir.Value:
    """`value`, its sign changed where the highest bit of `sign` is set."""
    highest = builder.and_(sign, INT32(1 << 31))
    return builder.bitcast(builder.xor(builder.bitcast(value, INT32), highest), F32)


def _where_finite(builder: ir.IRBuilder, size: ir.Value, result: ir.Value) -> ir.Value:
    is_finite = builder.fcmp_ordered("<", size, f32(float("inf")))
    return builder.select(is_finite, result, f32(float("nan")))
