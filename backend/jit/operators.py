"""Operators of kernel text on scalars, with Numba's meaning, as LLVM instructions.

Integers narrower than 64 bits are widened first, comparisons give bool, and `//` and `%` round
down and give 0 for a divisor of 0. What is not here, such as a float with an integer, is refused.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from llvmlite import ir

from satura.backend.helpers.kinds import Kind, boolean, float64, int64, uint64


class Untranslatable(Exception):
    """Kernel text that is not translated directly, for the reason in the message."""


class Typed(NamedTuple):
    """A value and its kind."""

    kind: Kind
    value: ir.Value


_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_SIMPLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITWISE = {ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor"}


def constant(value: object) -> Typed:
    """A literal."""
    if isinstance(value, bool):
        return Typed(boolean, boolean.llvm(int(value)))
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return Typed(int64, int64.llvm(value))
    if isinstance(value, float):
        return Typed(float64, ir.Constant(float64.llvm, value))
    raise Untranslatable(f"{value!r} is not a number")


def binary(builder: ir.IRBuilder, op: ast.operator, a: Typed, b: Typed) -> Typed:
    """The result of an arithmetic operator."""
    kind = type(op)
    if kind in _BITWISE and a.kind == b.kind == boolean:
        return Typed(boolean, getattr(builder, _BITWISE[kind])(a.value, b.value))
    a, b = _met(builder, a, b)
    if a.kind.is_float:
        if kind in _SIMPLE:
            return Typed(a.kind, getattr(builder, "f" + _SIMPLE[kind])(a.value, b.value))
    elif kind in _SIMPLE or kind in _BITWISE:
        name = _SIMPLE.get(kind) or _BITWISE[kind]
        return Typed(a.kind, getattr(builder, name)(a.value, b.value))
    elif kind in (ast.FloorDiv, ast.Mod) and a.kind == int64:
        quotient, rest = _divide(builder, a.value, b.value)
        return Typed(int64, quotient if kind is ast.FloorDiv else rest)
    raise Untranslatable(f"{kind.__name__} of {a.kind} and {b.kind}")


def compare(builder: ir.IRBuilder, op: ast.cmpop, a: Typed, b: Typed) -> Typed:
    """Whether a comparison holds; with NaN only != does."""
    if type(op) not in _COMPARED:
        raise Untranslatable(f"comparison {type(op).__name__}")
    sign = _COMPARED[type(op)]
    if not a.kind == b.kind == boolean:
        a, b = _met(builder, a, b)
    if a.kind.is_float:
        compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
    else:
        compare = builder.icmp_signed if a.kind.signed else builder.icmp_unsigned
    return Typed(boolean, compare(sign, a.value, b.value))


def unary(builder: ir.IRBuilder, op: ast.unaryop, a: Typed) -> Typed:
    """The result of a sign, of `~` or of `not`."""
    if isinstance(op, ast.Not):
        return Typed(boolean, builder.not_(truth(builder, a)))
    if a.kind == boolean and isinstance(op, ast.Invert):
        raise Untranslatable("~ of a bool")
    if isinstance(op, ast.USub) and a.kind.is_float:
        return Typed(a.kind, builder.fneg(a.value))
    if a.kind.is_float or not isinstance(op, ast.USub | ast.Invert):
        raise Untranslatable(f"{type(op).__name__} of {a.kind}")
    wide = widen(builder, a)
    written = builder.neg if isinstance(op, ast.USub) else builder.not_
    return Typed(wide.kind, written(wide.value))


def truth(builder: ir.IRBuilder, a: Typed) -> ir.Value:
    """Whether a value counts as true."""
    if a.kind == boolean:
        return a.value
    if a.kind.is_float:
        return builder.fcmp_unordered("!=", a.value, ir.Constant(a.kind.llvm, 0.0))
    return builder.icmp_unsigned("!=", a.value, ir.Constant(a.kind.llvm, 0))


def convert(builder: ir.IRBuilder, a: Typed, kind: Kind) -> Typed:
    """The value as another kind: integers wrap; floats to integers are not for operators."""
    if a.kind == kind:
        return a
    if kind == boolean:
        return Typed(boolean, truth(builder, a))
    if kind.is_float:
        if a.kind.is_float:
            resize = builder.fpext if kind.bitwidth == 64 else builder.fptrunc
            return Typed(kind, resize(a.value, kind.llvm))
        if isinstance(a.value, ir.Constant):
            return Typed(kind, ir.Constant(kind.llvm, float(a.value.constant)))
        convert = builder.sitofp if a.kind.signed else builder.uitofp
        return Typed(kind, convert(a.value, kind.llvm))
    if a.kind.is_float:
        raise Untranslatable(f"{a.kind} as {kind}")
    if a.kind.bitwidth == kind.bitwidth:
        return Typed(kind, a.value)
    if a.kind.bitwidth > kind.bitwidth:
        return Typed(kind, builder.trunc(a.value, kind.llvm))
    extend = builder.sext if a.kind.signed else builder.zext
    return Typed(kind, extend(a.value, kind.llvm))


def widen(builder: ir.IRBuilder, a: Typed) -> Typed:
    """An integer or bool in 64 bits of its sign; a float as it is."""
    if a.kind.is_float:
        return a
    is_signed = a.kind.signed or a.kind == boolean
    return convert(builder, a, int64 if is_signed else uint64)


def _met(builder: ir.IRBuilder, a: Typed, b: Typed) -> tuple[Typed, Typed]:
    """Operands of one kind."""
    a, b = widen(builder, a), widen(builder, b)
    if a.kind != b.kind:
        raise Untranslatable(f"{a.kind} meets {b.kind}")
    return a, b


def _divide(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Quotient and rest of int64, rounded down; both 0 for a divisor of 0.

    The smallest integer by -1 would trap: kernels divide by extents, which are not negative.
    """
    zero = int64.llvm(0)
    known = isinstance(b, ir.Constant) and b.constant > 0
    by_zero = None if known else builder.icmp_unsigned("==", b, zero)
    divisor = b if by_zero is None else builder.select(by_zero, int64.llvm(1), b)
    quotient, rest = builder.sdiv(a, divisor), builder.srem(a, divisor)
    if known:
        below = builder.icmp_signed("<", rest, zero)
    else:
        uneven = builder.icmp_unsigned("!=", rest, zero)
        below = builder.and_(uneven, builder.icmp_signed("<", builder.xor(rest, divisor), zero))
    quotient = builder.sub(quotient, builder.zext(below, int64.llvm))
    rest = builder.add(rest, builder.select(below, divisor, zero))
    if by_zero is not None:
        quotient = builder.select(by_zero, zero, quotient)
    return quotient, rest


def keep_for_vectors(again: ir.Branch) -> None:
    """Marks a loop by its branch back: LLVM unrolls it once it is a loop over vectors.

    It would unroll a short loop before that, and leave it to one element at a time.
    """
    module = again.parent.function.module

    def node(*parts: object) -> ir.values.MDValue:
        return module.add_metadata(
            [ir.MetaDataString(module, p) if isinstance(p, str) else p for p in parts]
        )

    after = node("llvm.loop.vectorize.followup_vectorized", node("llvm.loop.unroll.full"))
    loop = ir.values.MDValue(module, (), name=str(len(module.metadata)))
    loop.operands = (loop, node("llvm.loop.unroll.disable"), after)  # it begins with itself
    again.set_metadata("llvm.loop", loop)
