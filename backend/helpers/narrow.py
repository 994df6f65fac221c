"""Elements of less than 8 bits and floats of 8: a code in a byte, decoded and encoded by casts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.memory import to_odd
from satura.backend.helpers.site import F32, F64, INT8, INT32, KIND, Site, helper
from satura.rewrite.types.tensor_type import NARROW, DType


@dataclass(frozen=True)
class Format:
    """How a float lies in its code: sign, exponent, fraction.

    `infinity` is its code without the sign; `nan` is a code of NaN, after which all are NaN.
    Where it is `unsigned_zero`, the code of -0.0 is that of NaN.
    """

    exponent: int
    fraction: int
    bias: int
    infinity: int | None = None
    nan: int | None = None
    unsigned_zero: bool = False

    @property
    def magnitudes(self) -> int:
        """The bits without the sign."""
        return (1 << self.exponent + self.fraction) - 1

    @property
    def most(self) -> int:
        """The code of the largest number."""
        if self.infinity is not None:
            return self.infinity - 1
        return self.magnitudes if self.nan is None else self.nan - 1


FORMATS = {
    DType.F8E4M3: Format(4, 3, 7, nan=0x7F),
    DType.F8E4M3Z: Format(4, 3, 8, unsigned_zero=True),
    DType.F8E5M2: Format(5, 2, 15, infinity=0x7C, nan=0x7D),
    DType.F8E5M2Z: Format(5, 2, 16, unsigned_zero=True),
    DType.F4E2M1: Format(2, 1, 1),
}


def narrow() -> dict[str, Helper]:
    """`decode_…` of a code, and `encode_…` of a value in the type that holds those of the code."""
    found: dict[str, Helper] = {}
    for dtype in NARROW:
        decode, encode = (_decode, _encode) if dtype.is_float else (_sign_extend, _low_bits)
        held, code = KIND[dtype.compute], KIND[dtype]
        found[f"decode_{dtype.value}"] = helper(1, partial(decode, dtype), lambda *_, to=held: to)
        found[f"encode_{dtype.value}"] = helper(1, partial(encode, dtype), lambda *_, to=code: to)
    return found


def _bits(dtype: DType) -> int:
    least, most = dtype.bounds
    return (most - least).bit_length()


def _sign_extend(dtype: DType, site: Site, code: ir.Value) -> ir.Value:
    unused = INT8(8 - _bits(dtype))
    moved = site.builder.shl(code, unused)
    back = site.builder.ashr if dtype.is_signed else site.builder.lshr
    return back(moved, unused)


def _low_bits(dtype: DType, site: Site, a: ir.Value) -> ir.Value:
    return site.builder.and_(a, INT8((1 << _bits(dtype)) - 1))


def _decode(dtype: DType, site: Site, code: ir.Value) -> ir.Value:
    """The bits as those of an f32 whose exponent is moved; then f32's own rules do the rest."""
    build, form = site.builder, FORMATS[dtype]
    wide = build.zext(code, INT32)
    magnitude = build.and_(wide, INT32(form.magnitudes))
    moved = build.bitcast(build.shl(magnitude, INT32(23 - form.fraction)), F32)
    value = build.fmul(moved, F32(2.0 ** (127 - form.bias)))
    if form.infinity is not None:
        is_infinite = build.icmp_unsigned("==", magnitude, INT32(form.infinity))
        value = build.select(is_infinite, F32(float("inf")), value)
    if form.nan is not None:
        is_nan = build.icmp_unsigned(">=", magnitude, INT32(form.nan))
        value = build.select(is_nan, F32(float("nan")), value)
    sign = build.and_(wide, INT32(form.magnitudes + 1))
    if form.unsigned_zero:
        is_nan = build.icmp_unsigned("==", wide, INT32(form.magnitudes + 1))
        value = build.select(is_nan, F32(float("nan")), value)
    left = build.shl(sign, INT32(31 - form.exponent - form.fraction))
    return build.bitcast(build.or_(build.bitcast(value, INT32), left), F32)


def _encode(dtype: DType, site: Site, a: ir.Value) -> ir.Value:
    """The code of the nearest value, of two the even one; beyond the largest see `convert`."""
    build, form = site.builder, FORMATS[dtype]
    a = to_odd(build, a) if a.type == F64 else a
    bits = build.bitcast(a, INT32)
    size = build.bitcast(build.and_(bits, INT32(0x7FFFFFFF)), F32)
    magnitude = _nearest(build, form, size)
    beyond = build.icmp_unsigned(">", magnitude, INT32(form.most))
    is_nan = build.fcmp_unordered("uno", a, a)
    negative = build.icmp_signed("<", bits, INT32(0))
    sign = build.select(negative, INT32(form.magnitudes + 1), INT32(0))
    if form.unsigned_zero:
        is_zero = build.icmp_unsigned("==", magnitude, INT32(0))
        code = build.or_(magnitude, build.select(is_zero, INT32(0), sign))
        code = build.select(build.or_(beyond, is_nan), INT32(form.magnitudes + 1), code)
    elif form.nan is None:
        code = build.or_(build.select(beyond, INT32(form.most), magnitude), sign)
        code = build.select(is_nan, INT32(0), code)
    else:
        usual = INT32(form.nan if form.infinity is None else form.nan + 1)
        outside = usual if form.infinity is None else INT32(form.infinity)
        code = build.select(is_nan, usual, build.select(beyond, outside, magnitude))
        code = build.or_(code, sign)
    return build.trunc(code, INT8)


def _nearest(build: ir.IRBuilder, form: Format, size: ir.Value) -> ir.Value:
    """The code of the value nearest to `size` as if the exponent had no end.

    Below the least normal number, adding a large number rounds to its last bit.
    """
    least = 2.0 ** (1 - form.bias)
    anchor = F32(least * 2.0 ** (23 - form.fraction))
    fixed = build.bitcast(build.fadd(size, anchor), INT32)
    small = build.sub(fixed, build.bitcast(anchor, INT32))
    bits, cut = build.bitcast(size, INT32), 23 - form.fraction
    odd = build.and_(build.lshr(bits, INT32(cut)), INT32(1))
    rounded = build.add(bits, build.add(odd, INT32((1 << cut - 1) - 1)))
    large = build.sub(build.lshr(rounded, INT32(cut)), INT32(127 - form.bias << form.fraction))
    return build.select(build.fcmp_ordered("<", size, F32(least)), small, large)
