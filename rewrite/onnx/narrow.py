"""Tensors of less than 8 bits and of 8-bit floats, packed in a model's file."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto, numpy_helper

from satura.rewrite.errors import ModelError
from satura.rewrite.types.tensor_type import Array

BITS: dict[int, int] = {
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.INT2: 2,
    TensorProto.UINT2: 2,
    TensorProto.FLOAT4E2M1: 4,
    TensorProto.FLOAT8E4M3FN: 8,
    TensorProto.FLOAT8E4M3FNUZ: 8,
    TensorProto.FLOAT8E5M2: 8,
    TensorProto.FLOAT8E5M2FNUZ: 8,
}


def narrow_array_of(tensor: TensorProto) -> Array:
    """The value of a tensor whose type is in BITS.

    Raises ModelError when its data does not fit its shape.
    """
    needed = -(-prod(tensor.dims) * BITS[tensor.data_type] // 8)
    found = len(tensor.raw_data) if tensor.HasField("raw_data") else len(tensor.int32_data)
    if min(tensor.dims, default=0) < 0 or found != needed:
        raise ModelError(
            f"tensor '{tensor.name}' of shape {list(tensor.dims)} needs {needed} bytes,"
            f" the file has {found}"
        )
    return np.asarray(numpy_helper.to_array(tensor))
