"""What the text of a kernel may call on single elements: memory, conversions, scalar functions.

The names are those of the formulas in `rewrite.ops.elementwise`, and `read_…`, `write_…`,
`cast_…` by dtype. f16 and bf16 elements are f32 numbers between a read and a write; `round_…` takes
them to the nearest stored value. Every helper writes LLVM instructions in place, so loops over
them vectorise. Only needed to compile: a warm start does not import this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import Parameter, Signature

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from satura.backend.emit import approximations
from satura.backend.emit.approximations import call
from satura.rewrite.types import DType

INT8, INT16, INT32, INT64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_FLOAT_BITS = {F32: INT32, F64: INT64}

NUMBA = {
    DType.F64: types.float64, DType.F32: types.float32,
    DType.F16: types.float32, DType.BF16: types.float32,
    DType.I8: types.int8, DType.I16: types.int16, DType.I32: types.int32, DType.I64: types.int64,
    DType.U8: types.uint8, DType.U16: types.uint16, DType.U32: types.uint32,
    DType.U64: types.uint64, DType.BOOL: types.boolean,
}  # fmt: skip
_STORED = {
    DType.F64: F64, DType.F32: F32, DType.F16: F16, DType.BF16: INT16,
    DType.I8: INT8, DType.I16: INT16, DType.I32: INT32, DType.I64: INT64,
    DType.U8: INT8, DType.U16: INT16, DType.U32: INT32, DType.U64: INT64, DType.BOOL: INT8,
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """Where a helper writes its instructions, and the Numba type of its first operand."""

    builder: ir.IRBuilder
    kind: types.Type

    @property
    def is_float(self) -> bool:
        return isinstance(self.kind, types.Float)

    @property
    def is_signed(self) -> bool:
        return self.is_float or bool(getattr(self.kind, "signed", False))

    @property
    def bits(self) -> int:
        """Width of an integer or float type."""
        return int(getattr(self.kind, "bitwidth", 1))

    @property
    def suffix(self) -> str:
        """How LLVM's intrinsics name the type."""
        return f"f{self.bits}" if self.is_float else f"i{self.bits}"

    def same(self, name: str, *operands: ir.Value) -> ir.Value:
        """LLVM's intrinsic `name` for the type of its operands."""
        return call(self.builder, f"llvm.{name}.{self.suffix}", *operands)

    def less(self, a: ir.Value, b: ir.Value) -> ir.Value:
        if self.is_float:
            return self.builder.fcmp_ordered("<", a, b)
        compare = self.builder.icmp_signed if self.is_signed else self.builder.icmp_unsigned
        return compare("<", a, b)


Writer = Callable[..., ir.Value]
Result = Callable[..., types.Type]


def _first(*operands: types.Type) -> types.Type:
    return operands[0]


def helper(arity: int, write: Writer, result: Result = _first) -> object:
    """A helper of `arity` operands of any type, of type `result(*operand types)`."""

    def typed(context: object, *operands: types.Type) -> tuple[object, object]:
        kinds = [getattr(kind, "literal_type", kind) for kind in operands]

        def generate(
            target: object, builder: ir.IRBuilder, signature: object, values: list[ir.Value]
        ) -> ir.Value:
            value = write(Site(builder, kinds[0]), *values)
            return ir.Constant(INT8.as_pointer(), None) if value is None else value

        return result(*kinds)(*kinds), generate

    names = ["context", *(f"a{i}" for i in range(arity))]
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    vars(typed)["__signature__"] = signature
    return intrinsic(typed)


# Memory


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
    kind = _STORED[dtype]
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


def _memory() -> dict[str, object]:
    """read, write: operands and results; get, put: scratch. `…_at` counts in bytes."""
    found: dict[str, object] = {}
    for dtype, kind in NUMBA.items():
        for ending, in_bytes in (("", False), ("_at", True)):
            for name, scope in (("read", "operand"), ("get", "scratch")):
                found[f"{name}_{dtype.value}{ending}"] = helper(
                    2, partial(_read, dtype, scope, in_bytes), lambda *_, kind=kind: kind
                )
            for name, scope in (("write", "result"), ("put", "scratch")):
                found[f"{name}_{dtype.value}{ending}"] = _writer(dtype, scope, in_bytes)
    return found


def _writer(dtype: DType, scope: str, in_bytes: bool) -> object:
    """A write converts its operand's Numba type to the dtype's, which it has already."""
    return helper(3, partial(_write, dtype, scope, in_bytes), lambda *_: types.void)


# Conversions


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
    to_bits = getattr(NUMBA[dtype], "bitwidth", 1)
    if dtype is DType.BOOL:
        if site.is_float:
            return builder.fcmp_unordered("!=", a, ir.Constant(a.type, 0.0))
        return a if kind is types.boolean else builder.icmp_unsigned("!=", a, a.type(0))
    target = F64 if dtype is DType.F64 else F32 if dtype.is_float else ir.IntType(to_bits)
    if kind is types.boolean:
        return builder.uitofp(a, target) if dtype.is_float else builder.zext(a, target)
    if dtype.is_float:
        if site.is_float:
            converted = _resize_float(builder, a, target)
        else:
            convert = builder.sitofp if site.is_signed else builder.uitofp
            converted = convert(a, target)
        if dtype is DType.F16:
            return _round_f16(site, converted)
        return _round_bf16(site, converted) if dtype is DType.BF16 else converted
    if site.is_float:
        name = f"llvm.fpto{'s' if dtype.is_signed else 'u'}i.sat.i{to_bits}.{site.suffix}"
        function = ir.FunctionType(target, [a.type])
        return builder.call(_declared(builder, function, name), [a])
    if to_bits <= site.bits:
        return builder.trunc(a, target) if to_bits < site.bits else a
    return builder.sext(a, target) if site.is_signed else builder.zext(a, target)


