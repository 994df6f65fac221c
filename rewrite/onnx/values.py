"""Symbolic values: what a small tensor contains, as far as it follows from shapes and constants.

Exporters compute shapes with tensors (Shape, Gather, Mul, Concat, then Reshape). `Values` follows
them over the canonical ops: the value of a node is an object array of ints, bools, floats and
symbolic dims, or None when it is not known. A comparison that cannot be decided for all sizes
makes the result unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, trunc

import numpy as np

from satura.rewrite.errors import CallError, UnsupportedError
from satura.rewrite.onnx.asked import Asked, inputs_behind
from satura.rewrite.ops import Kind
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import (
    BinaryFn,
    ReduceFn,
    Shape,
    UnaryFn,
)
from satura.rewrite.types.dims import Dim, SymbolicDim, exact_quotient, known_at_least, static
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import DType, TensorType

MAX_INTEGERS = 1024
MAX_FLOATS = 16

Element = int | float | SymbolicDim
Known = np.ndarray[tuple[int, ...], np.dtype[np.object_]]


class Undecided(Exception):
    """The value depends on data or on sizes."""


class Values:
    """Values of a builder's nodes, computed on demand and once."""

    def __init__(self, build: Builder, asks: bool = False) -> None:
        self._build = build
        self._asks = asks
        self._known: list[Known | None] = []

    def of(self, index: int) -> Known | None:
        """The value of node `index`, or None."""
        for position in range(len(self._known), index + 1):
            self._known.append(self._evaluate(self._build.nodes[position]))
        return self._known[index]

    def ask(self, inputs: Mapping[str, TensorType]) -> None:
        """Raises Asked where an input is a sequence, whose ranks no model declares."""
        found = {name: each for name, each in inputs.items() if isinstance(each, SequenceType)}
        if found and self._asks:
            raise Asked(frozenset(found))
        for name, type_ in found.items():
            raise UnsupportedError(
                f"input '{name}' is {type_}: the ranks of its tensors decide the program; give them"
                f" when you load the model (values={{'{name}': [...]}}), or compile it"
            )

    def needed(self, index: int) -> Known | None:
        """As `of`, where a shape depends on it.

        Raises Asked where the value follows from those of inputs, and these may be asked for.
        """
        known = self.of(index)
        names = inputs_behind(self._build, index) if known is None and self._asks else frozenset()
        if names:
            raise Asked(names)
        return known

    def _evaluate(self, node: Node) -> Known | None:
        if not _is_small(node.type):
            return None
        if node.op.name == "constant":
            array = node.constant.array
            return _objects(array.ravel().tolist(), array.shape)
        if node.op.name == "extent":
            shape = node.attributes[0]
            assert isinstance(shape, Shape)
            return _objects(shape.dims, ())
        operands = [self._known[index] for index in node.operands]
        known = [value for value in operands if value is not None]
        if len(known) != len(operands):
            return None
        try:
            return _round_to(node.type.dtype, _apply(node, known))
        except (Undecided, CallError):
            return None


def _is_small(type_: TensorType) -> bool:
    limit = MAX_FLOATS if type_.dtype.is_float else MAX_INTEGERS
    is_static = all(isinstance(extent, int) for extent in type_.shape)  # b x 0 elements are not
    return is_static and isinstance(type_.size, int) and type_.size <= limit


def _objects(elements: Sequence[object], shape: tuple[int, ...]) -> Known:
    result = np.empty(shape, object)
    result.ravel()[...] = list(elements)
    return result


def _apply(node: Node, known: list[Known]) -> Known:
    attribute = node.attributes[0] if node.attributes else None
    if node.op.name in ("transpose", "reshape", "broadcast", "slice", "concat", "pad", "iota"):
        result = np.asarray(node.op.reference(*known, *node.attributes))
        return _objects(result.ravel().tolist(), result.shape)
    if node.op.name == "gather":
        if not all(isinstance(index, int) for index in known[1].ravel()):
            raise Undecided
        # NumPy gives a bare element for a 0-d result: it must stay the Python object it is.
        taken = node.op.reference(known[0], known[1].astype(np.int64), attribute)
        return np.asarray(taken, object)
    if isinstance(attribute, UnaryFn):
        return _map(UNARY.get(attribute.name, _undecided_element), known)
    if isinstance(attribute, BinaryFn):
        if attribute.name == "div" and node.type.dtype.is_float:
            return _map(_float_divide, known)
        return _map(BINARY.get(attribute.name, _undecided_element), known)
    if node.op.name == "select":
        return _map(lambda condition, a, b: a if condition else b, known)
    if node.op.name == "cast" and isinstance(attribute, DType):
        return _map(_is_not_zero if attribute is DType.BOOL else _CASTS[attribute.is_float], known)
    if isinstance(attribute, ReduceFn) and node.op.kind is Kind.REDUCTION:
        return _reduce(node, known[0])
    raise Undecided


def _round_to(dtype: DType, value: Known) -> Known:
    """Numbers as the element type stores them: integers wrap."""

    def stored(element: Element) -> Element:
        if isinstance(element, SymbolicDim):
            return element
        if dtype.is_float:
            return float(np.asarray(element).astype(dtype.numpy))
        least, most = dtype.bounds if dtype.is_integer else (element, element)
        if isinstance(element, int) and not least <= element <= most:
            return (element - least) % (most - least + 1) + least
        return element

    return _map(stored, [value])


