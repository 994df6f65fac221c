"""Models in one form, where ONNX has several or runtimes take more than it allows.

The domain of ONNX's own ops is "", not "ai.onnx". A negative extent, as Paddle writes it, is an
open one.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorShapeProto,
    TypeProto,
)

from satura.rewrite.onnx.order import inner_graphs, nodes_of
from satura.rewrite.onnx.types import unpacked

_OWN = "ai.onnx"


def normal(model: ModelProto) -> ModelProto:
    """The model in one form; it is itself where it has that."""
    if not any(_named(model)) and not any(_negative(model)):
        return model
    result = ModelProto()
    result.CopyFrom(model)
    for each in [*_named(result)]:
        each.domain = ""
    for dim in [*_negative(result)]:
        dim.ClearField("dim_value")
    for holder in (result, *result.functions):
        versions = {each.SerializeToString(): each for each in holder.opset_import}
        once = [*versions.values()]
        del holder.opset_import[:]
        holder.opset_import.extend(once)
    return result


def _named(model: ModelProto) -> Iterator[OperatorSetIdProto | FunctionProto | NodeProto]:
    """What has the longer name of ONNX's own domain."""
    functions = model.functions
    imports = (each for holder in (model, *functions) for each in holder.opset_import)
    yield from (each for each in (*imports, *functions, *nodes_of(model)) if each.domain == _OWN)


def _negative(model: ModelProto) -> Iterator[TensorShapeProto.Dimension]:
    """The negative extents of the types that a model states."""
    graphs = [model.graph, *(graph for node in nodes_of(model) for graph in inner_graphs(node))]
    for holder in (*graphs, *model.functions):
        for type_ in _types(holder):
            tensor = unpacked(type_)[1].tensor_type
            yield from (dim for dim in tensor.shape.dim if dim.dim_value < 0)


def _types(holder: GraphProto | FunctionProto) -> Iterator[TypeProto]:
    yield from (value.type for value in holder.value_info)
    if isinstance(holder, GraphProto):
        yield from (value.type for value in (*holder.input, *holder.output))
