"""Integer arithmetic in ONNX: it wraps; divisions by 0 and shifts past the width give 0."""

from __future__ import annotations

from satura.rewrite.onnx.write.emitter import Emitter, op_type_of
from satura.rewrite.onnx.write.ranges import range_of
from satura.rewrite.types.tensor_type import DType

_COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual"}
_BITWISE = {"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor"}
_UNARY = {"neg": "Neg", "abs": "Abs"}
_PLAIN = {"add": "Add", "sub": "Sub", "mul": "Mul"}


def carrier(dtype: DType) -> DType:
    """The integer type with kernels in every runtime that holds all values of `dtype`."""
    if dtype in (DType.I8, DType.U8, DType.I16, DType.U16):
        return DType.I32
    return DType.I64 if dtype is DType.U32 else dtype


def unary(emit: Emitter, function: str, x: str, dtype: DType) -> str:
    """neg, abs, relu or sign."""
    if not dtype.is_signed and function in ("abs", "relu"):
        return x
    work = carrier(dtype)
    wide = emit.cast(x, dtype, work)
    if function == "relu":
        result = extreme(emit, "max", wide, emit.scalar(0, work), work)
    elif function == "sign":
        result = _sign(emit, wide, work)
    elif function == "neg" and not work.is_signed:
        result = emit.node("Sub", emit.scalar(0, work), wide)
    else:
        result = emit.node(op_type_of(function, _UNARY, __name__), wide)
    return emit.cast(result, work, dtype)


def extreme(emit: Emitter, function: str, a: str, b: str, dtype: DType) -> str:
    """max or min of carriers. In i64 it is a choice: onnxruntime 1.31's Max and Min take the lower
    halves for signed where the upper ones are equal."""
    if dtype is not DType.I64:
        return emit.node({"max": "Max", "min": "Min"}[function], a, b)
    left, right = (a, b) if function == "min" else (b, a)
    return emit.where(emit.node("Less", a, b), left, right, dtype)


def _sign(emit: Emitter, x: str, dtype: DType) -> str:
    """(x > 0) - (x < 0); Sign has the same fault as Max."""
    zero = emit.scalar(0, dtype)
    above, below = emit.node("Greater", x, zero), emit.node("Less", x, zero)
    flags = [emit.cast(flag, DType.BOOL, dtype) for flag in (above, below)]
    return emit.node("Sub", *flags)


def binary(emit: Emitter, function: str, x: str, y: str, dtype: DType) -> str:
    """Any binary function on integers."""
    if function in _BITWISE:
        return emit.node(_BITWISE[function], x, y)
    if function in ("shl", "shr"):
        return _shift(emit, x, y, dtype, left=function == "shl")
    if function == "pow":
        return _power(emit, x, y, dtype)
    work = carrier(dtype)
    a, b = emit.cast(x, dtype, work), emit.cast(y, dtype, work)
    if function in _COMPARISONS:
        return emit.node(_COMPARISONS[function], a, b)
    if function == "div":
        result = _quotient(emit, a, b, work)
    elif function in ("mod", "fmod"):
        result = _remainder(emit, function, a, b, work)
    elif function in ("max", "min"):
        result = extreme(emit, function, a, b, work)
    else:
        result = emit.node(op_type_of(function, _PLAIN, __name__), a, b)
    return emit.cast(result, work, dtype)


def _is_free_of(emit: Emitter, x: str, dtype: DType, *values: int) -> bool:
    """Whether nothing in `x` is one of `values`."""
    known = range_of(emit, x)
    return all(known.excludes(value) for value in values if value >= 0 or dtype.is_signed)


def _replace(emit: Emitter, x: str, dtype: DType, *values: int) -> str:
    """x with 1 in the place of each of `values`: a divisor that traps no processor."""
    if dtype is DType.U64:  # without Where
        return emit.node(
            "Add", x, emit.cast(emit.shared("Equal", x, emit.scalar(0, dtype)), DType.BOOL, dtype)
        )
    for value in values:
        if value >= 0 or dtype.is_signed:
            found = emit.shared("Equal", x, emit.scalar(value, dtype))
            x = emit.where(found, emit.scalar(1, dtype), x, dtype)
    return x


def _quotient(emit: Emitter, a: str, b: str, dtype: DType) -> str:
    """Truncated a / b; 0 for b = 0; the smallest integer over -1 wraps."""
    if _is_free_of(emit, b, dtype, -1, 0):
        return emit.node("Div", a, b)
    result = emit.node("Div", a, _replace(emit, b, dtype, -1, 0))
    if dtype.is_signed:
        minus = emit.shared("Equal", b, emit.scalar(-1, dtype))
        result = emit.where(minus, emit.node("Neg", a), result, dtype)
    zero = emit.scalar(0, dtype)
    return emit.where(emit.shared("Equal", b, zero), zero, result, dtype)


