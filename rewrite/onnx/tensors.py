"""Tensors of ONNX as constants and arrays. Their shapes are checked against the bytes there are."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from satura.rewrite.errors import ModelError, UnsupportedError
from satura.rewrite.onnx.checks import MOST_ELEMENTS
from satura.rewrite.onnx.narrow import narrow_array_of
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.types.constant import Constant, content_digest
from satura.rewrite.types.dims import static
from satura.rewrite.types.stored import Stored
from satura.rewrite.types.tensor_type import MOST_AXES, Array, DType, TensorType


def initializer(tensor: TensorProto, stored: Stored | None) -> Constant:
    """The value of an initializer; where its raw bytes are `stored`, they are read when needed.

    Raises ModelError and UnsupportedError as `array_of` does.
    """
    if stored is None:
        return Constant(array_of(tensor))
    dtype = known_dtype(tensor)
    _refuse_other_length(tensor, dtype, stored.length)
    type_ = TensorType(dtype, tuple(tensor.dims))

    def make() -> Array:
        array = np.empty(tuple(map(static, type_.shape)), dtype.numpy)
        stored.copy_to(array.reshape(-1).view(np.uint8))
        return array

    return Constant.remade(make, type_, content_digest(type_, stored.blocks()))


def known_dtype(tensor: TensorProto) -> DType:
    """Its element type. Raises UnsupportedError where satura has none."""
    try:
        return dtype_of(tensor.data_type)
    except UnsupportedError as error:
        raise UnsupportedError(f"tensor '{tensor.name}': {error}") from None


def _refuse_other_length(tensor: TensorProto, dtype: DType, length: int) -> None:
    needed = element_count(tensor) * dtype.itemsize
    if length != needed:
        raise ModelError(
            f"tensor '{tensor.name}' of shape {list(tensor.dims)} needs"
            f" {needed} bytes, the file has {length}"
        )


def array_of(tensor: TensorProto) -> Array:
    """The value of `tensor`.

    Raises ModelError when its data does not fit its shape, UnsupportedError for its element type.
    """
    dtype = known_dtype(tensor)
    count = element_count(tensor)
    if dtype.is_narrow:
        return narrow_array_of(tensor)
    if tensor.HasField("raw_data"):
        content = tensor.raw_data  # a copy, each time that it is asked for
        _refuse_other_length(tensor, dtype, len(content))
        little = dtype.numpy.newbyteorder("<") if dtype.numpy.isbuiltin else dtype.numpy
        return (
            np.frombuffer(content, little)
            .astype(dtype.numpy, copy=False)
            .reshape(tuple(tensor.dims))
        )
    field = helper.tensor_dtype_to_field(tensor.data_type)
    found = len(getattr(tensor, field))
    if found != count:
        raise ModelError(
            f"tensor '{tensor.name}' of shape {list(tensor.dims)} and element type {dtype} needs"
            f" {count} elements in {field}, the file has {found} there"
        )
    return np.asarray(numpy_helper.to_array(tensor)).astype(dtype.numpy, copy=False)


def element_count(tensor: TensorProto) -> int:
    """The elements that its shape has. Raises ModelError or UnsupportedError for a wrong shape."""
    if any(dim < 0 for dim in tensor.dims):
        raise ModelError(f"tensor '{tensor.name}' has the negative shape {list(tensor.dims)}")
    if len(tensor.dims) > MOST_AXES:
        raise UnsupportedError(
            f"tensor '{tensor.name}' has {len(tensor.dims)} axes; {MOST_AXES} are supported"
        )
    if 0 in tensor.dims and prod(filter(None, tensor.dims)) > MOST_ELEMENTS:
        raise ModelError(f"tensor '{tensor.name}' has extents that no array has: {[*tensor.dims]}")
    return prod(tensor.dims)
