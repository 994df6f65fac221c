"""The onnx package's `light_*` models, as shipped and with seeded weights.

As shipped, each weight is one repeated value and each output is flat: a swapped channel would pass
unseen, and equal constants could be folded to nothing. With seeded weights neither holds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from satura.rewrite.errors import ModelError
from satura.rewrite.types.tensor_type import Array

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = (
    "light_bvlc_alexnet", "light_densenet121", "light_inception_v1", "light_inception_v2",
    "light_resnet50", "light_shufflenet", "light_squeezenet", "light_vgg19", "light_zfnet512",
)  # fmt: skip
FIRST_IR_WITH_PLAIN_INITIALIZERS = 4  # before, every initializer is a graph input too


def original_light(name: str) -> tuple[onnx.ModelProto, dict[str, Array], dict[str, Array]]:
    """The untouched model, the inputs that the onnx package tests it on, its shipped outputs."""
    model = onnx.load(FOLDER / f"{name}.onnx")
    shipped = TensorProto.FromString((FOLDER / f"{name}_output_0.pb").read_bytes())
    inputs: dict[str, Array] = {}
    for value in _arguments(model.graph):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        size = int(np.prod(shape))
        inputs[value.name] = (np.arange(size).reshape(shape) / size).astype(np.float32)
    return model, inputs, {model.graph.output[0].name: numpy_helper.to_array(shipped)}


def light(name: str) -> onnx.ModelProto:
    """The model with seeded random weights, as initializers that are not inputs.

    Raises ModelError for a name that is not in NAMES.
    """
    if name not in NAMES:
        raise ModelError(f"there is no light model {name!r}; choose from {', '.join(NAMES)}")
    model = onnx.load(FOLDER / f"{name}.onnx")
    graph = model.graph
    arguments = _arguments(graph)
    weights = _Weights(graph)
    for node in graph.node:
        weights.visit(node)
    nodes = [node for node in graph.node if node.output[0] not in weights.shapes]
    read = {operand for node in nodes for operand in node.input} - weights.values.keys()
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    result = helper.make_model(
        helper.make_graph(nodes, name, arguments, graph.output),
        opset_imports=model.opset_import,
        ir_version=max(model.ir_version, FIRST_IR_WITH_PLAIN_INITIALIZERS),
        producer_name="satura.light",
    )
    result.graph.initializer.extend(kept)
    for key, array in weights.values.items():
        store(result.graph, key, array)
    return result


def store(graph: onnx.GraphProto, name: str, value: Array) -> None:
    """Add an initializer in place: appending a finished TensorProto would copy its bytes."""
    tensor = graph.initializer.add()
    tensor.name = name
    tensor.data_type = helper.np_dtype_to_tensor_dtype(value.dtype)
    tensor.dims.extend(value.shape)
    tensor.raw_data = value.tobytes()


def _arguments(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The graph inputs that are not initializers."""
    constants = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in constants]


class _Weights:
    """Draws each weight when the node that reads it is reached.

    `power` estimates each tensor's mean square, so that every layer's result is of order one.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.random = np.random.default_rng(0)
        self.values: dict[str, Array] = {}
        self.power: dict[str, float] = {}
        self.views: dict[str, str] = {}  # a reshaped weight -> the weight
        self.sums: set[str] = set()  # residual sums, which are mostly positive
        constants = {tensor.name: tensor for tensor in graph.initializer}
        self.shapes = {
            name: tuple(tensor.dims)
            for name, tensor in constants.items()
            if tensor.data_type == TensorProto.FLOAT  # the small weights are shipped in full
        }
        for node in graph.node:
            if node.op_type == "ConstantOfShape":
                extents = numpy_helper.to_array(constants[node.input[0]])
                self.shapes[node.output[0]] = tuple(map(int, extents))

    def visit(self, node: onnx.NodeProto) -> None:
        """Draw the weights of one node and follow the power of its result."""
        power = [self.power.get(operand, 1.0) for operand in node.input]
        result = power[0] if power else 1.0
        if node.op_type in ("Reshape", "Unsqueeze") and self._weight(node.input[0]):
            self.views[node.output[0]] = self._weight(node.input[0])
        elif node.op_type in ("Conv", "Gemm"):
            fan = int(np.prod(self.shapes[self._weight(node.input[1])][1:]))
            self._normal(node.input[1], (fan * power[0]) ** -0.5)
            if len(node.input) > 2:
                self._normal(node.input[2], 0.1)
            result = 1.0
        elif node.op_type == "BatchNormalization":
            self._uniform(node.input[1], 0.7, 1.2)
            self._normal(node.input[2], 0.1)
            self._normal(node.input[3], 0.1 * power[0] ** 0.5)
            self._uniform(node.input[4], 0.8 * power[0], 1.2 * power[0])
            result = 1.0
        elif node.op_type == "Relu":
            result = power[0] if node.input[0] in self.sums else power[0] / 2
        elif node.op_type == "Mul":
            self._uniform(node.input[1], 0.7, 1.2)
        elif node.op_type == "Add" and self._weight(node.input[1]):
            self._normal(node.input[1], 0.1)
        elif node.op_type in ("Add", "Sum"):
            self.sums.add(node.output[0])
            result = sum(power)
        elif node.op_type == "Concat":
            result = sum(power) / len(power)
        self.power[node.output[0]] = result

    def _weight(self, tensor: str) -> str:
        """The weight that `tensor` is or views; empty when it is none."""
        return tensor if tensor in self.shapes else self.views.get(tensor, "")

    def _normal(self, tensor: str, deviation: float) -> None:
        name = self._weight(tensor)
        values = self.random.standard_normal(self.shapes[name], np.float32)
        values *= np.float32(deviation)
        self.values[name] = values

    def _uniform(self, tensor: str, low: float, high: float) -> None:
        name = self._weight(tensor)
        values = self.random.random(self.shapes[name], np.float32)
        self.values[name] = (low + (high - low) * values).astype(np.float32)