def _remainder(emit: Emitter, function: str, a: str, b: str, dtype: DType) -> str:
    """What a floored (mod) or truncated (fmod) division leaves; 0 for b = 0. Mod with fmod=1 would
    run in floating point."""
    divisor = b if _is_free_of(emit, b, dtype, -1, 0) else _replace(emit, b, dtype, -1, 0)
    if function == "mod":
        return emit.node("Mod", a, divisor)
    return emit.node("Sub", a, emit.node("Mul", emit.node("Div", a, divisor), divisor))


def _shift(emit: Emitter, x: str, y: str, dtype: DType, left: bool) -> str:
    """Shifts in u64; a negative x is shifted right as its complement."""
    direction = "LEFT" if left else "RIGHT"
    if not dtype.is_signed and range_of(emit, y).is_within(-1, 8 * dtype.itemsize):
        return emit.node("BitShift", x, y, direction=direction)
    wide = DType.I64 if dtype.is_signed else DType.U64
    a, b = emit.cast(x, dtype, wide), emit.cast(y, dtype, wide)
    zero = emit.scalar(0, wide)
    valid = emit.node("Less", b, emit.scalar(8 * dtype.itemsize, wide))
    if dtype.is_signed:
        valid = emit.node("And", valid, emit.node("LessOrEqual", zero, b))
    low_bits = emit.node("BitwiseAnd", b, emit.scalar(8 * dtype.itemsize - 1, wide))
    amount = emit.cast(low_bits, wide, DType.U64)
    if left or not dtype.is_signed:
        moved = emit.node("BitShift", emit.cast(a, wide, DType.U64), amount, direction=direction)
        result = emit.cast(moved, DType.U64, dtype)
    else:
        sign = emit.where(emit.node("Less", a, zero), emit.scalar(-1, wide), zero, wide)
        bits = emit.cast(emit.node("BitwiseXor", a, sign), wide, DType.U64)
        moved = emit.node("BitShift", bits, amount, direction=direction)
        back = emit.node("BitwiseXor", emit.cast(moved, DType.U64, wide), sign)
        result = emit.cast(back, wide, dtype)
    return emit.where(valid, result, emit.scalar(0, dtype), dtype)


def _power(emit: Emitter, x: str, y: str, dtype: DType) -> str:
    """Powers by squaring, unrolled over the exponent's bits; i64 wraps as every narrower type."""
    base, bits = emit.cast(x, dtype, DType.I64), 8 * dtype.itemsize - dtype.is_signed
    if y in emit.constants and emit.constants[y].size:
        known = emit.constants[y].array
        bits = max(1, int(known.max()).bit_length())
        if known.ndim == 0 and int(known) > 0:
            return emit.cast(_fixed_power(emit, base, int(known)), DType.I64, dtype)
    exponent = signed = emit.cast(y, dtype, DType.I64)
    one, zero = emit.scalar(1, DType.I64), emit.scalar(0, DType.I64)
    if dtype.is_signed:
        exponent = extreme(emit, "max", signed, zero, DType.I64)
    unsigned = emit.cast(exponent, DType.I64, DType.U64)
    result, square = one, base
    for bit in range(bits):
        shifted = unsigned
        if bit:
            shifted = emit.node(
                "BitShift", unsigned, emit.scalar(bit, DType.U64), direction="RIGHT"
            )
            square = emit.node("Mul", square, square)
        digit = emit.node("BitwiseAnd", shifted, emit.scalar(1, DType.U64))
        chosen = emit.cast(digit, DType.U64, DType.BOOL)
        result = emit.node("Where", chosen, emit.node("Mul", result, square), result)
    if dtype.is_signed:
        result = emit.node(
            "Where", emit.node("Less", signed, zero), _inverse(emit, base, signed), result
        )
    return emit.cast(result, DType.I64, dtype)


def _fixed_power(emit: Emitter, base: str, exponent: int) -> str:
    """base^exponent by squaring."""
    result = base
    for digit in f"{exponent:b}"[1:]:
        result = emit.node("Mul", result, result)
        result = emit.node("Mul", result, base) if digit == "1" else result
    return result


def _inverse(emit: Emitter, base: str, exponent: str) -> str:
    """1 / base^n, truncated: 1 for 1, ±1 for -1, else 0."""
    one, zero, minus = (emit.scalar(value, DType.I64) for value in (1, 0, -1))
    parity = emit.node("BitwiseAnd", exponent, one)
    sign = emit.node("Where", emit.cast(parity, DType.I64, DType.BOOL), minus, one)
    negative = emit.node("Where", emit.node("Equal", base, minus), sign, zero)
    return emit.node("Where", emit.node("Equal", base, one), one, negative)
