"""Emitter: writes an ONNX graph node by node for the saver; tensors are names.

Each method appends nodes and returns the name of their result. A value that is needed often (a
constant, an extent, a cast) is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from onnx import NodeProto, helper
from onnx.defs import get_schema

from satura.rewrite.errors import ProgramError, UnsupportedError
from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.clamps import never_negative
from satura.rewrite.types.constant import Constant, content_digest
from satura.rewrite.types.dims import (
    Dim,
    Monomial,
    Quotient,
    SymbolicDim,
    known_at_least,
    static,
)
from satura.rewrite.types.tensor_type import DType, TensorType

OPSET = 21  # the newest that every onnxruntime which satura is tested with knows
_WITH_WHERE = {
    DType.BF16: DType.F32, DType.I16: DType.I32, DType.U16: DType.I32, DType.U64: DType.I64,
}  # fmt: skip
REDUCTIONS = {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"}
COMMUTING = {
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip",
    "Concat", "Cos", "Cosh", "DequantizeLinear", "Div", "Elu", "Equal", "Erf", "Exp", "Floor",
    "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN",
    "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "Max", "Min",
    "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "QuantizeLinear", "Relu", "Round", "Selu",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Tan",
    "Tanh", "ThresholdedRelu", "Where", "Xor",
}  # fmt: skip
"""Ops of which the transpose of the result is the result of transposes."""
ConstantKey = tuple[bytes, tuple[int, ...]]  # a constant's digest, and the order of its axes


def kernel_type(dtype: DType, others: Mapping[DType, DType] = {}) -> DType:
    """The type whose elements stand for those of `dtype` in an op that moves or chooses them: ONNX
    has none for narrow types, and onnxruntime none for those of `others`."""
    return others.get(dtype, dtype.compute if dtype.is_narrow else dtype)


def op_type_of(function: str, table: Mapping[str, str], module: str) -> str:
    """The ONNX op of a scalar function. Raises UnsupportedError where `table` of a module of the
    saver has none."""
    if function not in table:
        raise UnsupportedError(f"'{function}' cannot be saved: {module} has no ONNX op for it")
    return table[function]


@dataclass(frozen=True)
class Site:
    """One node of a program as the emitter sees it: its operands' names, types and constants.

    `reads` are the operands' indices; a broadcast that ONNX does by itself may be left out.
    """

    node: Node
    reads: tuple[int, ...]
    nodes: tuple[Node, ...]
    name_of: Callable[[int], str]

    def operand(self, position: int) -> str:
        """Name of an operand's tensor."""
        return self.name_of(self.reads[position])

    def type(self, position: int) -> TensorType:
        """Type of an operand."""
        return self.nodes[self.reads[position]].type

    def known(self, position: int) -> Constant | None:
        """The value of an operand that is a constant."""
        node = self.nodes[self.reads[position]]
        return node.constant if node.op.name == "constant" else None


