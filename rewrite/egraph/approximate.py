"""Facts about rounding: what is `Approximate`, and which values of attributes decide that.

    f(x) with an irrational f, a sum of products                    is approximate
    x * c, x / c with a constant c of many digits                   are
    what moves, sums or computes with approximate x, unless rounded is

A constant does not make what it is added to, or compared with, approximate: x + 1e-6 may be the
whole number x, and so may max(x, 1e-6).
"""

from __future__ import annotations

from collections.abc import Iterator

from satura.rewrite.ops import REGISTRY
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.registry import Kind
from satura.rewrite.types.attributes import BinaryFn, UnaryFn
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import DType, TensorType

IRRATIONAL, FRACTIONAL, SCALING, LASTING = "irrational", "fractional", "scaling", "lasting"
RELATIONS = (IRRATIONAL, FRACTIONAL, SCALING, LASTING)


def relations_of(value: object) -> Iterator[str]:
    """The relations that hold of a value of an attribute, or of a type: a function is `irrational`,
    a constant `fractional`, a product or quotient `scaling`; and what has one is approximate where
    an operand is (`lasting`)."""
    if isinstance(value, Constant):
        if value.is_fractional:
            yield FRACTIONAL
    elif isinstance(value, DType | TensorType):
        if (value if isinstance(value, DType) else value.dtype).is_float:
            yield LASTING
    elif isinstance(value, UnaryFn | BinaryFn):
        function = (UNARY if isinstance(value, UnaryFn) else BINARY).get(value.name)
        if value.name in ("mul", "div"):
            yield SCALING
        if function is not None and function.irrational:
            yield IRRATIONAL
        if function is not None and function.keeps_errors:
            yield LASTING


def sums_products(name: str) -> bool:
    """Whether an op sums products, each of which rounds."""
    return name in REGISTRY and REGISTRY[name].kind is Kind.CONTRACTION


def is_relation_asked(name: str) -> bool:
    """Whether the first attribute of an op decides whether errors of its operands last."""
    return name in ("unary", "binary", "cast")


def lasting_operands(name: str, arity: int) -> tuple[int, ...]:
    """The positions of the operands of which one makes the result of an op approximate."""
    if name in ("binary", "select"):
        return (0, 1) if name == "binary" else (1, 2)
    kind = REGISTRY[name].kind if name in REGISTRY else None
    if kind is Kind.LAYOUT:
        return (0, 1) if name == "concat" else (0,)
    return (0,) if name in ("unary", "cast", "reduce", "pool", "gather") else ()


def copies_constants(name: str) -> bool:
    """Whether an op gives a constant's elements as they are, in another shape."""
    return name in ("reshape", "broadcast", "transpose", "slice")