def _scalar(dtype: DType, site: Site, bits: ir.Value) -> ir.Value:
    """The element whose bit pattern stands in the low bits of an i64."""
    builder = site.builder
    low = builder.trunc(bits, ir.IntType(8 * dtype.itemsize)) if dtype.itemsize < 8 else bits
    if dtype is DType.BF16:
        return builder.bitcast(builder.shl(builder.zext(low, INT32), INT32(16)), F32)
    if dtype is DType.BOOL:
        return builder.icmp_unsigned("!=", low, INT8(0))
    value = builder.bitcast(low, _STORED[dtype])
    return builder.fpext(value, F32) if dtype is DType.F16 else value


def _resize_float(builder: ir.IRBuilder, a: ir.Value, target: ir.Type) -> ir.Value:
    if a.type == target:
        return a
    return builder.fpext(a, target) if target == F64 else builder.fptrunc(a, target)


def _declared(builder: ir.IRBuilder, function: ir.FunctionType, name: str) -> ir.Value:
    known = builder.module.globals.get(name)
    return ir.Function(builder.module, function, name) if known is None else known


# Scalar functions


def _maximum(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """Of floats IEEE 754-2019's: NaN wins, -0.0 < 0.0. Of bool: or."""
    if site.kind is types.boolean:
        return site.builder.or_(a, b)
    name = "maximum" if site.is_float else "smax" if site.is_signed else "umax"
    return site.same(name, a, b)


def _minimum(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    if site.kind is types.boolean:
        return site.builder.and_(a, b)
    name = "minimum" if site.is_float else "smin" if site.is_signed else "umin"
    return site.same(name, a, b)


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
            _declared(
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


def _divide(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """Integers truncate toward zero, x / 0 is 0, and the smallest integer / -1 wraps."""
    builder = site.builder
    if site.is_float:
        return builder.fdiv(a, b)
    divisor, is_zero, is_minus = _safe(site, b)
    quotient = builder.sdiv(a, divisor) if site.is_signed else builder.udiv(a, divisor)
    quotient = builder.select(is_minus, builder.neg(a), quotient)
    return builder.select(is_zero, _zero(a), quotient)


def _remainder(site: Site, a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder with the sign of a; integers: x fmod 0 is 0."""
    builder = site.builder
    if site.is_float:
        return _library("fmod", site, a, b)
    divisor, is_zero, is_minus = _safe(site, b)
    rest = builder.srem(a, divisor) if site.is_signed else builder.urem(a, divisor)
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


def _approximated(name: str, site: Site, a: ir.Value) -> ir.Value:
    """Vectorisable in f32, the C library's in f64."""
    if a.type == F32:
        written: ir.Value = getattr(approximations, name)(site.builder, a)
        return written
    if name == "sigmoid":
        one = ir.Constant(F64, 1.0)
        grown = _library("exp", site, site.builder.fneg(a))
        return site.builder.fdiv(one, site.builder.fadd(one, grown))
    return _library(name, site, a)


def _choose(site: Site, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return site.builder.select(condition, a, b)


def _llvm(name: str, site: Site, a: ir.Value) -> ir.Value:
    return site.same(name, a)


# Positions


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


def _bool(*_: types.Type) -> types.Type:
    return types.boolean


_LIBRARY = (
    "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
)  # fmt: skip


@lru_cache(maxsize=1)
def helpers() -> Mapping[str, object]:
    """Everything above by name, and the Numba types by the dtypes' names."""
    found: dict[str, object] = {
        dtype.value if dtype is not DType.BOOL else "boolean": kind for dtype, kind in NUMBA.items()
    }
    found.update(_memory())
    for dtype, kind in NUMBA.items():
        name, result = f"cast_{dtype.value}", lambda *_, kind=kind: kind
        found[name] = helper(1, partial(_cast, dtype), result)
        found[f"scalar_{dtype.value}"] = helper(1, partial(_scalar, dtype), result)
    for name in ("exp", "tanh", "erf", "sigmoid"):
        found[name] = helper(1, partial(_approximated, name))
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
        "mul_any_order": _mul_any_order, "quotient": _quotient,
    }  # fmt: skip
    found.update((name, helper(2, write)) for name, write in two.items())
    found["choose"] = helper(3, _choose, lambda condition, a, b: a)
    found["mul_add"] = helper(3, _mul_add)
    found["first_tap"] = helper(2, _first_tap)
    found["inside"] = helper(2, _inside, _bool)
    found["isinf"] = helper(1, _isinf, _bool)
    found["round_f16"] = helper(1, _round_f16)
    found["round_bf16"] = helper(1, _round_bf16)
    return found
