"""Control flow that data decide, and that so runs on the host: what is known of its results."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, TypeProto, ValueInfoProto, helper, shape_inference

from satura.rewrite.onnx.cut import with_open_sizes
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.order import uses
from satura.rewrite.onnx.types import dim_param, type_proto
from satura.rewrite.types.dims import SymbolicDim


def open_results(
    node: Context, scope: Mapping[str, int], model: ModelProto
) -> dict[str, TypeProto] | None:
    """The types of the results, with a size of its own for each extent that is not known.

    They are those of ONNX's shape inference, and for what a loop passes on, the rank that it has at
    first. None where a rank is not known, or a result is not a tensor.
    """
    read = [name for name in dict.fromkeys(uses(node.proto)) if scope.get(name, -1) >= 0]
    types = {name: node.build.type(scope[name]) for name in read}
    inputs = [helper.make_value_info(name, type_proto(type_)) for name, type_ in types.items()]
    outputs = [name for name in node.proto.output if name]
    graph = helper.make_graph(
        [node.proto], "control flow", inputs, [ValueInfoProto(name=name) for name in outputs]
    )
    alone = helper.make_model(graph, opset_imports=model.opset_import, functions=model.functions)
    alone.ir_version = model.ir_version
    try:
        inferred = shape_inference.infer_shapes(alone, data_prop=True)
    except shape_inference.InferenceError:
        return None
    found = {value.name: value.type for value in inferred.graph.output}
    sizes = {
        dim_param(dim)
        for type_ in types.values()
        for dim in type_.shape
        if isinstance(dim, SymbolicDim)
    }
    results: dict[str, TypeProto] = {}
    for name in outputs:
        type_ = _with_rank(node, name, found[name])
        if not type_.tensor_type.HasField("shape") or not type_.tensor_type.elem_type:
            return None
        results[name] = with_open_sizes(name, type_, sizes)
    return results


def _with_rank(node: Context, name: str, type_: TypeProto) -> TypeProto:
    """The type of a result; what a loop passes on has the rank that it has at first."""
    at = [*node.proto.output].index(name) + 2  # before it stand the number of steps and a condition
    is_passed_on = node.proto.op_type == "Loop" and at < len(node.operands)
    if type_.tensor_type.HasField("shape") or not is_passed_on:
        return type_
    first = node.build.type(node[at])
    return helper.make_tensor_type_proto(type_.tensor_type.elem_type, [None] * first.rank)
