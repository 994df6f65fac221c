"""What the text of a kernel may call on single elements.

The names are those of the formulas in `rewrite.ops.elementwise`, and those of `memory.py`. Every
helper writes LLVM instructions in place, so loops over them vectorise. Only needed to compile: a
warm start does not import this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from llvmlite import ir

from satura.backend.helpers import approximations, inverses, kinds, logarithms, trigonometry
from satura.backend.helpers.arithmetic import call, key_of, mirrored
from satura.backend.helpers.kinds import Helper, Kind
from satura.backend.helpers.memory import conversions, memory
from satura.backend.helpers.narrow import narrow
from satura.backend.helpers.nearest import nearest
from satura.backend.helpers.site import F32, F64, KIND, Site, Writer, declare_function, helper
from satura.rewrite.ops.elementwise import UNARY
from satura.rewrite.types.tensor_type import DType


def _maximum(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """Of floats IEEE 754-2019's: NaN wins, -0.0 < 0.0. Of bool: or."""
    if site.kind is kinds.boolean:
        return site.builder.or_(a, b)
    name = "maximum" if site.is_float else "smax" if site.is_signed else "umax"
    return site.same(name, a, b)


def _minimum(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    if site.kind is kinds.boolean:
        return site.builder.and_(a, b)
    name = "minimum" if site.is_float else "smin" if site.is_signed else "umin"
    return site.same(name, a, b)


def _key(function: str, site: Site, a: ir.Value) -> ir.Value:
    return key_of(site.builder, a, function)


def _key_value(site: Site, key: ir.Value) -> ir.Value:
    """The float with this key."""
    return site.builder.bitcast(mirrored(site.builder, key), F64 if site.bits == 64 else F32)


def _larger(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """Python's max of two operands of one type; Numba's own is a function to compile and link."""
    return site.builder.select(site.less(a, b), b, a)


def _smaller(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    return site.builder.select(site.less(b, a), b, a)


def _add_any_order(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b in a sum whose order LLVM may choose, the same way for every thread count."""
    if site.is_float:
        return site.builder.fadd(a, b, flags=("reassoc",))
    return site.builder.add(a, b)


def _mul_any_order(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    if site.is_float:
        return site.builder.fmul(a, b, flags=("reassoc",))
    return site.builder.mul(a, b)


def _mul_add(site: Site, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a · b + c for sums of products in any order; one rounding where the CPU has an FMA."""
    if site.is_float:
        return site.builder.call(
            declare_function(
                site.builder,
                ir.FunctionType(a.type, [a.type] * 3),
                f"llvm.fmuladd.{site.suffix}",
            ),
            [a, b, c],
            fastmath=("reassoc",),
        )
    return site.builder.add(site.builder.mul(a, b), c)


def _zero(a: ir.Value) -> ir.Value:
    return ir.Constant(a.type, 0.0 if a.type in (F32, F64) else 0)


def _absolute(site: Site, a: ir.Value) -> ir.Value:
    if site.is_float:
        return site.same("fabs", a)
    if not site.is_signed:
        return a
    negative = site.less(a, _zero(a))
    return site.builder.select(negative, site.builder.neg(a), a)


def _relu(site: Site, a: ir.Value) -> ir.Value:
    """0 where a <= 0, else a: NaN stays."""
    zero = _zero(a)
    if site.is_float:
        return site.builder.select(site.builder.fcmp_ordered("<=", a, zero), zero, a)
    return site.builder.select(site.less(zero, a), a, zero)


def _sign(site: Site, a: ir.Value) -> ir.Value:
    builder, zero = site.builder, _zero(a)
    one = ir.Constant(a.type, 1.0 if site.is_float else 1)
    positive = builder.select(site.less(zero, a), one, zero)
    if site.is_float:
        minus = ir.Constant(a.type, -1.0)
        signed = builder.select(site.less(a, zero), minus, positive)
        return builder.select(builder.fcmp_unordered("uno", a, a), a, signed)
    if not site.is_signed:
        return positive
    return builder.select(site.less(a, zero), ir.Constant(a.type, -1), positive)


def _isinf(site: Site, a: ir.Value) -> ir.Value:
    return site.builder.fcmp_ordered("==", site.same("fabs", a), ir.Constant(a.type, float("inf")))


def _safe(site: Site, b: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """A divisor that never traps, whether b is 0, and whether b is a signed -1."""
    builder = site.builder
    is_zero = builder.icmp_unsigned("==", b, _zero(b))
    minus = ir.Constant(b.type, -1)
    is_minus = builder.icmp_unsigned("==", b, minus) if site.is_signed else ir.IntType(1)(0)
    unsafe = builder.or_(is_zero, is_minus)
    return builder.select(unsafe, ir.Constant(b.type, 1), b), is_zero, is_minus


def _truncated_quotient(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """a / b of integers, truncated, for a b that never traps.

    Up to 32 bits floats divide them, as vectors can: a quotient that is not an integer is farther
    from the next one than floats of that size round.
    """
    builder = site.builder
    if site.bits > 32:
        return builder.sdiv(a, b) if site.is_signed else builder.udiv(a, b)
    kind = F32 if site.bits <= 16 else F64
    widen, narrow = (
        (builder.sitofp, builder.fptosi) if site.is_signed else (builder.uitofp, builder.fptoui)
    )
    return narrow(builder.fdiv(widen(a, kind), widen(b, kind)), a.type)


def _divide(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """Integers truncate toward zero, x / 0 is 0, and the smallest integer / -1 wraps."""
    builder = site.builder
    if site.is_float:
        return builder.fdiv(a, b)
    divisor, is_zero, is_minus = _safe(site, b)
    quotient = _truncated_quotient(site, a, divisor)
    quotient = builder.select(is_minus, builder.neg(a), quotient)
    return builder.select(is_zero, _zero(a), quotient)


def _remainder(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder with the sign of a; integers: x fmod 0 is 0."""
    builder = site.builder
    if site.is_float:
        return _library("fmod", site, a, b)
    divisor, is_zero, is_minus = _safe(site, b)
    rest = builder.sub(a, builder.mul(_truncated_quotient(site, a, divisor), divisor))
    return builder.select(builder.or_(is_zero, is_minus), _zero(a), rest)


def _modulo(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder with the sign of b."""
    builder, rest, zero = site.builder, _remainder(site, a, b), _zero(a)
    if not site.is_signed:
        return rest
    if site.is_float:
        is_zero = builder.fcmp_ordered("==", rest, zero)
        shifted = builder.fadd(rest, b)
    else:
        is_zero = builder.icmp_unsigned("==", rest, zero)
        shifted = builder.add(rest, b)
    signs_differ = builder.xor(site.less(b, zero), site.less(rest, zero))
    kept = builder.select(signs_differ, shifted, rest)
    nothing = site.same("copysign", zero, b) if site.is_float else zero
    return builder.select(is_zero, nothing, kept)


def _power(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """Floats as C's pow; integers wrap, and a negative exponent gives the truncated quotient."""
    if a.type == F32:
        return logarithms.power(site.builder, a, b)
    if site.is_float:
        return _library("pow", site, a, b)
    builder, one, zero = site.builder, ir.Constant(a.type, 1), _zero(a)
    result, base, exponent = one, a, b
    for _ in range(site.bits - (1 if site.is_signed else 0)):
        odd = builder.trunc(exponent, ir.IntType(1))
        result = builder.select(odd, builder.mul(result, base), result)
        base, exponent = builder.mul(base, base), builder.lshr(exponent, one)
    if not site.is_signed:
        return result
    minus = ir.Constant(a.type, -1)
    odd = builder.trunc(b, ir.IntType(1))
    alternating = builder.select(odd, minus, one)
    inverse = builder.select(builder.icmp_unsigned("==", a, minus), alternating, zero)
    inverse = builder.select(builder.icmp_unsigned("==", a, one), one, inverse)
    return builder.select(site.less(b, zero), inverse, result)


def _shift(left: bool, site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """By the width or more, or by less than 0: 0."""
    builder, width = site.builder, ir.Constant(b.type, site.bits)
    valid = builder.icmp_unsigned("<", b, width)  # a negative amount is a huge unsigned one
    amount = builder.select(valid, b, _zero(b))
    if left:
        moved = builder.shl(a, amount)
    else:
        moved = builder.ashr(a, amount) if site.is_signed else builder.lshr(a, amount)
    return builder.select(valid, moved, _zero(a))


def _library(name: str, site: Site, *operands: ir.Value) -> ir.Value:
    """The C library's function of this name, in the variant for the operands' type."""
    return call(site.builder, name if operands[0].type == F64 else f"{name}f", *operands)


_APPROXIMATIONS: Mapping[str, Callable[[ir.IRBuilder, ir.Value], ir.Value]] = {
    "exp": approximations.exp, "exp_up_to_0": approximations.exp_up_to_0,
    "exp_or_0": approximations.exp_or_0, "sigmoid": approximations.sigmoid,
    "tanh": approximations.tanh, "erf": approximations.erf, "log": logarithms.log,
    "sin": trigonometry.sin, "cos": trigonometry.cos, "tan": trigonometry.tan,
    "asin": inverses.asin, "acos": inverses.acos, "atan": inverses.atan, "atanh": inverses.atanh,
}  # fmt: skip


def _approximation(name: str, site: Site, a: ir.Value) -> ir.Value:
    """Vectorisable in f32, the C library's in f64."""
    if a.type == F32:
        return _APPROXIMATIONS[name](site.builder, a)
    if name == "sigmoid":
        one = ir.Constant(F64, 1.0)
        grown = _library("exp", site, site.builder.fneg(a))
        return site.builder.fdiv(one, site.builder.fadd(one, grown))
    return _library(name.split("_")[0], site, a)


def _choose(site: Site, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return site.builder.select(condition, a, b)


def _llvm(name: str, site: Site, a: ir.Value) -> ir.Value:
    return site.same(name, a)


def _inside(site: Site, position: ir.Value, extent: ir.Value) -> ir.Value:
    """0 <= position < extent, in one comparison."""
    return site.builder.icmp_unsigned("<", position, extent)


def _quotient(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """a // b for b > 0, rounded down."""
    builder = site.builder
    quotient, rest = builder.sdiv(a, b), builder.srem(a, b)
    below = builder.icmp_signed("<", rest, _zero(rest))
    return builder.select(below, builder.sub(quotient, a.type(1)), quotient)


def _first_tap(site: Site, origin: ir.Value, step: ir.Value) -> ir.Value:
    """The smallest tap >= 0 with origin + tap · step >= 0, for step > 0."""
    builder = site.builder
    taps = builder.sdiv(builder.sub(builder.sub(step, origin), origin.type(1)), step)
    return builder.select(builder.icmp_signed("<", origin, _zero(origin)), taps, _zero(origin))


def _bool(*_: Kind) -> Kind:
    return kinds.boolean


def _key_type(kind: Kind) -> Kind:
    return kinds.int64 if kind is kinds.float64 else kinds.int32


def _value_type(kind: Kind) -> Kind:
    return kinds.float64 if kind is kinds.int64 else kinds.float32


_LIBRARY = tuple(name for name, function in UNARY.items() if function.slowness > 1)


@lru_cache(maxsize=1)
def helpers() -> Mapping[str, Helper | Kind]:
    """Everything above by name, and the kinds by the dtypes' names."""
    found: dict[str, Helper | Kind] = {
        dtype.value if dtype is not DType.BOOL else "boolean": kind for dtype, kind in KIND.items()
    }
    found.update(memory())
    found.update(conversions())
    found.update(narrow())
    found.update(nearest())
    for name in _APPROXIMATIONS:
        found[name] = helper(1, partial(_approximation, name))
    for name in _LIBRARY:
        found[name] = helper(1, partial(_library, name))
    for name in ("sqrt", "floor", "ceil", "rint"):
        found[name] = helper(1, partial(_llvm, name))
    one: dict[str, Writer] = {"absolute": _absolute, "relu": _relu, "sign": _sign}
    found.update((name, helper(1, write)) for name, write in one.items())
    two: dict[str, Writer] = {
        "maximum": _maximum, "minimum": _minimum, "divide": _divide, "modulo": _modulo,
        "fmod": _remainder, "power": _power, "shift_left": partial(_shift, True),
        "shift_right": partial(_shift, False), "add_any_order": _add_any_order,
        "mul_any_order": _mul_any_order, "quotient": _quotient, "max": _larger, "min": _smaller,
    }  # fmt: skip
    found.update((name, helper(2, write)) for name, write in two.items())
    found["choose"] = helper(3, _choose, lambda condition, a, b: a)
    found["mul_add"] = helper(3, _mul_add)
    found["first_tap"] = helper(2, _first_tap)
    found["inside"] = helper(2, _inside, _bool)
    found["max_key"] = helper(1, partial(_key, "max"), _key_type)
    found["min_key"] = helper(1, partial(_key, "min"), _key_type)
    found["key_value"] = helper(1, _key_value, _value_type)
    found["isinf"] = helper(1, _isinf, _bool)
    return found
