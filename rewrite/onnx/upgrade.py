"""Models of old opsets, converted to newer ones: mostly the oldest one that lowerings know."""

from __future__ import annotations

from onnx import (
    GraphProto,
    ModelProto,
    TensorProto,
    checker,
    helper,
    shape_inference,
    version_converter,
)

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.checks import OLDEST_OPSET
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.opsets import is_standard


def upgrade(found: ModelApart, opset: int = OLDEST_OPSET) -> ModelApart:
    """A model, converted by the onnx package where its opset is older than `opset`.

    Raises UnsupportedError where that fails.
    """
    versions = [e.version for e in found.proto.opset_import if is_standard(e.domain)]
    if not versions or versions[0] >= opset:
        return found
    model = found.whole()
    try:
        # Neither inference nor the converter survives every model that the checker refuses.
        checker.check_model(_with_some_types(model))
        inferred = shape_inference.infer_shapes(model).graph
        is_ancient = versions[0] < OLDEST_OPSET
        aligned = _with_aligned_axes(model, inferred) if is_ancient else model
        aligned.graph.ClearField("output")
        aligned.graph.output.extend(inferred.output)
        converted = version_converter.convert_version(aligned, opset)
        return ModelApart(converted, {}, found.data)
    except Exception as error:  # the converter raises whatever its C++ throws
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise UnsupportedError(
            f"opset {versions[0]} is not supported, and the onnx package cannot convert it to"
            f" {opset}: {reason.strip()}"
        ) from None


def _with_some_types(model: ModelProto) -> ModelProto:
    """The model with a type and a shape for each output, on which the checker insists."""
    result = ModelProto()
    result.CopyFrom(model)
    for output in result.graph.output:
        tensor = output.type.tensor_type
        tensor.elem_type = tensor.elem_type or TensorProto.FLOAT
        tensor.shape.SetInParent()
    return result


def _with_aligned_axes(model: ModelProto, graph: GraphProto) -> ModelProto:
    """The model without the attribute `axis` of binary ops, which the converter misreads.

    The second operand gets axes of extent 1 at its end instead, as do slopes, one per channel.
    The ranks are those of `graph`.
    """
    values = (*graph.input, *graph.value_info, *graph.output)
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in values}
    ranks |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    result = ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    for node in model.graph.node:
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        copy = result.graph.node.add()
        copy.CopyFrom(node)
        if node.op_type == "PRelu":
            attributes = {"broadcast": 1, "axis": 1}
        if not attributes.get("broadcast") or "axis" not in attributes:
            continue
        x, y = node.input
        after = ranks[x] - attributes["axis"] % ranks[x] - ranks[y]
        kept = [attribute for attribute in node.attribute if attribute.name != "axis"]
        del copy.attribute[:]
        copy.attribute.extend(kept)
        if after > 0:
            copy.input[1] = f"{y} for {node.output[0]}"
            axes = list(range(ranks[y], ranks[y] + after))
            spread = helper.make_node("Unsqueeze", [y], [copy.input[1]], axes=axes)
            result.graph.node.insert(len(result.graph.node) - 1, spread)
    return result
