"""Symbolic values: what a small tensor contains, as far as it follows from shapes and constants.

Exporters compute shapes with tensors (Shape, Gather, Mul, Concat, then Reshape). `Values` follows
them over the canonical ops: the value of a node is an object array of ints, bools, floats and
symbolic dims, or None when it is not known. A comparison that cannot be decided for all sizes is a
dim that is 1 where it holds, else 0; where there is none the result is unknown. Quotients of sizes
that do not come out even are fractions, until they are rounded.

Of a value that sizes decide, but no dim expresses, a program has what it is at some sizes: other
sizes need another program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm, trunc

import numpy as np

from satura.rewrite.errors import CallError, ProgramError, UnsupportedError
from satura.rewrite.onnx.asked import Asked, inputs_behind, sizes_behind
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import (
    BinaryFn,
    ReduceFn,
    Shape,
    UnaryFn,
)
from satura.rewrite.types.clamps import is_positive, largest, smallest
from satura.rewrite.types.dims import (
    Dim,
    SymbolicDim,
    exact_quotient,
    known_at_least,
    static,
    symbol,
)
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import DType, TensorType

MAX_INTEGERS = 1024
MAX_FLOATS = 16
_FINEST = 2**8  # parts of a whole: with more of them products of sizes are not exact in floats


@dataclass(frozen=True)
class Ratio:
    """A fraction of sizes, which is exact as long as floats hold its parts."""

    above: Dim
    below: int


Element = int | float | SymbolicDim | Ratio
Truth = bool | Dim
Known = np.ndarray[tuple[int, ...], np.dtype[np.object_]]


class Undecided(Exception):
    """The value depends on data or on sizes."""


class Values:
    """Values of a builder's nodes, computed on demand and once."""

    def __init__(self, build: Tensors, asks: bool = False) -> None:
        self._build = build
        self._asks = asks
        self._known: list[Known | None] = []

    def of(self, index: int) -> Known | None:
        """The value of node `index` for all sizes, or None."""
        known = self._symbolic(index)
        is_open = Ratio if self._build.dtype(index) is not DType.BOOL else (Ratio, SymbolicDim)
        if known is not None and any(isinstance(element, is_open) for element in known.ravel()):
            return None
        return known

    def _symbolic(self, index: int) -> Known | None:
        """As `of`, also of fractions of sizes, and of truths as dims."""
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
        """As `at_some_sizes`, where a shape depends on it.

        Raises Asked where the value follows from those of inputs, and these may be asked for.
        """
        known = self.of(index)
        if known is not None:
            return known
        names = inputs_behind(self._build, index) if self._asks else frozenset()
        if names:
            raise Asked(names)
        return self.at_some_sizes(index)

    def at_some_sizes(self, index: int) -> Known | None:
        """As `of`, and what only sizes decide is known at some sizes of a program."""
        known, truths = self.of(index), self._symbolic(index)
        if known is None and truths is not None and self._build.dtype(index) is DType.BOOL:
            numbers = [self._build.at_some_sizes(dim) for dim in truths.ravel()]
            known = None if None in numbers else _objects(map(bool, numbers), truths.shape)
        elif known is None:
            for name in sorted(sizes_behind(self._build, index)):
                self._build.at_some_sizes(symbol(name))  # raises, and the size is none any more
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
        if len(known) != len(operands) or _is_long_mask(node, known):
            return None
        try:
            return _round_to(node.type.dtype, _apply(node, known))
        except (Undecided, CallError, ProgramError):
            return self._computed(node, known)

    def _computed(self, node: Node, known: list[Known]) -> Known | None:
        """What the reference makes of numbers."""
        numbers = [element for value in known for element in value.ravel()]
        if not numbers or node.op.kind is not Kind.ELEMENTWISE or not _are_numbers(numbers):
            return None
        dtypes = [self._build.dtype(x).numpy for x in node.operands]
        arrays = [value.astype(dtype) for value, dtype in zip(known, dtypes, strict=True)]
        with np.errstate(all="ignore"):
            result = np.asarray(node.op.reference(*arrays, *node.attributes))
        return _objects(result.ravel().tolist(), result.shape)


def _is_small(type_: TensorType) -> bool:
    limit = MAX_FLOATS if type_.dtype.is_float else MAX_INTEGERS
    is_static = all(isinstance(extent, int) for extent in type_.shape)  # b x 0 elements are not
    return is_static and isinstance(type_.size, int) and type_.size <= limit


def _is_long_mask(node: Node, known: list[Known]) -> bool:
    """Whether it compares sizes with more numbers than decide shapes."""
    is_long = node.type.dtype is DType.BOOL and static(node.type.size) > MAX_FLOATS
    return is_long and not all(_are_numbers(value.ravel().tolist()) for value in known)


def _are_numbers(elements: Sequence[object]) -> bool:
    return not any(isinstance(element, SymbolicDim | Ratio) for element in elements)


def _objects(elements: Iterable[object], shape: tuple[int, ...]) -> Known:
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
        if attribute.name in _LOGIC and node.type.dtype is not DType.BOOL:
            raise Undecided  # bits of integers
        return _map(BINARY.get(attribute.name, _undecided_element), known)
    if node.op.name == "select":
        return _map(_chosen, known)
    if node.op.name == "cast" and isinstance(attribute, DType):
        return _map(_is_not_zero if attribute is DType.BOOL else _CASTS[attribute.is_float], known)
    if isinstance(attribute, ReduceFn) and node.op.kind is Kind.REDUCTION:
        return _reduce(node, known[0])
    raise Undecided


def _round_to(dtype: DType, value: Known) -> Known:
    """Numbers as the element type stores them: integers wrap."""

    def stored(element: Element) -> Element:
        if isinstance(element, SymbolicDim | Ratio):
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


