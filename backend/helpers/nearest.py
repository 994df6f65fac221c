"""The integer of 8 bits that is nearest to a number: as an integer, or as a float.

A float to which 1.5·2^23 is added has no room for a fraction: it is rounded, ties to the even one,
and its low bits are those of the integer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from llvmlite import ir

from satura.backend.helpers import kinds
from satura.backend.helpers.arithmetic import INT32, ROUNDER, f32
from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.site import INT8, KIND, Site, helper
from satura.rewrite.types.tensor_type import DType


def _rounded(dtype: DType, site: Site, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """x between bounds, rounded, plus the rounder; NaN gives 0 for i8 and the lower bound for u8,
    where this is 0 less the zero point."""
    builder = site.builder
    near = builder.select(builder.fcmp_ordered(">", x, low), x, low)
    near = builder.select(builder.fcmp_ordered(">", near, high), high, near)
    if dtype is DType.I8:
        near = builder.select(builder.fcmp_unordered("uno", x, x), f32(0.0), near)
    return builder.fadd(near, f32(ROUNDER))


def _nearest(dtype: DType, site: Site, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    rounded = _rounded(dtype, site, x, low, high)
    return site.builder.trunc(site.builder.bitcast(rounded, INT32), INT8)


def _moved(
    dtype: DType, site: Site, x: ir.Value, low: ir.Value, high: ir.Value, shift: ir.Value
) -> ir.Value:
    """The same plus an integer of 8 bits: in the text that would be a sum of 64."""
    return site.builder.add(_nearest(dtype, site, x, low, high), shift)


def _steps(
    dtype: DType, site: Site, x: ir.Value, low: ir.Value, high: ir.Value, shift: ir.Value
) -> ir.Value:
    """The nearest as f32, plus a whole number."""
    back = site.builder.fsub(f32(ROUNDER), shift)
    return site.builder.fsub(_rounded(dtype, site, x, low, high), back)


def nearest() -> Mapping[str, Helper]:
    """`nearest_…(x, low, high)` and `steps_…(x, low, high, shift)` of both dtypes, and `moved_u8`,
    which takes a shift as well."""
    found: dict[str, Helper] = {}
    for dtype in (DType.I8, DType.U8):
        kind = KIND[dtype]
        found[f"nearest_{dtype.value}"] = helper(3, partial(_nearest, dtype), lambda *_, k=kind: k)
        found[f"steps_{dtype.value}"] = helper(4, partial(_steps, dtype), lambda *_: kinds.float32)
    found["moved_u8"] = helper(4, partial(_moved, DType.U8), lambda *_: KIND[DType.U8])
    return found
