"""Attributes: the frozen Python values that ops carry beside their tensors.

Rules compute on them with their methods (`p[q]`, `window.padded(pad, v)`). A method that has no
answer raises `Refuse`: the rule then does not fire for these values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Self, TypeVar

from satura.rewrite.errors import ProgramError
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, SymbolicDim, known_at_least, operand_text
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import DType, TensorType

Value = TypeVar("Value")


class Refuse(Exception):
    """An attribute function has no answer for these arguments."""


def refuse_unless(condition: bool, reason: str = "condition is false") -> None:
    """Raise `Refuse` where `condition` does not hold."""
    if not condition:
        raise Refuse(reason)


def _check_axes(attribute: object, *names: str) -> None:
    """Raise ProgramError unless fields of these names have as many elements: one per axis."""
    counts = [len(getattr(attribute, name)) for name in names]
    if len(set(counts)) > 1:
        told = ", ".join(f"{count} {name}" for count, name in zip(counts, names, strict=True))
        kind = type(attribute).__name__
        raise ProgramError(f"{kind} with {told}: there has to be one of each per axis")


@dataclass(frozen=True)
class Perm:
    """A permutation of axes: axis i of the result is axis `order[i]` of the operand."""

    order: tuple[int, ...]

    def __getitem__(self, after: Perm) -> Perm:
        """The permutation that does this one first and then `after`."""
        refuse_unless(len(after.order) == len(self.order), "ranks differ")
        return Perm(tuple(self.order[axis] for axis in after.order))

    @property
    def inverse(self) -> Perm:
        return Perm(tuple(sorted(range(len(self.order)), key=self.order.__getitem__)))

    @property
    def is_identity(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    def apply(self, values: Iterable[Value]) -> tuple[Value, ...]:
        """`values` (one per operand axis) in the order of the result's axes."""
        old = tuple(values)
        return tuple(old[axis] for axis in self.order)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.order))}]"


@dataclass(frozen=True)
class Shape:
    """A target shape."""

    dims: tuple[Dim, ...]

    def permuted(self, perm: Perm) -> Shape:
        """The shape of the transposed tensor."""
        return Shape(perm.apply(self.dims))

    def concrete(self, sizes: Mapping[str, int]) -> Shape:
        return Shape(tuple(evaluate(dim, sizes) for dim in self.dims))

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.dims))}]"


@dataclass(frozen=True)
class Axis:
    """One axis, counted from 0."""

    index: int

    def __str__(self) -> str:
        return str(self.index)


@dataclass(frozen=True)
class Axes:
    """A sorted set of axes, counted from 0."""

    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True)
class Padding:
    """How many elements a pad adds before (`lo`) and after (`hi`) each axis; never negative."""

    lo: tuple[Dim, ...]
    hi: tuple[Dim, ...]

    def __post_init__(self) -> None:
        _check_axes(self, "lo", "hi")

    @property
    def is_zero(self) -> bool:
        return all(dim == 0 for dim in (*self.lo, *self.hi))

    def permuted(self, perm: Perm) -> Padding:
        """The same padding over transposed axes."""
        return Padding(perm.apply(self.lo), perm.apply(self.hi))

    def concrete(self, sizes: Mapping[str, int]) -> Padding:
        return Padding(
            tuple(evaluate(dim, sizes) for dim in self.lo),
            tuple(evaluate(dim, sizes) for dim in self.hi),
        )

    def __str__(self) -> str:
        pairs = zip(self.lo, self.hi, strict=True)
        return f"[{', '.join(f'{lo}:{hi}' for lo, hi in pairs)}]"


@dataclass(frozen=True)
class Slices:
    """Per axis the first index, the number of elements taken, and the step (which may be < 0)."""

    starts: tuple[Dim, ...]
    sizes: tuple[Dim, ...]
    steps: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_axes(self, "starts", "sizes", "steps")

    def permuted(self, perm: Perm) -> Slices:
        """The same slices over transposed axes."""
        return Slices(perm.apply(self.starts), perm.apply(self.sizes), perm.apply(self.steps))

    def concrete(self, sizes: Mapping[str, int]) -> Slices:
        return Slices(
            tuple(evaluate(dim, sizes) for dim in self.starts),
            tuple(evaluate(dim, sizes) for dim in self.sizes),
            self.steps,
        )

    @property
    def numpy(self) -> tuple[slice, ...]:
        """NumPy slices; only for concrete values."""
        result = []
        for start, size, step in zip(self.starts, self.sizes, self.steps, strict=True):
            assert isinstance(start, int) and isinstance(size, int)
            stop = start + size * step
            result.append(slice(start, None if stop < 0 else stop, step) if size else slice(0, 0))
        return tuple(result)

    def __str__(self) -> str:
        starts, sizes = (map(operand_text, dims) for dims in (self.starts, self.sizes))
        axes = zip(starts, sizes, self.steps, strict=True)
        return f"[{', '.join(f'{a}+{n}' + (f'*{s}' if s != 1 else '') for a, n, s in axes)}]"


def _static(dim: Dim) -> int:
    if isinstance(dim, SymbolicDim):
        raise Refuse(f"padding {dim} is symbolic")
    return dim