class Emitter:
    """Nodes and initializers of one graph, which has one program or several.

    Names that belong to inputs and outputs of these, or that are `taken`, are not made anew.
    """

    def __init__(self, programs: Sequence[Program], taken: Iterable[str] = ()) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Constant] = {}
        self.makers: dict[str, NodeProto] = {}
        inputs = [each.nodes[index] for each in programs for index in each.inputs]
        self._taken = {*taken, *(node.input_name for node in inputs)}
        self._taken |= {name for each in programs for name, _ in each.outputs}
        self._numbers = count()
        self._interned: dict[ConstantKey, str] = {}
        self._written: dict[tuple[str, ...], str] = {}
        self._equal: dict[bytes, str] = {}
        self._turned: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._transposed: set[str] = set()
        self._sources: dict[str, tuple[str, int]] = {}
        for node in inputs:
            for axis, dim in enumerate(node.type.shape):
                if isinstance(dim, SymbolicDim) and dim.name is not None:
                    self._sources.setdefault(dim.name, (node.input_name, axis))

    def fresh(self) -> str:
        """A name that nothing has."""
        return next(name for name in map("v{}".format, self._numbers) if name not in self._taken)

    def node(self, op_type: str, *operands: str, **attributes: object) -> str:
        """The single result of a new node.

        Where all that an op reads is transposed alike, its result is transposed instead.
        """
        moved = self._before_transposes(op_type, operands, attributes)
        if moved is not None:
            order, sources, changed = moved
            return self.turned(self._appended(op_type, sources, changed), order)
        return self._appended(op_type, [self.ready(x) for x in operands], attributes)

    def _appended(
        self, op_type: str, operands: Sequence[str], attributes: Mapping[str, object]
    ) -> str:
        """The result of a node with these attributes, which equal nodes share."""
        node = helper.make_node(op_type, operands, [])
        node.attribute.extend(helper.make_attribute(*pair) for pair in sorted(attributes.items()))
        key = node.SerializeToString(deterministic=True)
        if key not in self._equal:
            self._equal[key] = self.fresh()
            node.output.append(self._equal[key])
            self.nodes.append(node)
            self.makers[self._equal[key]] = node
        return self._equal[key]

    def turned(self, x: str, order: Sequence[int]) -> str:
        """x with its axes in another order: a Transpose, written where a node reads it."""
        source, before = self.source(x)
        total = tuple(before[axis] for axis in order) if before else tuple(order)
        if list(total) == sorted(total):
            return source
        key = ("Transpose", source, *map(str, total))
        if key not in self._written:
            self._written[key] = self.fresh()
            self._turned[self._written[key]] = (source, total)
        return self._written[key]

    def source(self, x: str) -> tuple[str, tuple[int, ...]]:
        """What x is a transpose of, and the order of its axes; x itself and () where of nothing."""
        return self._turned.get(x, (x, ()))

    def ready(self, x: str) -> str:
        """x, with the Transpose that makes it where it has none yet."""
        source, order = self.source(x)
        if order and x not in self._transposed:
            self._transposed.add(x)
            self.nodes.append(helper.make_node("Transpose", [source], [x], perm=order))
        return x

    def _before_transposes(
        self, op_type: str, operands: Sequence[str], attributes: Mapping[str, object]
    ) -> tuple[tuple[int, ...], list[str], dict[str, object]] | None:
        """The order of the result's axes, and the node on what the operands are transposes of."""
        is_reduction = op_type in REDUCTIONS
        read = operands[:1] if is_reduction else operands
        orders = {self.source(x)[1] for x in read} - {()}
        if len(orders) != 1 or op_type not in COMMUTING | REDUCTIONS:
            return None
        (order,) = orders
        if not all(self.source(x)[1] or self._rank(x) in (0, len(order)) for x in read):
            return None
        back = sorted(range(len(order)), key=order.__getitem__)
        moved = [
            self.constant(self.constants[x], back) if self._rank(x) else self.source(x)[0]
            for x in read
        ]
        attributes = dict(attributes)
        known = get_schema(op_type).attributes
        if "axis" in known and all(self._rank(x) != 0 for x in read):  # one scale has none
            axis = attributes.get("axis", known["axis"].default_value.i)
            assert isinstance(axis, int)
            attributes["axis"] = order[axis]
        if is_reduction:
            given = [order[axis] for x in operands[1:] for axis in self.constants[x].array.tolist()]
            moved += [self.integers(sorted(given)) for _ in operands[1:]]
            if not attributes.get("keepdims", 1):
                all_ = () if attributes.get("noop_with_empty_axes") else order
                kept = [axis for axis in order if axis not in (given or all_)]
                order = tuple(map(sorted(kept).index, kept))
        return order, moved, attributes

    def _rank(self, x: str) -> int | None:
        """The rank of a constant; None for any other tensor."""
        return self.constants[x].type.rank if x in self.constants else None

    def shared(self, op_type: str, *operands: str) -> str:
        """The single result of a node without attributes; equal nodes are written once."""
        key = (op_type, *operands)
        if key not in self._written:
            self._written[key] = self.node(op_type, *operands)
        return self._written[key]

    def constant(self, value: Constant, order: Sequence[int] = ()) -> str:
        """An initializer, with its axes in another order if one is given; stored once."""
        key = (value.digest, tuple(order))
        if key not in self._interned:
            self._interned[key] = self.fresh()
            self.constants[self._interned[key]] = _permute(value, key[1]) if key[1] else value
        return self._interned[key]

    def scalar(self, value: float | int | bool, dtype: DType) -> str:
        """A 0-d initializer."""
        return self.constant(Constant(np.asarray(value).astype(dtype.numpy)))

    def integers(self, values: Sequence[int]) -> str:
        """A 1-d i64 initializer."""
        return self.constant(Constant(np.array(values, np.int64).reshape(len(values))))

    def cast(self, x: str, old: DType, new: DType) -> str:
        """x converted by ONNX's own Cast (no saturation); x itself when the types agree."""
        if old is new:
            return x
        if new.is_narrow and new.is_float:
            return self.node("Cast", x, to=ELEMENT_CODES[new], saturate=0)
        return self.node("Cast", x, to=ELEMENT_CODES[new])

    def where(self, condition: str, x: str, y: str, dtype: DType) -> str:
        """x where the condition holds, else y; also for dtypes without a Where kernel."""
        if dtype is DType.BOOL:
            taken = self.node("And", condition, x)
            return self.node("Or", taken, self.node("And", self.node("Not", condition), y))
        work = kernel_type(dtype, _WITH_WHERE)
        chosen = self.node("Where", condition, self.cast(x, dtype, work), self.cast(y, dtype, work))
        return self.cast(chosen, work, dtype)

    def shape(self, dims: Sequence[Dim]) -> str:
        """`dims` as a 1-d i64 tensor, computed from the inputs' shapes where symbolic."""
        if all(isinstance(dim, int) for dim in dims):
            return self.integers(list(map(static, dims)))
        parts = [self.extent(dim) for dim in dims]
        key = ("Concat", *parts)
        if key not in self._written:
            self._written[key] = self.node("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
        return self._written[key]

    def extent(self, dim: Dim) -> str:
        """`dim` as an i64 tensor of one element."""
        if isinstance(dim, int):
            return self.integers([dim])
        total = ""
        for monomial, coefficient in dim.terms:
            term = self._product(monomial, coefficient)
            total = self.shared("Add", total, term) if total else term
        return total

    def _product(self, monomial: Monomial, coefficient: int) -> str:
        result = self.integers([coefficient]) if coefficient != 1 or not monomial else ""
        for atom in monomial:
            factor = self._size(atom) if isinstance(atom, str) else self._quotient(atom)
            result = self.shared("Mul", result, factor) if result else factor
        return result

    def _size(self, symbol: str) -> str:
        """The size of a symbol, read from the first input that has it as an extent."""
        if symbol not in self._sources:
            raise ProgramError(f"no input has an axis of extent '{symbol}' to read that size from")
        key = ("Shape", symbol)
        if key not in self._written:
            name, axis = self._sources[symbol]
            self._written[key] = self.node("Shape", name, start=axis, end=axis + 1)
        return self._written[key]

    def _quotient(self, atom: Quotient) -> str:
        """Floor division. Of a negative number Div truncates: Mod has the sign of the divisor, so
        what it leaves divides evenly."""
        above, below = self.extent(atom.numerator), self.extent(atom.denominator)
        if never_negative(atom.numerator) and known_at_least(atom.denominator, 0):
            return self.shared("Div", above, below)
        even = self.shared("Sub", above, self.shared("Mod", above, below))
        return self.shared("Div", even, below)


def _permute(value: Constant, order: tuple[int, ...]) -> Constant:
    """`value` with its axes in this order, made when it is written."""
    type_ = TensorType(value.type.dtype, tuple(value.type.shape[axis] for axis in order))
    digest = content_digest(type_, [value.digest, repr(order).encode()])
    return Constant.remade(lambda: np.array(np.transpose(value.array, order)), type_, digest)
