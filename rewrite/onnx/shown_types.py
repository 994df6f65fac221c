"""Types of a model's inputs and outputs as users are told them, where its program has fixed sizes.

A program may have numbers for sizes that decide, say, the steps of a loop. Other sizes have other
programs, so to a caller such an extent is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from onnx import TensorShapeProto

from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.inferred import InferenceFailed, inferred
from satura.rewrite.onnx.inputs import with_named_sizes
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, SymbolicDim, symbol, symbols_of
from satura.rewrite.types.size_condition import FixedSize
from satura.rewrite.types.tensor_type import TensorType, open_sizes

Types = dict[str, TensorType]


def shown_types(
    model: ModelApart, program: Program, declared: Mapping[str, TensorType]
) -> tuple[Types, Types] | None:
    """The types of inputs and outputs at all sizes for which `model` has programs, of which
    `program` is one and `declared` are the inputs; None where that has fixed no size.

    An extent of an output has the name that the model or ONNX's shape inference has for it, or one
    of its own; it is a number where these say so.
    """
    fixed = symbols_of(each.left for each in program.taken if isinstance(each, FixedSize))
    if not fixed:
        return None
    inputs = {
        name: type_.with_shape(
            tuple(
                there if symbols_of([there]) & fixed else here
                for here, there in zip(type_.shape, declared[name].shape, strict=True)
            )
        )
        for name, type_ in program.input_types.items()
    }
    sizes = open_sizes(inputs.values())
    named = with_named_sizes(model)
    stated = _shapes(named)
    outputs = {
        name: _opened(name, program.nodes[index].type, stated.get(name, []), sizes)
        for name, index in program.outputs
    }
    return inputs, outputs


def _shapes(model: ModelApart) -> dict[str, list[TensorShapeProto]]:
    """What the model, and then ONNX's shape inference, say of the outputs' extents."""
    stated = [*model.proto.graph.output]
    with suppress(InferenceFailed):
        stated += inferred(model.proto).graph.output
    found: dict[str, list[TensorShapeProto]] = {}
    for value in stated:
        if value.type.tensor_type.HasField("shape"):
            found.setdefault(value.name, []).append(value.type.tensor_type.shape)
    return found


def _opened(
    name: str, type_: TensorType, stated: Iterable[TensorShapeProto], sizes: frozenset[str]
) -> TensorType:
    """The type of an output, with what is `stated` for numbers that may be others elsewhere."""
    shapes = [shape.dim for shape in stated if len(shape.dim) == type_.rank]
    return type_.with_shape(
        tuple(
            _extent(f"{name}_{axis}", dim, [shape[axis] for shape in shapes], sizes)
            for axis, dim in enumerate(type_.shape)
        )
    )


def _extent(
    name: str, dim: Dim, stated: Iterable[TensorShapeProto.Dimension], sizes: frozenset[str]
) -> Dim:
    if isinstance(dim, SymbolicDim):
        return dim
    for each in stated:
        if each.HasField("dim_value"):
            return dim
        if each.dim_param and (each.dim_param in sizes or not each.dim_param.startswith("unk__")):
            return symbol(each.dim_param)
    while name in sizes:
        name += "_"
    return symbol(name)
