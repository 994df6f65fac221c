"""Elements in memory, and conversions between their types.

f16 and bf16 elements are f32 numbers between a read and a write; `round_…` takes them to the
nearest stored value.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir

from satura.backend.helpers import kinds
from satura.backend.helpers.kinds import Helper, Kind
from satura.backend.helpers.site import (
    F16,
    F32,
    F64,
    INT8,
    INT16,
    INT32,
    INT64,
    KIND,
    STORED,
    Site,
    helper,
)  # fmt: skip
from satura.rewrite.types.tensor_type import DType


def _alias_scopes(builder: ir.IRBuilder, names: tuple[str, ...]) -> ir.Value:
    """The scopes `names`, one of which every access of a kernel belongs to."""
    module = builder.module
    domain = module.add_metadata([ir.MetaDataString(module, "satura")])
    scopes = [module.add_metadata([ir.MetaDataString(module, name), domain]) for name in names]
    return module.add_metadata(scopes)


def _tag(builder: ir.IRBuilder, access: ir.Instruction, own: str) -> None:
    """Says that operands, result and scratch of a kernel never overlap: no run-time checks."""
    scopes = ("operand", "result", "scratch")
    others = tuple(name for name in scopes if name != own)
    access.set_metadata("alias.scope", _alias_scopes(builder, (own,)))
    access.set_metadata("noalias", _alias_scopes(builder, others))


def _element(dtype: DType, site: Site, base: ir.Value, at: ir.Value, in_bytes: bool) -> ir.Value:
    """A pointer to element `at` (or byte `at`) of an array at address `base`."""
    kind = STORED[dtype]
    step = INT8 if in_bytes else kind
    place = site.builder.gep(site.builder.inttoptr(base, step.as_pointer()), [at])
    return site.builder.bitcast(place, kind.as_pointer())


def _read(
    dtype: DType, scope: str, in_bytes: bool, site: Site, base: ir.Value, at: ir.Value
) -> ir.Value:
    builder = site.builder
    stored = builder.load(_element(dtype, site, base, at, in_bytes))
    stored.align = 1 if dtype is DType.BOOL else dtype.itemsize
    _tag(builder, stored, scope)
    if dtype is DType.BOOL:
        return builder.icmp_unsigned("!=", stored, INT8(0))
    if dtype is DType.F16:
        return builder.fpext(stored, F32)
    if dtype is DType.BF16:
        return builder.bitcast(builder.shl(builder.zext(stored, INT32), INT32(16)), F32)
    return stored


def _write(
    dtype: DType, scope: str, in_bytes: bool,
    site: Site, base: ir.Value, at: ir.Value, value: ir.Value,
) -> None:  # fmt: skip
    builder = site.builder
    if dtype is DType.BOOL:
        value = builder.zext(value, INT8)
    elif dtype is DType.F16:
        value = builder.fptrunc(value, F16)
    elif dtype is DType.BF16:
        value = builder.trunc(builder.lshr(builder.bitcast(value, INT32), INT32(16)), INT16)
    stored = builder.store(value, _element(dtype, site, base, at, in_bytes))
    stored.align = 1 if dtype is DType.BOOL else dtype.itemsize
    _tag(builder, stored, scope)


def memory() -> dict[str, Helper]:
    """read, write: operands and results; get, put: scratch. `…_at` counts in bytes.

    `stored` gets what a write has put into the result.
    """
    found: dict[str, Helper] = {}
    for dtype, kind in KIND.items():
        for ending, in_bytes in (("", False), ("_at", True)):
            for name, scope in (("read", "operand"), ("get", "scratch"), ("stored", "result")):
                found[f"{name}_{dtype.value}{ending}"] = helper(
                    2, partial(_read, dtype, scope, in_bytes), partial(_always, kind)
                )
            for name, scope in (("write", "result"), ("put", "scratch")):
                found[f"{name}_{dtype.value}{ending}"] = _writer(dtype, scope, in_bytes)
    return found


def _writer(dtype: DType, scope: str, in_bytes: bool) -> Helper:
    """A write converts its operand's kind to the dtype's, which it has already."""
    return helper(3, partial(_write, dtype, scope, in_bytes), lambda *_: kinds.void)


def _round_f16(site: Site, a: ir.Value) -> ir.Value:
    return site.builder.fpext(site.builder.fptrunc(a, F16), F32)


def _round_bf16(site: Site, a: ir.Value) -> ir.Value:
    """Ties go to the even one; a NaN stays one, even if its payload is cut off."""
    builder = site.builder
    bits = builder.bitcast(a, INT32)
    odd = builder.and_(builder.lshr(bits, INT32(16)), INT32(1))
    rounded = builder.add(bits, builder.add(odd, INT32(0x7FFF)))
    quiet = builder.or_(bits, INT32(0x400000))
    rounded = builder.select(builder.fcmp_unordered("uno", a, a), quiet, rounded)
    return builder.bitcast(builder.and_(rounded, INT32(0xFFFF0000)), F32)


def _cast(dtype: DType, site: Site, a: ir.Value) -> ir.Value:
    """To the nearest float; floats to integers saturate, NaN gives 0; integers wrap."""
    builder, kind = site.builder, site.kind
    to_bits = KIND[dtype].bitwidth
    if dtype is DType.BOOL:
        if site.is_float:
            return builder.fcmp_unordered("!=", a, ir.Constant(a.type, 0.0))
        return a if kind is kinds.boolean else builder.icmp_unsigned("!=", a, a.type(0))
    target = F64 if dtype is DType.F64 else F32 if dtype.is_float else ir.IntType(to_bits)
    if kind is kinds.boolean:
        return builder.uitofp(a, target) if dtype.is_float else builder.zext(a, target)
    if dtype.is_float:
        is_long = site.bits == 64 if site.is_float else site.bits >= 32 and dtype is DType.BF16
        if is_long and dtype in (DType.F16, DType.BF16):
            converted = to_odd(builder, _as_f64(site, a))
        elif site.is_float:
            converted = _resize_float(builder, a, target)
        else:
            converted = (builder.sitofp if site.is_signed else builder.uitofp)(a, target)
        if dtype is DType.F16:
            return _round_f16(site, converted)
        return _round_bf16(site, converted) if dtype is DType.BF16 else converted
    if site.is_float:
        return _saturated(builder, dtype, a)
    if to_bits <= site.bits:
        return builder.trunc(a, target) if to_bits < site.bits else a
    return builder.sext(a, target) if site.is_signed else builder.zext(a, target)


def _as_f64(site: Site, a: ir.Value) -> ir.Value:
    """A number as f64; the last 12 bits of an integer that has no room there are joined in one."""
    builder = site.builder
    if site.is_float:
        return a
    shift = builder.ashr if site.is_signed else builder.lshr
    if site.bits == 64:
        rest = builder.and_(a, INT64(2047))
        some = builder.select(builder.icmp_unsigned("!=", rest, INT64(0)), INT64(2048), INT64(0))
        joined = builder.and_(builder.or_(a, some), INT64(~2047))
        least = INT64(int(site.is_signed))  # minus the least of the high bits where there is room
        is_short = builder.icmp_unsigned("<=", builder.add(shift(a, INT64(53)), least), least)
        a = builder.select(is_short, a, joined)
    return (builder.sitofp if site.is_signed else builder.uitofp)(a, F64)


def to_odd(builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    """Of the two f32 around an f64 the one with an odd last digit, where neither is equal.

    To a shorter float it rounds as the f64 itself.
    """
    near = builder.fptrunc(a, F32)
    back, bits = builder.fpext(near, F64), builder.bitcast(near, INT32)
    sizes = (builder.shl(builder.bitcast(each, INT64), INT64(1)) for each in (back, a))
    is_beyond = builder.icmp_unsigned(">", *sizes)
    odd = builder.or_(builder.sub(bits, builder.zext(is_beyond, INT32)), INT32(1))
    is_between = builder.fcmp_ordered("!=", back, a)
    return builder.bitcast(builder.select(is_between, odd, bits), F32)


def _saturated(builder: ir.IRBuilder, dtype: DType, a: ir.Value) -> ir.Value:
    """The integer part of a float, or the bound that is nearest to it; 0 for NaN.

    LLVM's own saturation has no vector code.
    """
    least, most = dtype.bounds
    fits, bits = _largest_float(a.type, most), 8 * dtype.itemsize
    limited = _limit(builder, a, float(least), fits)
    if bits < 32:
        return builder.trunc(builder.fptosi(limited, INT32), ir.IntType(bits))
    convert = builder.fptosi if dtype.is_signed else builder.fptoui
    found = convert(limited, ir.IntType(bits))
    if fits == most:
        return found
    is_beyond = builder.fcmp_ordered(">", a, ir.Constant(a.type, fits))
    return builder.select(is_beyond, found.type(most), found)


def _largest_float(type_: ir.Type, most: int) -> float:
    """The largest float of a type that is not above an integer."""
    kind = np.float64 if type_ == F64 else np.float32
    near = kind(most)
    return float(near if int(near) <= most else np.nextafter(near, kind(0)))


def _limit(builder: ir.IRBuilder, a: ir.Value, least: float, most: float) -> ir.Value:
    """A float within bounds, of which the first is 0 or less; 0 for NaN."""
    low, high, zero = (ir.Constant(a.type, bound) for bound in (least, most, 0.0))
    if least == 0:  # which NaN is not above, either
        limited = builder.select(builder.fcmp_ordered(">", a, low), a, low)
        return builder.select(builder.fcmp_ordered(">", limited, high), high, limited)
    limited = builder.select(builder.fcmp_ordered("<", a, low), low, a)
    limited = builder.select(builder.fcmp_ordered(">", limited, high), high, limited)
    return builder.select(builder.fcmp_unordered("uno", a, a), zero, limited)


def _scalar(dtype: DType, site: Site, bits: ir.Value) -> ir.Value:
    """The element whose bit pattern stands in the low bits of an i64."""
    builder = site.builder
    low = builder.trunc(bits, ir.IntType(8 * dtype.itemsize)) if dtype.itemsize < 8 else bits
    if dtype is DType.BF16:
        return builder.bitcast(builder.shl(builder.zext(low, INT32), INT32(16)), F32)
    if dtype is DType.BOOL:
        return builder.icmp_unsigned("!=", low, INT8(0))
    value = builder.bitcast(low, STORED[dtype])
    return builder.fpext(value, F32) if dtype is DType.F16 else value


def _resize_float(builder: ir.IRBuilder, a: ir.Value, target: ir.Type) -> ir.Value:
    if a.type == target:
        return a
    return builder.fpext(a, target) if target == F64 else builder.fptrunc(a, target)


def conversions() -> dict[str, Helper]:
    """`cast_…` between all types, `scalar_…` from bits, `round_…` to what f16 and bf16 can hold."""
    found: dict[str, Helper] = {
        "round_f16": helper(1, _round_f16), "round_bf16": helper(1, _round_bf16),
    }  # fmt: skip
    for dtype, kind in KIND.items():
        result = partial(_always, kind)
        found[f"cast_{dtype.value}"] = helper(1, partial(_cast, dtype), result)
        found[f"scalar_{dtype.value}"] = helper(1, partial(_scalar, dtype), result)
    return found


def _always(kind: Kind, *_: Kind) -> Kind:
    return kind
