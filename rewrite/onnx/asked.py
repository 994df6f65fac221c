"""Inputs whose values decide shapes: which they are, and the program for given values of them.

Axes, sizes, pads, starts, the k of a top-k, the number of steps of a loop: a model may take them as
inputs, but a program has static ranks and its shapes follow from sizes. So such values are bound
when the program is made, as constants, and belong to the key under which it is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from satura.rewrite.errors import CallError
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.attributes import Parameter, Shape
from satura.rewrite.types.dims import SymbolicDim, symbols_of
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.shown import refused_kind
from satura.rewrite.types.tensor_type import Array, DType, TensorType

LARGEST = 64
"""Elements of an input that may decide a shape: more are data."""


class Asked(Exception):
    """A shape depends on the values of inputs, which are to be given when the model is loaded."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(f"the values of {sorted(names)} decide shapes")
        self.names = names


def inputs_behind(build: Tensors, index: int, data: Collection[str] = ()) -> frozenset[str]:
    """The inputs that node `index` is computed from; none where one of them is data.

    Data is what is called so, what `may_decide` says, and behind truths also what is of open
    length: a mask is of data, and no axis or size is.
    """
    is_mask = build.dtype(index) is DType.BOOL
    names: set[str] = set()
    pending, seen = [index], {index}
    while pending:
        node = build.nodes[pending.pop()]
        parameter = node.attributes[0] if node.attributes else None
        if isinstance(parameter, Parameter):
            is_open = isinstance(parameter.type.size, SymbolicDim)
            is_data = parameter.name in data or not may_decide(parameter.type)
            if is_data or (is_mask and is_open):
                return frozenset()
            names.add(parameter.name)
        fresh = set(node.operands) - seen
        seen |= fresh
        pending += fresh
    return frozenset(names)


def sizes_behind(build: Builder, index: int) -> frozenset[str]:
    """The sizes that node `index` is computed from; none where data or chance are behind it."""
    sizes: frozenset[str] = frozenset()
    pending, seen = [index], {index}
    while pending:
        node = build.nodes[pending.pop()]
        if node.op.name in ("input", "host"):
            return frozenset()
        shapes = [each.dims for each in node.attributes if isinstance(each, Shape)]
        sizes |= node.type.symbols | symbols_of(dim for dims in shapes for dim in dims)
        fresh = set(node.operands) - seen
        seen |= fresh
        pending += fresh
    return sizes


def may_decide(type_: TensorType) -> bool:
    """Whether the values of an input of this type may be asked for: others are data.

    They are what has more than one axis or more than LARGEST elements, and floats of open length:
    as many scales as there are axes have a fixed one.
    """
    if isinstance(type_.size, SymbolicDim):
        return type_.rank == 1 and not type_.dtype.is_float
    return type_.rank <= 1 and type_.size <= LARGEST


def bind_inputs(
    types: Mapping[str, TensorType], values: Mapping[str, Array]
) -> tuple[dict[str, TensorType], dict[str, Array]]:
    """The types of the inputs that stay, and the `values` of those that do not.

    The sizes that these have are no longer symbols anywhere. Of a sequence whose ranks are given
    its tensors stay. Raises CallError for values of no input, or of another type than their input.
    """
    sizes: dict[str, int] = {}
    for name, value in values.items():
        if name not in types:
            raise CallError(f"there is no input {name!r}; the inputs are {list(types)}")
        expected, shown = types[name], refused_kind(value)
        if value.dtype != expected.dtype.numpy or value.ndim != expected.rank:
            raise CallError(f"input {name!r} must be {expected}, not {shown}")
        for dim, extent in zip(expected.shape, value.shape, strict=True):
            known = dim
            if isinstance(dim, SymbolicDim):
                known = extent if dim.name is None else sizes.setdefault(dim.name, extent)
            if known != extent:
                raise CallError(f"input {name!r} must be {expected}, not {shown}")
    kept: dict[str, TensorType] = {}
    for name, type_ in types.items():
        if not isinstance(type_, SequenceType):
            kept |= {} if name in values else {name: _at(type_, sizes)}
        else:
            kept |= type_.members(name, values[name]) if name in values else {name: type_}
    return kept, dict(values)


def _at(type_: TensorType, sizes: Mapping[str, int]) -> TensorType:
    return type_.with_shape(
        tuple(evaluate(dim, sizes) if symbols_of([dim]) <= sizes.keys() else dim
              for dim in type_.shape)
    )  # fmt: skip
