"""What ONNX's shape inference says of models and nodes, whatever its C++ throws."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, NodeProto, TypeProto, helper, shape_inference
from onnx.defs import get_schema

from satura.rewrite.onnx.types import type_proto
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.tensor_type import TensorType


class InferenceFailed(Exception):
    """Why ONNX's shape inference gives no types."""


def inferred(model: ModelProto, strict: bool = False) -> ModelProto:
    """The model with the types that ONNX infers. Raises InferenceFailed where it finds a fault,
    which it looks for where it is `strict`, or does not know a type."""
    try:
        return shape_inference.infer_shapes(model, strict_mode=strict, data_prop=True)
    except Exception as error:  # whatever its C++ throws
        lines = str(error).strip().splitlines()
        raise InferenceFailed(lines[-1] if lines else type(error).__name__) from None


def is_inferred(call: HostCall, operands: Sequence[TensorType]) -> bool:
    """Whether the call of a standard node has the results that ONNX infers of its operands.

    Of some pools it infers more: windows of ceil_mode that start in the border, and one of LpPool
    that is longer than its axis.
    """
    node = NodeProto.FromString(call.proto)
    named = zip(filter(None, node.input), map(type_proto, operands), strict=True)
    imports = [helper.make_opsetid("", call.opset)]
    try:
        found = shape_inference.infer_node_outputs(
            get_schema(call.op_type, call.opset), node, dict(named), opset_imports=imports
        )
    except Exception:  # whatever its C++ throws, as of element types that an opset has not
        return False
    results = zip(filter(None, node.output), map(type_proto, call.outputs), strict=True)
    return all(_agree(type_, found[name]) for name, type_ in results if name in found)


def _agree(one: TypeProto, two: TypeProto) -> bool:
    """Whether no extent is another number."""
    if not two.tensor_type.HasField("shape"):
        return True
    pairs = zip(one.tensor_type.shape.dim, two.tensor_type.shape.dim, strict=False)
    return all(
        a.dim_value == b.dim_value
        for a, b in pairs
        if a.HasField("dim_value") and b.HasField("dim_value")
    )
