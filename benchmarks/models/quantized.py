"""Static quantisation of a float model, in the QDQ form of onnxruntime's `quantize_static`.

Activations are u8 with one scale and zero point each, weights i8 with a scale per channel, biases
i32 at the scale of the products. Batch normalisation is folded into its conv before, and a Relu or
Clip goes, as the range of its result does its work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import NodeProto, helper, numpy_helper

from .inputs import example_inputs_of
from .writer import Array, GraphWriter

CALIBRATION_SEED = 1
CONTRACTIONS = ("Conv", "Gemm", "MatMul")
CLAMPS = ("Relu", "Clip")
SAME_SCALE = ("Flatten", "MaxPool", "Pad", "Resize")  # results have the parameters of the operand


@dataclass(frozen=True)
class Scale:
    """x is scale · (q - zero)."""

    scale: Array
    zero: Array


def quantize(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` in QDQ form; its scales are calibrated on seeded example inputs."""
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = _without_norms(model.graph.node, weights)
    ranges = _ranges(model)
    net = QuantizedWriter(f"{model.graph.name}_qdq", model.opset_import[0].version, weights)
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        net.tensors[value.name] = net.requantized(
            net.input(value.name, shape), _activation_scale(*ranges[value.name])
        )
    for node in _without_clamps(nodes):
        net.copied(node, ranges)
    for value in model.graph.output:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        net.output(net.tensors[value.name], value.name, shape)
    return net.model()


class QuantizedWriter(GraphWriter):
    """Copies float nodes: `tensors` holds what stands for each float tensor, `scales` its scale."""

    def __init__(self, name: str, opset: int, weights: Mapping[str, Array]) -> None:
        super().__init__(name, opset)
        self.weights = weights
        self.tensors: dict[str, str] = {}
        self.scales: dict[str, Scale] = {}

    def requantized(self, x: str, scale: Scale) -> str:
        """QuantizeLinear and DequantizeLinear."""
        parameters = self.constant(scale.scale, "scale"), self.constant(scale.zero, "zero_point")
        small = self.node("QuantizeLinear", x, *parameters)
        result = self.node("DequantizeLinear", small, *parameters)
        self.scales[result] = scale
        return result

    def dequantized(self, values: Array, scale: Array, axis: int) -> str:
        """A stored constant with a scale per channel along `axis`."""
        zero = np.zeros(scale.shape, values.dtype)
        operands = (self.constant(values, "quantized"), self.constant(scale, "scale"))
        return self.node(
            "DequantizeLinear", *operands, self.constant(zero, "zero_point"), axis=axis
        )

    def copied(self, node: NodeProto, ranges: Mapping[str, tuple[float, float]]) -> None:
        """The node on dequantised operands, its result quantised; an Identity is its operand."""
        (name,) = node.output
        if node.op_type == "Identity":
            self.tensors[name] = self.tensors[node.input[0]]
            return
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type in CONTRACTIONS and node.input[1] in self.weights:
            operands = self.contracted(node, attributes)
        else:
            operands = [self.operand(name) for name in node.input]
        result = self.node(node.op_type, *operands, **attributes)
        same = node.op_type in SAME_SCALE
        scale = self.scales[operands[0]] if same else _activation_scale(*ranges[name])
        self.tensors[name] = self.requantized(result, scale)

    def contracted(self, node: NodeProto, attributes: Mapping[str, object]) -> list[str]:
        """Operands of a contraction with weights: activation, weight, and bias if there is one."""
        x = self.tensors[node.input[0]]
        values = self.weights[node.input[1]]
        axis = 0 if node.op_type == "Conv" or attributes.get("transB") else values.ndim - 1
        scale = _weight_scale(values, axis)
        laid = scale.reshape([-1 if at == axis else 1 for at in range(values.ndim)])
        weight = self.dequantized(np.round(values / laid).astype(np.int8), scale, axis)
        if len(node.input) < 3:
            return [x, weight]
        unit = self.scales[x].scale * scale
        bias = np.round(self.weights[node.input[2]] / unit).astype(np.int32)
        return [x, weight, self.dequantized(bias, unit, 0)]

    def operand(self, name: str) -> str:
        """What stands for a tensor, or the constant itself (a missing operand is "")."""
        if name in self.weights:
            self.tensors[name] = self.constant(self.weights[name])
        return self.tensors[name] if name else ""


def _activation_scale(lowest: float, highest: float) -> Scale:
    """u8 parameters of a range widened to hold zero."""
    low, high = min(lowest, 0.0), max(highest, 0.0)
    step = float(f"{(high - low) / 255:.4g}")  # so runtimes that sum in another order agree
    return Scale(np.array(step, np.float32), np.array(round(-low / step), np.uint8))


def _weight_scale(values: Array, axis: int) -> Array:
    """Scale per channel along `axis`, by the largest weight of each."""
    others = tuple(at for at in range(values.ndim) if at != axis)
    return np.asarray(np.abs(values).max(axis=others) / 127, np.float32)


def _ranges(model: onnx.ModelProto) -> dict[str, tuple[float, float]]:
    """Least and largest element of each f32 tensor, on seeded example inputs."""
    inputs = example_inputs_of(model, {}, CALIBRATION_SEED)
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    names = [node.output[0] for node in model.graph.node]
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(
        whole.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    tensors = {**inputs, **dict(zip(names, session.run(names, inputs), strict=True))}
    return {name: (float(value.min()), float(value.max())) for name, value in tensors.items()}


def _without_norms(nodes: Sequence[NodeProto], weights: dict[str, Array]) -> list[NodeProto]:
    """The nodes with each batch normalisation as weight and bias of its conv, put in `weights`."""
    kept: list[NodeProto] = []
    for node in nodes:
        if node.op_type == "BatchNormalization":
            conv = kept.pop()
            scale, shift, mean, variance = (weights[name] for name in node.input[1:5])
            factor = scale / np.sqrt(variance + np.float32(node.attribute[0].f))
            weight = weights[conv.input[1]] * factor[:, None, None, None]
            operands = [conv.input[0], f"{conv.output[0]}_weight", f"{conv.output[0]}_bias"]
            weights[operands[1]], weights[operands[2]] = weight, shift - mean * factor
            node = _with(conv, operands, node.output[0])
        kept.append(node)
    return kept


def _without_clamps(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """The nodes without each Relu and Clip whose operand nobody else reads."""
    readers = Counter(name for node in nodes for name in node.input)
    kept: dict[str, NodeProto] = {}  # by result
    for node in nodes:
        x = node.input[0]
        if node.op_type in CLAMPS and readers[x] == 1:
            made = kept.pop(x)
            node = _with(made, made.input, node.output[0])
        kept[node.output[0]] = node
    return list(kept.values())


def _with(node: NodeProto, operands: Sequence[str], result: str) -> NodeProto:
    """The node on other operands, with its result renamed."""
    copy = NodeProto(op_type=node.op_type, input=operands, output=[result])
    copy.attribute.extend(node.attribute)
    return copy
