"""Functions of f64 that onnxruntime has only in f32, written with those it has in f64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from satura.rewrite.onnx.write.emitter import Emitter
from satura.rewrite.types.attributes import Constant
from satura.rewrite.types.tensor_type import DType

_QUADRATURE_POINTS = 40
_ERF_IS_ONE = 6.0
_ATAN_IS_FLAT = 1e17


def _number(emit: Emitter, value: float) -> str:
    return emit.scalar(value, DType.F64)


def _tan(emit: Emitter, x: str) -> str:
    return emit.node("Div", emit.node("Sin", x), emit.node("Cos", x))


def _exponentials(emit: Emitter, x: str) -> tuple[str, str]:
    """e^x / 2 and e^-x / 2, as squares of halves so that they overflow no earlier than sinh."""
    half = emit.node("Mul", x, _number(emit, 0.5))
    results = []
    for argument in (half, emit.node("Neg", half)):
        root = emit.node("Exp", argument)
        results.append(emit.node("Mul", emit.node("Mul", root, _number(emit, 0.5)), root))
    return results[0], results[1]


def _sinh(emit: Emitter, x: str) -> str:
    return emit.node("Sub", *_exponentials(emit, x))


def _cosh(emit: Emitter, x: str) -> str:
    return emit.node("Add", *_exponentials(emit, x))


def _atan(emit: Emitter, x: str) -> str:
    """The f32 result y, corrected by tan(atan x - y) = (x cos y - sin y) / (cos y + x sin y)."""
    coarse = emit.node("Atan", emit.cast(x, DType.F64, DType.F32))
    guess = emit.cast(coarse, DType.F32, DType.F64)
    sine, cosine = emit.node("Sin", guess), emit.node("Cos", guess)
    above = emit.node("Sub", emit.node("Mul", x, cosine), sine)
    below = emit.node("Add", cosine, emit.node("Mul", x, sine))
    fine = emit.node("Add", guess, emit.node("Div", above, below))
    flat = emit.node("Greater", emit.node("Abs", x), _number(emit, _ATAN_IS_FLAT))
    limit = emit.node("Mul", emit.node("Sign", x), _number(emit, np.pi / 2))
    return emit.node("Where", flat, limit, fine)


def _asin(emit: Emitter, x: str) -> str:
    """atan(x / sqrt((1 - x)(1 + x)))"""
    one = _number(emit, 1.0)
    product = emit.node("Mul", emit.node("Sub", one, x), emit.node("Add", one, x))
    return _atan(emit, emit.node("Div", x, emit.node("Sqrt", product)))


def _acos(emit: Emitter, x: str) -> str:
    """2 atan(sqrt((1 - x) / (1 + x)))"""
    one = _number(emit, 1.0)
    ratio = emit.node("Div", emit.node("Sub", one, x), emit.node("Add", one, x))
    return emit.node("Mul", _number(emit, 2.0), _atan(emit, emit.node("Sqrt", ratio)))


def _asinh(emit: Emitter, x: str) -> str:
    """sign(x) log(|x| + sqrt(x² + 1))"""
    size = emit.node("Abs", x)
    square = emit.node("Add", emit.node("Mul", x, x), _number(emit, 1.0))
    root = emit.node("Sqrt", square)
    return emit.node("Mul", emit.node("Sign", x), emit.node("Log", emit.node("Add", size, root)))


def _acosh(emit: Emitter, x: str) -> str:
    """log(x + sqrt(x - 1) sqrt(x + 1))"""
    one = _number(emit, 1.0)
    low = emit.node("Sqrt", emit.node("Sub", x, one))
    high = emit.node("Sqrt", emit.node("Add", x, one))
    return emit.node("Log", emit.node("Add", x, emit.node("Mul", low, high)))


def _atanh(emit: Emitter, x: str) -> str:
    """log((1 + x) / (1 - x)) / 2"""
    one = _number(emit, 1.0)
    ratio = emit.node("Div", emit.node("Add", one, x), emit.node("Sub", one, x))
    return emit.node("Mul", emit.node("Log", ratio), _number(emit, 0.5))


def _erf(emit: Emitter, x: str) -> str:
    """2x/√π ∫₀¹ exp(-x²t²) dt by Gauss-Legendre quadrature along a new last axis."""
    points, weights = np.polynomial.legendre.leggauss(_QUADRATURE_POINTS)
    squares = emit.constant(Constant(-np.square((points + 1) / 2)))
    scaled = emit.constant(Constant((weights / np.sqrt(np.pi)).reshape(-1, 1)))
    limit = emit.node("Mul", emit.node("Sign", x), _number(emit, _ERF_IS_ONE))
    far = emit.node("Greater", emit.node("Abs", x), _number(emit, _ERF_IS_ONE))
    near = emit.node("Where", far, limit, x)
    last = emit.integers([-1])
    column = emit.node("Unsqueeze", emit.node("Mul", near, near), last)
    samples = emit.node("Exp", emit.node("Mul", column, squares))
    integral = emit.node("Squeeze", emit.node("MatMul", samples, scaled), last)
    return emit.node("Mul", near, integral)


UNARY: dict[str, Callable[[Emitter, str], str]] = {
    "tan": _tan, "sinh": _sinh, "cosh": _cosh, "asin": _asin, "acos": _acos, "atan": _atan,
    "asinh": _asinh, "acosh": _acosh, "atanh": _atanh, "erf": _erf,
}  # fmt: skip