def at_most(a: Element, b: Element) -> Truth:
    """Whether a <= b: a dim that is 0 or 1 where that depends on sizes."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a <= b
    less, more = _ratio(a), _ratio(b)
    difference = more.above * less.below - less.above * more.below
    if known_at_least(difference, 0):
        return True
    if known_at_least(-difference, 1):
        return False
    found = is_positive(difference + 1)
    if found is None:
        raise Undecided
    return found


def _dim(a: Element) -> Dim:
    if isinstance(a, SymbolicDim):
        return a
    if isinstance(a, Ratio) or a != trunc(a):
        raise Undecided
    return int(a)


def _ratio(a: Element) -> Ratio:
    """An element as a fraction; of a float only where its products are exact, too."""
    if isinstance(a, Ratio):
        return a
    if isinstance(a, SymbolicDim | int):
        return Ratio(a, 1)
    exact = Fraction(a) if np.isfinite(a) else Fraction(1, 2 * _FINEST)
    if exact.denominator > _FINEST:
        raise Undecided
    return Ratio(exact.numerator, exact.denominator)


def _reduced(above: Dim, below: int) -> Element:
    whole = exact_quotient(above, below)
    return Ratio(above, below) if whole is None else whole


def _not(a: Truth) -> Truth:
    return 1 - a if isinstance(a, SymbolicDim) else not a


def _and(a: Truth, b: Truth) -> Truth:
    return a * b if isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim) else a and b


def _or(a: Truth, b: Truth) -> Truth:
    return _not(_and(_not(a), _not(b)))


def _chosen(condition: Truth, a: Element, b: Element) -> Element:
    if isinstance(condition, SymbolicDim):
        return a if a == b else _plus(_times(condition, a), _times(1 - condition, b))
    return a if condition else b


def _is_not_zero(a: Element) -> Truth:
    return _not(_equal(a, 0))


def _equal(a: Element, b: Element) -> Truth:
    return True if a == b else _and(at_most(a, b), at_most(b, a))


def _least(a: Element, b: Element) -> Element:
    is_less = at_most(a, b)
    if isinstance(is_less, SymbolicDim):
        return _decided(smallest(_dim(a), _dim(b)))
    return a if is_less else b


def _greatest(a: Element, b: Element) -> Element:
    is_less = at_most(a, b)
    if isinstance(is_less, SymbolicDim):
        return _decided(largest(_dim(a), _dim(b)))
    return b if is_less else a


def _decided(dim: Dim | None) -> Dim:
    if dim is None:
        raise Undecided
    return dim


def _float_divide(a: Element, b: Element) -> Element:
    if isinstance(b, SymbolicDim):
        return _decided(exact_quotient(_dim(a), b))
    if b == 0 or isinstance(b, Ratio):
        raise Undecided
    if isinstance(a, int | float):
        return a / b
    above, below = _ratio(a), _ratio(abs(b))
    sign = 1 if b > 0 else -1
    return _reduced(above.above * below.below * sign, above.below * static(below.above))


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
    if isinstance(b, SymbolicDim | Ratio) or b == 0:
        raise Undecided
    return _dim(a) % int(b)


def _power(a: Element, b: Element) -> Element:
    if isinstance(b, SymbolicDim | Ratio) or not 0 <= b <= 8 or b != int(b):
        raise Undecided
    result: Element = 1
    for _ in range(int(b)):
        result = _times(result, a)
    return result


def _plus(a: Element, b: Element) -> Element:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a + b
    one, other = _ratio(a), _ratio(b)
    parts = lcm(one.below, other.below)
    first, second = (each.above * (parts // each.below) for each in (one, other))
    return _reduced(first + second, parts)


def _times(a: Element, b: Element) -> Element:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a * b
    one, other = _ratio(a), _ratio(b)
    return _reduced(one.above * other.above, one.below * other.below)


def _minus(a: Element) -> Element:
    return _times(a, -1)


def _floor(a: Element) -> Element:
    if isinstance(a, Ratio):
        return a.above // a.below
    return a if isinstance(a, SymbolicDim) else float(floor(a))


def _round(a: Element) -> Element:
    if isinstance(a, Ratio):
        raise Undecided
    return a if isinstance(a, SymbolicDim) else float(round(a))


def _to_integer(a: Element) -> Element:
    if isinstance(a, Ratio):
        return _floor(a) if known_at_least(a.above, 0) else _decided(None)
    if isinstance(a, SymbolicDim):
        return a
    if isinstance(a, float) and not np.isfinite(a):
        raise Undecided
    return trunc(a)


_CASTS: dict[bool, Callable[..., Element]] = {
    True: lambda a: a if isinstance(a, SymbolicDim | Ratio) else float(a), False: _to_integer
}  # fmt: skip
UNARY: dict[str, Callable[..., Element]] = {
    "neg": _minus,
    "abs": lambda a: _greatest(a, _minus(a)),
    "relu": lambda a: _greatest(a, 0),
    "floor": _floor,
    "ceil": lambda a: _minus(_floor(_minus(a))),
    "round": _round,
    "not": _not,
}
BINARY: dict[str, Callable[..., Element]] = {
    "add": _plus,
    "sub": lambda a, b: _plus(a, _minus(b)),
    "mul": _times,
    "div": _divide,
    "mod": _modulo,
    "pow": _power,
    "max": _greatest,
    "min": _least,
    "eq": _equal,
    "le": at_most,
    "lt": lambda a, b: _not(at_most(b, a)),
}
_LOGIC: dict[str, Callable[..., Element]] = {
    "and": _and, "or": _or, "xor": lambda a, b: _not(_equal(a, b)),
}  # fmt: skip
BINARY |= _LOGIC
