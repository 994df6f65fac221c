"""What approximations are made of: constants, fused steps and polynomials of f32 and f64."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

LONGEST_CHAIN = 12  # steps that wait for each other
FIRST_TERMS = 3
F32, F64, INT32, INT64 = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)
ROUNDER = 1.5 * 2.0**23  # what is added to this is rounded, and stands in the low bits


def call(builder: ir.IRBuilder, name: str, *operands: ir.Value) -> ir.Value:
    """A call of a function from the operands' type to the same type."""
    kind = operands[0].type
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(kind, [kind] * len(operands)), name)
    return builder.call(function, operands)


def intrinsic(builder: ir.IRBuilder, name: str, *operands: ir.Value) -> ir.Value:
    """LLVM's intrinsic `name` for the type of its operands."""
    suffix = {F32: "f32", F64: "f64", INT32: "i32", INT64: "i64"}[operands[0].type]
    return call(builder, f"llvm.{name}.{suffix}", *operands)


def f32(value: float) -> ir.Value:
    """An f32 constant."""
    return ir.Constant(F32, value)


def muladd(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a · b + c, rounded once where the CPU has an FMA."""
    return intrinsic(builder, "fmuladd", a, b, c)


def hold(builder: ir.IRBuilder, constant: ir.Value) -> ir.Value:
    """A constant that loops keep as a vector.

    Where registers are short, LLVM would load its one element and spread it anew in every step.
    """
    return intrinsic(builder, "arithmetic.fence", constant)


def polynomial(builder: ir.IRBuilder, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """Horner's scheme; the lowest coefficient comes first.

    Of a long one, all but the first terms are the sum of an even and an odd part, in x², whose
    steps overlap. The first ones, which are largest, are rounded as in a single chain.
    """
    is_long = len(coefficients) > LONGEST_CHAIN
    terms = [hold(builder, ir.Constant(x.type, each)) for each in coefficients]
    if not is_long:
        return _chain(builder, x, terms)
    rest, square = terms[FIRST_TERMS:], builder.fmul(x, x)
    fourth = builder.fmul(square, square)
    parts = [_chain(builder, fourth, rest[start::4]) for start in range(4)]
    even, odd = (muladd(builder, parts[k + 2], square, parts[k]) for k in (0, 1))
    return _chain(builder, x, [*terms[:FIRST_TERMS], muladd(builder, odd, x, even)])


def _chain(builder: ir.IRBuilder, x: ir.Value, terms: Sequence[ir.Value]) -> ir.Value:
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = muladd(builder, total, x, term)
    return total


def key_of(builder: ir.IRBuilder, a: ir.Value, function: str) -> ir.Value:
    """An integer, or a vector of them, that orders floats as their values, -0.0 below 0.0; NaN is
    what `function`, max or min, gives of it and any number.

    NaN is chosen among integers: of floats LLVM takes all NaNs for one, as where sqrt gives them.
    """
    is_vector = isinstance(a.type, ir.VectorType)
    is_wide = (a.type.element if is_vector else a.type) == F64
    words = INT64 if is_wide else INT32
    kind = ir.VectorType(words, a.type.count) if is_vector else words
    quiet = 0x7FF8 << 48 if is_wide else 0x7FC0 << 16  # the bits of NaN; mirrored with a sign
    key = quiet if function == "max" else ~quiet
    nan = ir.Constant(kind, [key] * kind.count if is_vector else key)
    is_nan = builder.fcmp_unordered("uno", a, a)
    return builder.select(is_nan, nan, mirrored(builder, builder.bitcast(a, kind)))


def mirrored(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """Floats' bits, those of negative numbers in the opposite order; its own inverse."""
    kind = bits.type
    element = kind.element if isinstance(kind, ir.VectorType) else kind

    def constant(value: int) -> ir.Value:
        return ir.Constant(kind, [value] * kind.count if element is not kind else value)

    sign = builder.ashr(bits, constant(element.width - 1))
    return builder.xor(bits, builder.and_(sign, constant((1 << (element.width - 1)) - 1)))
