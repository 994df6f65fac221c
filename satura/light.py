"""The onnx package's light_* models with seeded random weights.

The package ships nine well-known image models whose weights are one repeated value each. Nothing
could be learnt from running them so: a swapped channel would pass unseen, and equal weights would
be stored once. Each use of such a weight therefore gets random values of its own, scaled so that
activations stay of order one.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from satura.rewrite.errors import ModelError
from satura.rewrite.types import Array

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def light_names() -> list[str]:
    """Names of the light models in the installed onnx package."""
    return sorted(path.stem for path in FOLDER.glob("light_*.onnx"))


def light_model(name: str = "light_resnet50", seed: int = 0) -> onnx.ModelProto:
    """The light model `name` with random weights that depend on `seed` and the weights' names.

    Raises ModelError when the onnx package has no such model.
    """
    if name not in light_names():
        raise ModelError(f"the onnx package has no model {name!r}; it has {light_names()}")
    model = onnx.load(FOLDER / f"{name}.onnx")
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    splats: dict[str, _Splat] = {}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            splats[node.output[0]] = _Splat(tuple(map(int, shapes[node.input[0]])), None)
        elif node.op_type == "Unsqueeze" and node.input[0] in splats:
            splats[node.output[0]] = _Splat(splats[node.input[0]].shape, node)
        else:
            nodes.append(node)

    kept: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    for index, node in enumerate(nodes):
        for slot, source in enumerate(node.input):
            if source not in splats:
                continue
            splat, own = splats[source], f"{source}/{index}.{slot}"
            generator = np.random.default_rng([seed, zlib.crc32(f"{name}:{own}".encode())])
            value = _draw(generator, node.op_type, slot, splat.shape)
            weights.append(numpy_helper.from_array(value.astype(np.float32), own))
            node.input[slot] = own
            if splat.unsqueeze is not None:
                copy = onnx.NodeProto()
                copy.CopyFrom(splat.unsqueeze)
                copy.name, copy.input[0], copy.output[0] = f"{own}/unsqueeze", own, f"{own}/wide"
                node.input[slot] = copy.output[0]
                kept.append(copy)
        kept.append(node)

    del graph.node[:]
    graph.node.extend(kept)
    used = {source for node in kept for source in node.input}
    initializers = [tensor for tensor in graph.initializer if tensor.name in used]
    names = {tensor.name for tensor in initializers}
    inputs = [value for value in graph.input if value.name in used - names]
    del graph.initializer[:], graph.input[:], graph.value_info[:]
    graph.initializer.extend([*initializers, *weights])
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)  # the first that allows weights to be no inputs
    return model


@dataclass(frozen=True)
class _Splat:
    """A weight of one repeated value, and the Unsqueeze that follows it, if any."""

    shape: tuple[int, ...]
    unsqueeze: onnx.NodeProto | None


def _draw(generator: np.random.Generator, op: str, slot: int, shape: tuple[int, ...]) -> Array:
    """Values for operand `slot` of `op`: He-scaled weights, positive variances, small shifts."""
    if op == "Conv" and slot == 1:
        return np.asarray(generator.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:])))
    if op == "Reshape" or (op, slot) == ("Gemm", 1):  # small: a softmax comes next
        return np.asarray(generator.standard_normal(shape) / np.sqrt(shape[-1]))
    if (op, slot) == ("BatchNormalization", 4):
        return np.asarray(generator.uniform(0.8, 1.6, shape))
    if (op, slot) == ("BatchNormalization", 1):
        return np.asarray(generator.uniform(0.4, 0.7, shape))
    if op == "Mul":
        return np.asarray(generator.uniform(1.0, 1.6, shape))
    return np.asarray(generator.standard_normal(shape) * 0.05)
