"""Models of open rows and columns, and arguments of open sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper

from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import F32, Shape, make_model, node, random_input

ROWS: Shape = ("n", "m")


def of_rows(*nodes: NodeProto, **constants: object) -> ModelProto:
    """A model of x, f32[n, m], and of a tensor z of open length; `n` and `m` are sizes of x."""
    sizes = [node("Shape", "x", "n", start=0, end=1), node("Shape", "x", "m", start=1, end=2)]
    return make_model(
        [*sizes, *nodes, node("Tanh", "z", "w")], {"x": ROWS, "z": ("other",)}, constants, 18,
        ("y", "w"),
    )  # fmt: skip


def _drawn(model: ModelProto, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Arguments of these sizes; each integer is 1."""
    given = {}
    for value in model.graph.input:
        type_ = value.type.tensor_type
        shape = [
            sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in type_.shape.dim
        ]
        is_number = type_.elem_type == F32
        dtype = helper.tensor_dtype_to_np_dtype(type_.elem_type)
        given[value.name] = random_input(*shape) if is_number else np.ones(shape, dtype)
    return given
