"""Elementwise ops in ONNX, with satura's meaning of every special case.

What ONNX leaves open is spelled out (division by zero, casts out of range, floored modulo); dtypes
that runtimes have no kernel for go through a Cast, where that costs no precision. Not spelled out
is the sign of a zero that comes out of `relu`, `max` and `min`: ONNX does not define it.
"""

from __future__ import annotations

from satura.rewrite.onnx.lower.elementwise import BINARY, N_ARY, UNARY
from satura.rewrite.onnx.write import integer
from satura.rewrite.onnx.write.emitter import Emitter, Site, op_type_of
from satura.rewrite.onnx.write.ranges import range_of
from satura.rewrite.types.attributes import BinaryFn, UnaryFn
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import product
from satura.rewrite.types.tensor_type import DType

_UNARY = {ours: op_type for op_type, ours in UNARY.items()} | {"isinf": "IsInf"}
_BINARY = {ours: op_type for op_type, ours in (BINARY | N_ARY).items()} | {"pow": "Pow"}
_LOGICAL = {"and": "And", "or": "Or", "xor": "Xor", "eq": "Equal"}


def unary(emit: Emitter, site: Site) -> str:
    """unary(f, x)"""
    function = site.node.attributes[0]
    assert isinstance(function, UnaryFn)
    x, dtype = site.operand(0), site.type(0).dtype
    if function.name in ("not", "bitnot"):
        return emit.node(_UNARY[function.name], x)
    if dtype.is_integer:
        return integer.unary(emit, function.name, x, dtype)
    op_type = op_type_of(function.name, _UNARY, __name__)
    result = emit.node(op_type, emit.cast(x, dtype, dtype.compute))
    return emit.cast(result, _result_work(dtype, site.node.type.dtype), site.node.type.dtype)


def _result_work(operand: DType, result: DType) -> DType:
    """The type a result is computed in: bool, or the operand's compute type."""
    return DType.BOOL if result is DType.BOOL else operand.compute


def binary(emit: Emitter, site: Site) -> str:
    """binary(f, x, y)"""
    function = site.node.attributes[0]
    assert isinstance(function, BinaryFn)
    x, y = _factor(emit, site, 0), _factor(emit, site, 1)
    return combine(emit, function.name, x, y, site.type(0).dtype)


def _factor(emit: Emitter, site: Site, position: int) -> str:
    """An operand; one number beside a tensor is a scalar, as the fusions of runtimes expect."""
    known = site.known(position)
    if known is None or product(known.type.shape) != 1 or site.known(1 - position) is not None:
        return site.operand(position)
    return emit.constant(Constant(known.array.reshape(())))


def combine(emit: Emitter, function: str, x: str, y: str, dtype: DType) -> str:
    """f(x, y) of tensors of `dtype`; the shapes may broadcast."""
    if dtype is DType.BOOL:
        return emit.node(op_type_of(function, _LOGICAL, __name__), x, y)
    if dtype.is_integer:
        return integer.binary(emit, function, x, y, dtype)
    x, y = emit.cast(x, dtype, dtype.compute), emit.cast(y, dtype, dtype.compute)
    if function == "fmod":
        result = emit.node("Mod", x, y, fmod=1)
    elif function == "mod":
        result = _floored_modulo(emit, x, y, dtype.compute)
    else:
        result = emit.node(op_type_of(function, _BINARY, __name__), x, y)
    if function in ("eq", "lt", "le"):
        return result
    return emit.cast(result, dtype.compute, dtype)


def _floored_modulo(emit: Emitter, x: str, y: str, dtype: DType) -> str:
    """fmod moved to the sign of y; a zero takes the sign of y too."""
    zero = emit.scalar(0.0, dtype)
    rest = emit.node("Mod", x, y, fmod=1)
    below, y_below = emit.node("Less", rest, zero), emit.node("Less", y, zero)
    moved = emit.node("Where", emit.node("Xor", below, y_below), emit.node("Add", rest, y), rest)
    signed = emit.node("Where", y_below, emit.scalar(-0.0, dtype), zero)
    return emit.node("Where", emit.node("Equal", rest, zero), signed, moved)


def select(emit: Emitter, site: Site) -> str:
    """select(c, x, y)"""
    condition, x, y = (site.operand(at) for at in range(3))
    return emit.where(condition, x, y, site.type(1).dtype)


def cast(emit: Emitter, site: Site) -> str:
    """cast(x): float to integer truncates and saturates, NaN gives 0."""
    x, old, new = site.operand(0), site.type(0).dtype, site.node.type.dtype
    if old.is_float and new.is_integer:
        return _saturating_cast(emit, emit.cast(x, old, old.compute), old.compute, new)
    return emit.cast(x, old, new)


def _saturating_cast(emit: Emitter, x: str, old: DType, new: DType) -> str:
    """A Cast that sees only values in range; all others are chosen around it."""
    if new.is_narrow:
        return emit.cast(_limited_cast(emit, x, old, new), new.compute, new)
    return _limited_cast(emit, x, old, new)


def _limited_cast(emit: Emitter, x: str, old: DType, bounds: DType) -> str:
    """x within the bounds of an integer type, in the type that computes with it."""
    new, (least, most) = bounds.compute, bounds.bounds
    if range_of(emit, x).is_within(least - 1, most + 1):
        return emit.cast(x, old, new)
    below, above = emit.scalar(float(least - 1), old), emit.scalar(float(most + 1), old)
    low, high = emit.node("LessOrEqual", x, below), emit.node("GreaterOrEqual", x, above)
    outside = emit.node("Or", emit.node("Or", low, high), emit.node("IsNaN", x))
    inside = emit.cast(emit.node("Where", outside, emit.scalar(0, old), x), old, new)
    raised = emit.where(low, emit.scalar(least, new), inside, new)
    return emit.where(high, emit.scalar(most, new), raised, new)
