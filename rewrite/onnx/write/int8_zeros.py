"""DequantizeLinears of int8 without zero points that are 0, where onnxruntime is told their types.

In opset 21 it moves one with a zero point past a Reshape or Transpose as a node that it then
refuses, since it takes the zero point for one of uint8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import DType

_FIRST = 21  # the opset since which a QuantizeLinear says the type of its result


def without_int8_zeros(
    nodes: Sequence[NodeProto], constants: Mapping[str, Constant], opset: int
) -> list[NodeProto]:
    """The nodes as an opset should have them; a zero point that is left out is 0."""
    return [
        _without(each) if opset >= _FIRST and _has_int8_zero(each, constants) else each
        for each in nodes
    ]


def _has_int8_zero(node: NodeProto, constants: Mapping[str, Constant]) -> bool:
    if node.domain or node.op_type != "DequantizeLinear" or len(node.input) < 3:
        return False
    zero = constants.get(node.input[2])
    return zero is not None and zero.type.dtype is DType.I8 and not zero.array.any()


def _without(node: NodeProto) -> NodeProto:
    short = NodeProto()
    short.CopyFrom(node)
    del short.input[2]
    return short
