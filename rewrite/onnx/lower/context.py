"""What a lowering sees of its node, and the registry of lowerings.

@lowering("Transpose")
def transpose(node: Context) -> int:
    perm = node.integers("perm") or tuple(reversed(range(node.build.rank(node[0]))))
    return node.build.transpose(node[0], perm)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps

import numpy as np
from onnx import AttributeProto, NodeProto, helper

from satura.rewrite.errors import ModelError, SaturaError, UnsupportedError, advice
from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.order import label
from satura.rewrite.onnx.values import Known, Values
from satura.rewrite.types.dims import Dim, SymbolicDim, symbols_of
from satura.rewrite.types.tensor_type import Array, DType


class NoLowering(Exception):
    """This form of the op has no lowering: its function body or the host takes it."""


class UnknownValue(UnsupportedError):
    """An operand that decides a shape depends on data."""


@dataclass(frozen=True)
class Context:
    """One ONNX node with its operands lowered; `node[i]` is operand i."""

    build: Tensors
    values: Values
    proto: NodeProto
    opset: int
    operands: tuple[int | None, ...]

    def __getitem__(self, position: int) -> int:
        """Operand number `position`; ModelError where it is missing."""
        operand = self.optional(position)
        if operand is None:
            raise self.wrong(f"input {position} is missing")
        return operand

    def optional(self, position: int) -> int | None:
        """Operand number `position`, or None where it is left out."""
        return self.operands[position] if position < len(self.operands) else None

    @property
    def given(self) -> list[int]:
        """All operands of a node with any number of them."""
        return [self[position] for position in range(len(self.operands))]

    @property
    def wanted(self) -> tuple[bool, ...]:
        """For each output whether it has a name."""
        return tuple(map(bool, self.proto.output))

    def tensor(self, position: int) -> Value:
        """Operand number `position` in arithmetic."""
        return Value(self.build, self[position])

    def wrong(self, reason: str) -> ModelError:
        return ModelError(f"{label(self.proto)}: {reason}")

    def unsupported(self, reason: str) -> UnsupportedError:
        return UnsupportedError(f"{label(self.proto)}: {reason}")

    def unknown(self, reason: str) -> UnknownValue:
        return UnknownValue(f"{label(self.proto)}: {reason}")

    # Attributes

    def _attribute(self, name: str) -> AttributeProto | None:
        return next((a for a in self.proto.attribute if a.name == name), None)

    def has(self, name: str) -> bool:
        return self._attribute(name) is not None

    def integer(self, name: str, default: int = 0) -> int:
        found = self._attribute(name)
        return default if found is None else int(found.i)

    def number(self, name: str, default: float = 0.0) -> float:
        """A float attribute, with the value that its f32 has."""
        found = self._attribute(name)
        return float(np.float32(default)) if found is None else float(found.f)

    def text(self, name: str, default: str = "") -> str:
        found = self._attribute(name)
        if found is None:
            return default
        try:
            return found.s.decode()
        except UnicodeDecodeError:
            raise self.wrong(f"attribute '{name}' is not text") from None

    def integers(self, name: str) -> tuple[int, ...] | None:
        found = self._attribute(name)
        return None if found is None else tuple(map(int, found.ints))

    def numbers(self, name: str) -> tuple[float, ...] | None:
        found = self._attribute(name)
        return None if found is None else tuple(map(float, found.floats))

    def attribute_value(self, name: str) -> object:
        found = self._attribute(name)
        return None if found is None else helper.get_attribute_value(found)

    # Values that shapes depend on

    def value(self, position: int) -> Known:
        """The symbolic value of an operand. Raises UnknownValue where it depends on data."""
        known = self.values.needed(self[position])
        if known is None:
            name = self.proto.input[position]
            give = advice("give its value when you load the model", "give it by --value NAME=VALUE")
            raise self.unknown(
                f"input {position} ('{name}') decides a shape, but its value"
                f" is not known from constants and shapes; make it a constant, {give}, or declare"
                " the shape of the result"
            )
        return known

    def dims(self, position: int, count: int | None = None) -> tuple[Dim, ...]:
        """The value of an operand that holds whole numbers, so many of them, flat."""
        elements = self.value(position).ravel().tolist()
        if count is not None and len(elements) != count:
            raise self.wrong(f"input {position} has {len(elements)} elements, not {count}")
        if any(isinstance(element, float) and element != int(element) for element in elements):
            raise self.wrong(f"input {position} must hold whole numbers, not {elements}")
        return tuple(e if isinstance(e, SymbolicDim) else int(e) for e in elements)

    def extents(self, position: int, count: int | None = None) -> tuple[Dim, ...]:
        """The value of an operand that holds extents: calls where one is negative are refused.

        Raises ModelError where one is negative for all sizes.
        """
        dims = self.dims(position, count)
        for dim in dims:
            if isinstance(dim, int) and dim < 0:
                raise self.wrong(f"input {position} has the negative extent {dim}")
            self.build.need_extent(dim)
        return dims

    def fixed(self, position: int, count: int | None = None) -> tuple[int, ...]:
        """As `dims`; where sizes decide the value, it is that at some sizes."""
        return tuple(self.fixed_dim(dim, f"input {position}") for dim in self.dims(position, count))

    def fixed_dim(self, dim: Dim, what: str) -> int:
        """`dim` at some sizes. Raises UnknownValue where the program is for all sizes."""
        number = self.build.at_some_sizes(dim)
        if number is None:
            sizes = " and ".join(sorted(symbols_of([dim])))
            raise self.unknown(
                f"{what} depends on {sizes}, and this program is for all"
                f" sizes: declare inputs with numbers for {sizes}"
            )
        return number

    def array(self, position: int) -> Array:
        """The value of a constant operand, of any size and dtype."""
        node = self.build.nodes[self[position]]
        if node.op.name == "constant":
            return node.constant.array
        value = self.value(position)
        if any(isinstance(element, SymbolicDim) for element in value.ravel()):
            raise self.unsupported(f"input {position} must not depend on sizes")
        return value.astype(node.type.dtype.numpy)

    def static(self, dims: Sequence[Dim], what: str) -> tuple[int, ...]:
        """`dims` at some sizes. Raises UnknownValue naming `what` as `fixed_dim` does."""
        return tuple(self.fixed_dim(dim, what) for dim in dims)

    # Axes

    def axis(self, value: int, rank: int) -> int:
        """`value` counted from 0. Raises ModelError outside [-rank, rank)."""
        if not -rank <= value < rank:
            raise self.wrong(f"axis {value} is out of range for rank {rank}")
        return value % rank

    def axes(self, values: Sequence[int], rank: int) -> tuple[int, ...]:
        """Sorted axes counted from 0; ModelError where one is out of range or comes twice."""
        result = tuple(sorted(self.axis(value, rank) for value in values))
        if len(set(result)) != len(result):
            raise self.wrong(f"axes {list(values)} name an axis twice")
        return result

    def common_dtype(self, *operands: int) -> DType:
        """The dtype that all operands have; ModelError where they differ."""
        dtypes = [self.build.dtype(x) for x in operands]
        if any(dtype is not dtypes[0] for dtype in dtypes):
            shown = ", ".join(dtype.value for dtype in dtypes)
            raise self.wrong(f"its inputs have different element types: {shown}")
        return dtypes[0]


Lowered = int | Sequence[int]
Lowering = Callable[[Context], Lowered]
LOWERINGS: dict[str, Lowering] = {}


def lowering(*op_types: str) -> Callable[[Lowering], Lowering]:
    """Register a function as the lowering of these ops of ONNX's own domain."""

    def register(function: Lowering) -> Lowering:
        for op_type in op_types:
            if op_type in LOWERINGS:
                raise SaturaError(f"two lowerings for {op_type}")
            LOWERINGS[op_type] = function
        return function

    return register


def computed_wide(lower: Lowering) -> Lowering:
    """`lower` where it sees f16 and bf16 operands in f32; its results go back to their type.

    Without it every op that it builds rounds, so that a sum overflows before it is divided.
    """

    @wraps(lower)
    def lower_wide(node: Context) -> Lowered:
        build = node.build
        dtype = build.dtype(node[0])
        if dtype is dtype.compute:
            return lower(node)
        wide = [x if x is None else _widen(build, x) for x in node.operands]
        results = lower(replace(node, operands=tuple(wide)))
        if isinstance(results, int):
            return build.converted(results, dtype)
        return [build.converted(result, dtype) for result in results]

    return lower_wide


def _widen(build: Tensors, x: int) -> int:
    return build.converted(x, build.dtype(x).compute)
