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

import numpy as np

from satura.rewrite.errors import CallError, ProgramError, UnsupportedError, advice
from satura.rewrite.onnx.asked import Asked, inputs_behind, sizes_behind
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.size_arithmetic import (
    Arithmetic,
    Assumed,
    Element,
    Ratio,
    Undecided,
    chosen,
    float_divide,
    plus,
    times,
    undecided,
)
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import (
    BinaryFn,
    ReduceFn,
    Shape,
    UnaryFn,
)
from satura.rewrite.types.dims import Dim, SymbolicDim, monomials_of, static, symbol, symbols_of
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import DType, TensorType

MAX_INTEGERS = 1024
MAX_FLOATS = 16
_MOST_TIMES = 1 << 16  # of a size that 32 bits hold as many times
_EXACT = 1 << 24  # f32 holds all integers up to it

Known = np.ndarray[tuple[int, ...], np.dtype[np.object_]]


class Values:
    """Values of a builder's nodes, computed on demand and once."""

    def __init__(
        self, build: Tensors, asks: bool = False, data: frozenset[str] = frozenset()
    ) -> None:
        """One that `asks` does so for values of inputs, but of those that are `data`."""
        self._build = build
        self.asks, self._data = asks, data
        self._known: list[Known | None] = []
        self._extents: dict[Dim, None] = {}
        self._for_all_sizes = Arithmetic(extents=self._extents.keys())

    def of(self, index: int) -> Known | None:
        """The value of node `index` for all sizes, or None."""
        return self._of_dims(index, self._symbolic(index))

    def _of_dims(self, index: int, known: Known | None) -> Known | None:
        """The value of node `index` where it has neither fractions of sizes nor truths as dims."""
        is_open = Ratio if self._build.dtype(index) is not DType.BOOL else (Ratio, SymbolicDim)
        if known is not None and any(isinstance(element, is_open) for element in known.ravel()):
            return None
        return known

    def _symbolic(self, index: int) -> Known | None:
        """As `of`, also of fractions of sizes, and of truths as dims."""
        for position in range(len(self._known), index + 1):
            self._known.append(self._evaluate(self._build.nodes[position]))
        return self._known[index]

    def ask(self, inputs: Mapping[str, TensorType], declared: Mapping[str, TensorType]) -> None:
        """Raise Asked where an input is a sequence, whose ranks no model declares.

        Tensors of sequences are `inputs` that are not `declared`; they are data, since calls may
        come without them.
        """
        self._data |= inputs.keys() - declared.keys()
        found = {name: each for name, each in inputs.items() if isinstance(each, SequenceType)}
        if found and self.asks:
            raise Asked(frozenset(found))
        for name, type_ in found.items():
            ranks, meaning = type_.example
            give = advice(
                f"compile it, or give them when you load it, as in values={{'{name}':"
                f" numpy.array({ranks})}}",
                f"give them, as in --value {name}={','.join(map(str, ranks))}",
            )
            raise UnsupportedError(
                f"input '{name}' is {type_}: the ranks of its tensors decide the program; {give}"
                f" for {meaning}"
            )

    def needed(self, index: int) -> Known | None:
        """As `at_some_sizes`, where a shape depends on it.

        Raises Asked where the value follows from those of inputs, and these may be asked for.
        """
        known = self.of(index)
        if known is not None:
            return known
        names = inputs_behind(self._build, index, self._data) if self.asks else frozenset()
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
            known = None if self._build.for_all_sizes else self._at_most_sizes(index)
        if known is None:
            for name in sorted(sizes_behind(self._build, index)):
                self._build.at_some_sizes(symbol(name))  # raises, and the size is none any more
        return known

    def sizes_deciding(self, index: int) -> frozenset[str]:
        """The sizes that decide the value of node `index`; none where data are behind it."""
        known = self._symbolic(index)
        if known is None or not all(isinstance(x, SymbolicDim) for x in known.ravel()):
            return sizes_behind(self._build, index)
        return symbols_of(known.ravel())

    def _at_most_sizes(self, index: int) -> Known | None:
        """As `of`, where comparisons come out as at some sizes: conditions say so."""
        cone, pending = {index}, [index]
        while pending:
            position = pending.pop()
            if self._symbolic(position) is None:
                fresh = set(self._build.nodes[position].operands) - cone
                cone |= fresh
                pending += fresh
        assumed = Assumed(self._build.at_likely_sizes)
        arithmetic = Arithmetic(assumed, self._extents.keys())
        found: dict[int, Known] = {}
        for position in sorted(cone):
            known = self._symbolic(position)
            if known is None:
                node = self._build.nodes[position]
                try:
                    operands = [found[x] for x in node.operands]
                    if not operands or not _is_small(node.type) or _is_long_mask(node, operands):
                        return None
                    known = _apply(node, operands, arithmetic)
                    known = _round_to(node.type.dtype, known, arithmetic)
                except (Undecided, CallError, ProgramError):
                    return None
            found[position] = known
        known = self._of_dims(index, found[index])
        for dim in assumed.natural if known is not None else ():
            self._build.need_at_least(dim, 0)
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
            self._extents |= dict.fromkeys(shape.dims)
            return _objects(shape.dims, ())
        operands = [self._known[index] for index in node.operands]
        known = [value for value in operands if value is not None]
        if len(known) != len(operands) or _is_long_mask(node, known):
            return None
        every = self._for_all_sizes
        try:
            return _round_to(node.type.dtype, _apply(node, known, every), every)
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


