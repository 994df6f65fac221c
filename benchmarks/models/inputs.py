"""Seeded arguments that suit a model's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import helper

from .writer import Array

MASKED = -1e9
DEFAULT_SIZE = 32


def example_inputs_of(
    model: onnx.ModelProto, sizes: Mapping[str, int], seed: int
) -> dict[str, Array]:
    """Arguments by name: masks, rotary tables and table indices as such, all others normal."""
    random = np.random.default_rng(seed)
    constants = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    arguments: dict[str, Array] = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        shape = tuple(_extent(dim, sizes) for dim in value.type.tensor_type.shape.dim)
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name in _SPECIAL:
            array = _SPECIAL[value.name](shape)
        elif dtype.kind in "iu":
            array = random.integers(0, _rows(model.graph, value.name, constants), shape)
        elif dtype.kind == "b":
            array = random.random(shape) < 0.5
        else:
            array = random.standard_normal(shape)
        arguments[value.name] = array.astype(dtype)
    return arguments


def _extent(dim: onnx.TensorShapeProto.Dimension, sizes: Mapping[str, int]) -> int:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return sizes.get(dim.dim_param, 1 if dim.dim_param == "batch" else DEFAULT_SIZE)


def _rows(graph: onnx.GraphProto, indices: str, constants: Mapping[str, tuple[int, ...]]) -> int:
    """Rows of the smallest table that `indices` chooses from; 2 when there is none."""
    rows = [
        constants[node.input[0]][0]
        for node in graph.node
        if node.op_type == "Gather" and node.input[1] == indices and node.input[0] in constants
    ]
    return min(rows, default=2)


def _attention_mask(shape: tuple[int, ...]) -> Array:
    """Ones, but zeros at the last quarter of each sequence."""
    kept = np.arange(shape[-1]) < shape[-1] - shape[-1] // 4
    return np.broadcast_to(kept, shape)


def _causal(shape: tuple[int, ...]) -> Array:
    """A large negative number where the key comes after the query."""
    return np.broadcast_to(np.triu(np.full(shape[-2:], MASKED), 1), shape)


def _rotary(function: Callable[[Array], Array]) -> Callable[[tuple[int, ...]], Array]:
    """cos or sin of position times frequency, both halves of the width alike."""

    def table(shape: tuple[int, ...]) -> Array:
        length, width = shape[-2:]
        frequencies = 10000.0 ** -(np.arange(0, width, 2) / width)
        angles = np.outer(np.arange(length), frequencies)
        return np.broadcast_to(function(np.concatenate([angles, angles], axis=-1)), shape)

    return table


_SPECIAL: dict[str, Callable[[tuple[int, ...]], Array]] = {
    "attention_mask": _attention_mask,
    "mask": _causal,
    "cos": _rotary(np.cos),
    "sin": _rotary(np.sin),
}