def _map(function: Callable[..., object], known: list[Known]) -> Known:
    result = np.empty(known[0].shape, object)
    for position in np.ndindex(*known[0].shape):
        result[position] = function(*(value[position] for value in known))
    return result


def _reduce(node: Node, x: Known) -> Known:
    step = {"sum": _plus, "prod": _times, "min": _least, "max": _greatest}
    if node.op.name != "reduce" or not x.size:
        raise Undecided
    combine = step[str(node.attributes[0])]
    shape = tuple(map(static, node.type.shape))
    totals: dict[tuple[int, ...], Element] = {}
    for position, element in zip(np.ndindex(*x.shape), x.ravel().tolist(), strict=True):
        target = tuple(min(at, n - 1) for at, n in zip(position, shape, strict=True))
        totals[target] = combine(totals[target], element) if target in totals else element
    return _objects([totals[target] for target in np.ndindex(*shape)], shape)


def _undecided_element(*_: Element) -> Element:
    raise Undecided


def at_most(a: Element, b: Element) -> bool:
    """Whether a <= b; Undecided when that depends on sizes."""
    if not isinstance(a, SymbolicDim) and not isinstance(b, SymbolicDim):
        return a <= b
    difference = _dim(b) - _dim(a)
    if known_at_least(difference, 0):
        return True
    if known_at_least(-difference, 1):
        return False
    raise Undecided


def _dim(a: Element) -> Dim:
    if isinstance(a, SymbolicDim):
        return a
    if a != trunc(a):
        raise Undecided
    return int(a)


def _is_not_zero(a: Element) -> bool:
    return not _equal(a, 0)


def _equal(a: Element, b: Element) -> bool:
    if a == b:
        return True
    return at_most(a, b) and at_most(b, a)


def _least(a: Element, b: Element) -> Element:
    return a if at_most(a, b) else b


def _greatest(a: Element, b: Element) -> Element:
    return b if at_most(a, b) else a


def _float_divide(a: Element, b: Element) -> Element:
    if isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim):
        quotient = exact_quotient(_dim(a), _dim(b))
        if quotient is None:
            raise Undecided
        return quotient
    if b == 0:
        raise Undecided
    return a / b


def _divide(a: Element, b: Element) -> Element:
    """Integer division truncates; floor is the same where both are at least 0, or it is even."""
    numerator, denominator = _dim(a), _dim(b)
    if isinstance(numerator, int) and isinstance(denominator, int):
        if denominator == 0:
            return 0
        quotient = abs(numerator) // abs(denominator)
        return quotient if (numerator < 0) == (denominator < 0) else -quotient
    even = exact_quotient(numerator, denominator)
    if even is not None:
        return even
    if known_at_least(numerator, 0) and known_at_least(denominator, 0) and denominator != 0:
        return numerator // denominator
    raise Undecided


def _modulo(a: Element, b: Element) -> Element:
    if isinstance(b, SymbolicDim) or b == 0:
        raise Undecided
    return _dim(a) % int(b)


def _power(a: Element, b: Element) -> Element:
    if isinstance(b, SymbolicDim) or not 0 <= b <= 8 or b != int(b):
        raise Undecided
    result: Element = 1
    for _ in range(int(b)):
        result = _times(result, a)
    return result


def _exactly(function: Callable[..., Element]) -> Callable[[Element, Element], Element]:
    """`function`, of sizes and whole numbers where one operand is a size."""

    def combine(a: Element, b: Element) -> Element:
        if isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim):
            a, b = _dim(a), _dim(b)
        return function(a, b)

    return combine


_plus, _times = _exactly(operator.add), _exactly(operator.mul)


def _rounding(function: Callable[[float], int]) -> Callable[[Element], Element]:
    return lambda a: a if isinstance(a, SymbolicDim) else float(function(a))


def _to_integer(a: Element) -> Element:
    if isinstance(a, SymbolicDim):
        return a
    if isinstance(a, float) and not np.isfinite(a):
        raise Undecided
    return trunc(a)


_CASTS: dict[bool, Callable[..., Element]] = {
    True: lambda a: a if isinstance(a, SymbolicDim) else float(a), False: _to_integer
}  # fmt: skip
UNARY: dict[str, Callable[..., Element]] = {
    "neg": operator.neg,
    "abs": lambda a: a if at_most(0, a) else -a,
    "relu": lambda a: a if at_most(0, a) else 0,
    "floor": _rounding(floor),
    "ceil": _rounding(ceil),
    "round": _rounding(round),
    "not": lambda a: not a,
}
BINARY: dict[str, Callable[..., Element]] = {
    "add": _plus,
    "sub": lambda a, b: _plus(a, -b),
    "mul": _times,
    "div": _divide,
    "mod": _modulo,
    "pow": _power,
    "max": _greatest,
    "min": _least,
    "eq": _equal,
    "le": at_most,
    "lt": lambda a, b: not at_most(b, a),
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