def _apply(node: Node, known: list[Known], arithmetic: Arithmetic) -> Known:
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
        return _map(arithmetic.unary.get(attribute.name, undecided), known)
    if isinstance(attribute, BinaryFn):
        if attribute.name == "div" and node.type.dtype.is_float:
            return _map(float_divide, known)
        if attribute.name in arithmetic.logic and node.type.dtype is not DType.BOOL:
            raise Undecided  # bits of integers
        return _map(arithmetic.binary.get(attribute.name, undecided), known)
    if node.op.name == "select":
        return _map(chosen, known)
    if node.op.name == "cast" and isinstance(attribute, DType):
        if attribute is DType.BOOL:
            return _map(arithmetic.is_not_zero, known)
        return _map(arithmetic.converted(attribute.is_float), known)
    if isinstance(attribute, ReduceFn) and node.op.kind is Kind.REDUCTION:
        return _reduce(node, known[0], arithmetic)
    raise Undecided


def _round_to(dtype: DType, value: Known, arithmetic: Arithmetic) -> Known:
    """Numbers as the element type stores them: integers wrap.

    Raises Undecided for sizes in a type that does not hold those that tensors have, in 32 bits
    many times a size, and for products of sizes in floats that may round them.
    """
    is_small = dtype is not DType.BOOL and dtype.itemsize < DType.I32.itemsize
    is_short = dtype.is_integer and dtype.itemsize == DType.I32.itemsize

    def stored(element: Element) -> Element:
        if isinstance(element, SymbolicDim | Ratio):
            if is_small or (is_short and _most_times(element) > _MOST_TIMES):
                raise Undecided
            if dtype is DType.F32 and isinstance(element, SymbolicDim):
                _check_exact(element, arithmetic)
            return element
        if dtype.is_float:
            with np.errstate(over="ignore"):
                return float(np.asarray(element).astype(dtype.numpy))
        least, most = dtype.bounds if dtype.is_integer else (element, element)
        if isinstance(element, int) and not least <= element <= most:
            return (element - least) % (most - least + 1) + least
        return element

    return _map(stored, [value])


def _check_exact(dim: SymbolicDim, arithmetic: Arithmetic) -> None:
    """Raise Undecided for a product of sizes that f32 may round."""
    is_product = any(len(monomial) > 1 for monomial, _ in monomials_of(dim))
    if is_product and not arithmetic.is_natural(_EXACT - dim):
        raise Undecided


def _most_times(element: SymbolicDim | Ratio) -> int:
    """The largest coefficient of sizes."""
    dim = element.above if isinstance(element, Ratio) else element
    return max(abs(coefficient) for _, coefficient in monomials_of(dim))


def _map(function: Callable[..., object], known: list[Known]) -> Known:
    result = np.empty(known[0].shape, object)
    for position in np.ndindex(*known[0].shape):
        result[position] = function(*(value[position] for value in known))
    return result


def _reduce(node: Node, x: Known, arithmetic: Arithmetic) -> Known:
    least, greatest = arithmetic.least_of, arithmetic.greatest_of
    step = {"sum": plus, "prod": times, "min": least, "max": greatest}
    if node.op.name != "reduce" or not x.size:
        raise Undecided
    combine = step[str(node.attributes[0])]
    shape = tuple(map(static, node.type.shape))
    totals: dict[tuple[int, ...], Element] = {}
    for position, element in zip(np.ndindex(*x.shape), x.ravel().tolist(), strict=True):
        target = tuple(min(at, n - 1) for at, n in zip(position, shape, strict=True))
        totals[target] = combine(totals[target], element) if target in totals else element
    return _objects([totals[target] for target in np.ndindex(*shape)], shape)
