"""Nodes that stay in a model that is saved for all sizes: how much they take has no formula."""

from __future__ import annotations

from collections.abc import Collection

from onnx import helper

from satura.rewrite.onnx.cut import OpenExtents, with_open_sizes
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.types import ELEMENT_CODES, shown_dim
from satura.rewrite.types.tensor_type import TensorType


def open_along(node: Context, reason: str, type_: TensorType, axes: Collection[int]) -> OpenExtents:
    """What says that a node stays, whose result has this type but for its extents along `axes`."""
    name = node.proto.output[0]
    shape = [None if at in axes else shown_dim(dim) for at, dim in enumerate(type_.shape)]
    sizes = {each for each in shape if isinstance(each, str)}
    result = helper.make_tensor_type_proto(ELEMENT_CODES[type_.dtype], shape)
    return OpenExtents(str(node.unsupported(reason)), {name: with_open_sizes(name, result, sizes)})