@dataclass(frozen=True)
class Window:
    """A sliding window: per axis its size, stride, dilation and the border it may reach into.

    Positions outside the operand count as elements of value `fill`. `lo` and `hi` say how far the
    operand is extended at both ends, in elements.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    lo: tuple[int, ...]
    hi: tuple[int, ...]
    fill: Scalar

    def __post_init__(self) -> None:
        _check_axes(self, "sizes", "strides", "dilations", "lo", "hi")

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def has_border(self) -> bool:
        return any(self.lo) or any(self.hi)

    def outer(self, shape: Iterable[Dim]) -> tuple[Dim, ...]:
        """Extents of the result: 0 where the window is one too long, Refuse where it is longer."""
        steps = (self.sizes, self.strides, self.dilations)
        same = all(len(part) == self.rank for part in (*steps, self.lo, self.hi))
        refuse_unless(same, f"the parts of window {self} differ in length")
        positive = all(number >= 1 for part in steps for number in part)
        refuse_unless(positive, f"window {self} has a size, stride or dilation below 1")
        result: list[Dim] = []
        for axis, dim in enumerate(shape):
            reach = self.dilations[axis] * (self.sizes[axis] - 1) + 1
            span = dim + self.lo[axis] + self.hi[axis] - reach
            if not known_at_least(span + 1, 0) and isinstance(span, int):
                raise Refuse(f"window of reach {reach} does not fit axis {axis} of {dim}")
            stride = self.strides[axis]
            result.append(span + 1 if stride == 1 else span // stride + 1)
        return tuple(result)

    def padded(self, padding: Padding, value: Scalar) -> Window:
        """The window that reads what this one reads from an operand padded with `value`."""
        refuse_unless(len(padding.lo) == self.rank, "ranks differ")
        refuse_unless(not self.has_border or self.fill == value, "the borders' values differ")
        return replace(
            self,
            lo=tuple(a + _static(b) for a, b in zip(self.lo, padding.lo, strict=True)),
            hi=tuple(a + _static(b) for a, b in zip(self.hi, padding.hi, strict=True)),
            fill=value,
        )

    def permuted(self, perm: Perm) -> Window:
        """The same window over transposed axes."""
        refuse_unless(len(perm.order) == self.rank, "ranks differ")
        at = perm.apply
        sizes, strides, dilations = at(self.sizes), at(self.strides), at(self.dilations)
        return Window(sizes, strides, dilations, at(self.lo), at(self.hi), self.fill)

    def __str__(self) -> str:
        axes = zip(self.sizes, self.strides, self.dilations, self.lo, self.hi, strict=False)
        text = ", ".join(
            f"{k}" + (f"/{s}" if s != 1 else "") + (f"~{d}" if d != 1 else "")
            + (f"({lo}:{hi})" if lo or hi else "")
            for k, s, d, lo, hi in axes
        )  # fmt: skip
        return f"[{text}] fill {self.fill}"


@dataclass(frozen=True)
class Groups:
    """In how many groups a convolution's channels are split."""

    count: int

    def __str__(self) -> str:
        return str(self.count)


@dataclass(frozen=True)
class UnaryFn:
    """Name of a scalar function of one argument, see `rewrite.ops.elementwise`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class BinaryFn:
    """Name of a scalar function of two arguments, see `rewrite.ops.elementwise`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ReduceFn:
    """How elements are combined: sum, prod, max or min."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Parameter:
    """Name and type of a graph input, and what the program needs of the sizes."""

    name: str
    type: TensorType
    conditions: tuple[SizeCondition, ...] = ()

    def concrete(self, sizes: Mapping[str, int]) -> Parameter:
        for condition in self.conditions:
            condition.check(sizes)
        return Parameter(self.name, self.type.concrete(sizes))

    def __str__(self) -> str:
        where = (
            f" where {each.left} {each.relation} {each.right} for {json.dumps(each.place)}"
            for each in self.conditions
        )
        return "".join([json.dumps(self.name, ensure_ascii=False), *where])


@dataclass(frozen=True)
class Count:
    """A plain number, such as the index of a result."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class HostCall:
    """A node of another domain or without a lowering: a serialised ONNX NodeProto and its types.

    `outputs` are the result types. `salt` tells random nodes apart, so that they are never merged.
    """

    op_type: str
    domain: str
    opset: int
    proto: bytes
    outputs: tuple[TensorType, ...]
    salt: int = 0

    def concrete(self, sizes: Mapping[str, int]) -> HostCall:
        return replace(self, outputs=tuple(type_.concrete(sizes) for type_ in self.outputs))

    def __str__(self) -> str:
        return f"{self.domain + '.' if self.domain else ''}{self.op_type}"


class UserAttribute:
    """Base of the attribute classes that users declare: frozen dataclasses of plain values."""

    def concrete(self, sizes: Mapping[str, int]) -> Self:
        """The value where every symbol has its size; itself unless a subclass says otherwise."""
        return self


Attribute = (
    Perm | Shape | Axis | Axes | Scalar | Padding | Slices | Window | Groups | UnaryFn | BinaryFn
    | ReduceFn | Constant | Parameter | Count | HostCall | DType | UserAttribute
)  # fmt: skip


def concrete_attribute(attribute: Attribute, sizes: Mapping[str, int]) -> Attribute:
    """`attribute` where every symbol has its size from `sizes`."""
    if isinstance(attribute, Shape | Padding | Slices | HostCall | Parameter | UserAttribute):
        return attribute.concrete(sizes)
    return attribute


_MAY_BE_OPEN = (Padding, Slices, UserAttribute)


def is_open(attribute: object) -> bool:
    """Whether a dim of `attribute` depends on sizes."""
    if isinstance(attribute, tuple):
        return any(is_open(part) for part in attribute if type(part) is not int)
    if isinstance(attribute, Shape):
        return is_open(attribute.dims)
    if isinstance(attribute, _MAY_BE_OPEN):
        kind: type = type(attribute)
        return any(is_open(getattr(attribute, field.name)) for field in fields(kind))
    return isinstance(attribute, SymbolicDim)


def may_be_open(sort: type) -> bool:
    """Whether attributes of this class can be open where the result's type is not."""
    return issubclass(sort, _MAY_BE_OPEN)
