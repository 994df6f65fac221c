"""Lowerings of elementwise ops: arithmetic, comparison, logic, bits, casts."""

from __future__ import annotations

from functools import reduce

import ml_dtypes

from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.types.tensor_type import DType

UNARY = {
    "Neg": "neg", "Abs": "abs", "Relu": "relu", "Sign": "sign", "Exp": "exp", "Log": "log",
    "Sqrt": "sqrt", "Tanh": "tanh", "Sigmoid": "sigmoid", "Erf": "erf", "Sin": "sin", "Cos": "cos",
    "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh",
    "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Floor": "floor", "Ceil": "ceil",
    "Round": "round", "IsNaN": "isnan", "Not": "not", "BitwiseNot": "bitnot",
}  # fmt: skip
BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Equal": "eq", "Less": "lt",
    "LessOrEqual": "le", "And": "and", "Or": "or", "Xor": "xor", "BitwiseAnd": "and",
    "BitwiseOr": "or", "BitwiseXor": "xor",
}  # fmt: skip
N_ARY = {"Max": "max", "Min": "min"}


@lowering(*UNARY)
def unary(node: Context) -> int:
    """One scalar function."""
    return node.build.unary(UNARY[node.proto.op_type], node[0])


@lowering(*BINARY)
def binary(node: Context) -> int:
    """One scalar function of two broadcast operands."""
    node.common_dtype(node[0], node[1])
    return node.build.apply(BINARY[node.proto.op_type], node[0], node[1])


@lowering("Greater", "GreaterOrEqual")
def greater(node: Context) -> int:
    """a > b = b < a, a >= b = b <= a"""
    f = "lt" if node.proto.op_type == "Greater" else "le"
    return node.build.apply(f, node[1], node[0])


@lowering("Sum", *N_ARY)
def n_ary(node: Context) -> int:
    """f(f(a, b), c) …"""
    node.common_dtype(*node.given)
    f = N_ARY.get(node.proto.op_type, "add")
    return reduce(lambda x, y: node.build.apply(f, x, y), node.given)


@lowering("Mean")
@computed_wide
def mean(node: Context) -> int:
    """The sum of the operands divided by their number."""
    total = reduce(lambda x, y: node.build.apply("add", x, y), node.given)
    return node.build.apply_number("div", total, len(node.given))


@lowering("Reciprocal")
def reciprocal(node: Context) -> int:
    """1 / x"""
    return (1 / node.tensor(0)).index


@lowering("Pow")
def power(node: Context) -> int:
    """x ** y in x's type; mixed types compute in the float type, f64 for integers with floats."""
    build, x, y = node.build, node[0], node[1]
    kept, other = build.dtype(x), build.dtype(y)
    compute = kept if kept.is_float or other.is_integer else DType.F64
    result = build.apply("pow", build.cast(x, compute) if compute is not kept else x,
                         build.cast(y, compute) if compute is not other else y)  # fmt: skip
    return result if compute is kept else build.cast(result, kept)


@lowering("Mod")
def modulo(node: Context) -> int:
    """The remainder with the divisor's sign, or with the dividend's where fmod is set."""
    return node.build.apply("fmod" if node.integer("fmod") else "mod", node[0], node[1])


@lowering("BitShift")
def shift(node: Context) -> int:
    """Bits moved to the left or to the right.

    Amounts below 0 and of the width or more give what the sign bit's extension alone gives: for a
    right shift of a signed type the same as an amount of width - 1.
    """
    build, x, y = node.build, node[0], node[1]
    directions = {"LEFT": "shl", "RIGHT": "shr"}
    direction = node.text("direction")
    if direction == "RIGHT" and build.dtype(y).is_signed:
        last = build.number(build.dtype(y).itemsize * 8 - 1, y)
        negative = build.binary("lt", y, build.number(0, y))
        y = build.select(negative, last, build.binary("min", y, last))
    return build.apply(directions[direction], x, y)


@lowering("IsInf")
def is_infinite(node: Context) -> int:
    """Infinite elements of the signs asked for."""
    x = node.tensor(0)
    result = x.unary("isinf")
    if not node.integer("detect_negative", 1):
        result = result.binary("and", x > 0)
    if not node.integer("detect_positive", 1):
        result = result.binary("and", x < 0)
    return result.index


@lowering("Clip")
def clip(node: Context) -> int:
    """min(max(x, lo), hi): NaN stays NaN, and hi wins over lo."""
    build, result = node.build, node[0]
    dtype = build.dtype(result)
    bounds: list[tuple[str, int | None]] = []
    if node.opset < 11:
        for f, name in (("max", "min"), ("min", "max")):
            limit = build.constant(node.number(name), dtype) if node.has(name) else None
            bounds.append((f, limit))
    else:
        bounds = [("max", node.optional(1)), ("min", node.optional(2))]
    for f, bound in bounds:
        if bound is not None:
            if build.type(bound).size != 1 or build.dtype(bound) is not dtype:
                raise node.wrong(f"its bounds must be scalars of type {dtype.value}")
            scalar = build.reshape(bound, ()) if build.rank(bound) else bound
            result = build.binary(f, result, build.expand(scalar, build.shape(result)))
    return result


@lowering("Where")
def where(node: Context) -> int:
    """x where the condition holds, else y."""
    return node.build.choose(node[0], node[1], node[2])


@lowering("Cast")
def cast(node: Context) -> int:
    """Elements converted to another type."""
    return _cast(node, _target(node, node.integer("to")))


@lowering("CastLike")
def cast_like(node: Context) -> int:
    """Elements converted to the type of the second operand."""
    return _cast(node, node.build.dtype(node[1]))


def _cast(node: Context, target: DType) -> int:
    """Narrow floats take their largest value for what lies beyond, unless told otherwise.

    For narrow integers ONNX leaves it open: the onnx package takes the low bits, as here.
    """
    build, x = node.build, node[0]
    if target.is_narrow and target.is_integer and build.dtype(x).is_float:
        return build.cast(build.cast(x, DType.I32), target)
    if not (target.is_narrow and target.is_float and node.integer("saturate", 1)):
        return build.cast(x, target)
    wide = x if build.dtype(x) is DType.F64 else build.converted(x, DType.F32)
    return narrow(build, wide, target)


def narrow(build: Tensors, x: int, target: DType) -> int:
    """f32 or f64 x in a narrow float type, whose largest value stands for all beyond it."""
    most = float(ml_dtypes.finfo(target.numpy).max)
    bounded = build.apply_number("min", build.apply_number("max", x, -most), most)
    return build.cast(bounded, target)


def _target(node: Context, code: int) -> DType:
    try:
        return dtype_of(code)
    except Exception as error:
        raise node.unsupported(str(error)) from None


@lowering("Identity")
def identity(node: Context) -> int:
    """The operand itself."""
    return node[0]


@lowering("Dropout")
def dropout(node: Context) -> list[int]:
    """Inference: the operand, and a mask of trues."""
    if node.opset >= 12 and node.optional(2) is not None:
        training = node.values.needed(node[2])
        if training is None or training.ravel().tolist() != [False]:
            raise NoLowering
    if len(node.wanted) < 2:
        return [node[0]]
    dtype = DType.BOOL if node.opset >= 10 else node.build.dtype(node[0])
    return [node[0], node.build.full(1, node.build.shape(node[0]), dtype)]
