"""Weights of less than 8 bits and of 8-bit floats, held in a type that has all their values.

No arithmetic knows these types: only DequantizeLinear and Cast may read such a weight.
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import GraphProto, TensorProto, numpy_helper

from satura.rewrite.errors import ModelError, UnsupportedError
from satura.rewrite.onnx.order import all_nodes, label
from satura.rewrite.onnx.types import element_name
from satura.rewrite.types.tensor_type import Array, DType

# Per element type its bits and the type that holds it.
HELD_IN: dict[int, tuple[int, DType]] = {
    TensorProto.INT4: (4, DType.I8),
    TensorProto.UINT4: (4, DType.U8),
    TensorProto.INT2: (2, DType.I8),
    TensorProto.UINT2: (2, DType.U8),
    TensorProto.FLOAT4E2M1: (4, DType.F16),
    TensorProto.FLOAT8E4M3FN: (8, DType.F16),
    TensorProto.FLOAT8E4M3FNUZ: (8, DType.F16),
    TensorProto.FLOAT8E5M2: (8, DType.F16),
    TensorProto.FLOAT8E5M2FNUZ: (8, DType.F16),
}
_READERS = {("DequantizeLinear", 0), ("DequantizeLinear", 2), ("Cast", 0)}


def check_readers(graph: GraphProto) -> None:
    """Raise UnsupportedError where another op reads a weight of a type in HELD_IN."""
    narrow = {t.name: t.data_type for t in graph.initializer if t.data_type in HELD_IN}
    if not narrow:
        return
    for node in all_nodes(graph.node):
        for position, name in enumerate(node.input):
            if name in narrow and (node.op_type, position) not in _READERS:
                raise UnsupportedError(
                    f"{label(node)}: it reads '{name}' of element type"
                    f" {element_name(narrow[name])}; only DequantizeLinear and Cast may"
                )
    for output in graph.output:
        if output.name in narrow:
            raise UnsupportedError(
                f"output '{output.name}': element type {element_name(narrow[output.name])} is not"
                " supported"
            )


def held_array_of(tensor: TensorProto) -> Array:
    """The value of a tensor whose type is in HELD_IN, in the type that holds it.

    Raises ModelError when its data does not fit its shape.
    """
    return narrow_array_of(tensor).astype(HELD_IN[tensor.data_type][1].numpy)


def narrow_array_of(tensor: TensorProto) -> Array:
    """The value of a tensor whose type is in HELD_IN.

    Raises ModelError when its data does not fit its shape.
    """
    bits, _ = HELD_IN[tensor.data_type]
    needed = -(-prod(tensor.dims) * bits // 8)
    found = len(tensor.raw_data) if tensor.HasField("raw_data") else len(tensor.int32_data)
    if min(tensor.dims, default=0) < 0 or found != needed:
        raise ModelError(
            f"tensor '{tensor.name}' of shape {list(tensor.dims)} needs {needed} bytes,"
            f" the file has {found}"
        )
    return np.asarray(numpy_helper.to_array(tensor))
