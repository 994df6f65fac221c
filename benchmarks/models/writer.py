"""GraphWriter: write an ONNX graph node by node, with seeded weights that keep values of order one.

Beside the nodes the writer keeps for each tensor its *power*, an estimate of the mean square of its
elements, from which the layers choose the deviation of their weights and their statistics. So
values stay of order one at any depth, and nothing has to be run for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from satura.light import store

Array = np.ndarray
IR_VERSION = 8


class GraphWriter:
    """Nodes, initializers, inputs and outputs of one ONNX graph; tensors are names."""

    def __init__(self, name: str, opset: int = 17, seed: int = 0) -> None:
        self.name = name
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.power: dict[str, float] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, Array] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._count = 0

    def _fresh(self, hint: str) -> str:
        self._count += 1
        return f"{hint}_{self._count}"

    def input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """A graph input whose dims are extents or names of symbolic sizes."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        self.power[name] = 1.0
        return name

    def output(
        self, tensor: str, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT
    ) -> None:
        """`tensor` becomes the graph output `name`."""
        self._nodes.append(helper.make_node("Identity", [tensor], [name], name=f"output_{name}"))
        self._outputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))

    def constant(self, value: Array, hint: str = "constant") -> str:
        """An initializer."""
        name = self._fresh(hint)
        self._initializers[name] = value
        self.power[name] = float(np.mean(np.square(value, dtype=np.float64))) if value.size else 0
        return name

    def scalar(self, value: float) -> str:
        """A 0-d float initializer."""
        return self.constant(np.array(value, np.float32), "scalar")

    def integers(self, *values: int) -> str:
        """A 1-d int64 initializer."""
        return self.constant(np.array(values, np.int64), "integers")

    def index(self, value: int) -> str:
        """A 0-d int64 initializer."""
        return self.constant(np.array(value, np.int64), "index")

    def normal(self, shape: Sequence[int], deviation: float = 1.0, mean: float = 0.0) -> Array:
        """Seeded normal f32 values."""
        values = self.random.standard_normal(tuple(shape), np.float32)
        values *= np.float32(deviation)
        values += np.float32(mean)
        return values

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Array:
        """Seeded uniform f32 values."""
        return (low + (high - low) * self.random.random(tuple(shape), np.float32)).astype(
            np.float32
        )

    def node(
        self, op_type: str, *operands: str, power: float | None = None, **attributes: object
    ) -> str:
        """The single result of a node; its power is that of the first operand unless given."""
        result = self._fresh(op_type.lower())
        node = helper.make_node(op_type, operands, [result], name=f"n_{result}")
        node.attribute.extend(helper.make_attribute(*pair) for pair in sorted(attributes.items()))
        self._nodes.append(node)
        self.power[result] = self.power.get(operands[0], 1.0) if power is None else power
        return result

    def add(self, x: str, y: str) -> str:
        """x + y of independent tensors."""
        return self.node("Add", x, y, power=self.power[x] + self.power[y])

    def mul(self, x: str, y: str) -> str:
        """x · y of independent tensors."""
        return self.node("Mul", x, y, power=self.power[x] * self.power[y])

    def relu(self, x: str, share: float = 0.5) -> str:
        """max(x, 0); `share` of the power is on the positive side."""
        return self.node("Relu", x, power=self.power[x] * share)

    def concat(self, tensors: Sequence[str], axis: int) -> str:
        power = sum(self.power[tensor] for tensor in tensors) / len(tensors)
        return self.node("Concat", *tensors, axis=axis, power=power)

    def linear(self, x: str, inner: int, outer: int) -> str:
        """x @ weight + bias over the last axis, as MatMul and Add; the result has power one."""
        weight = self.constant(
            self.normal((inner, outer), (inner * self.power[x]) ** -0.5), "weight"
        )
        bias = self.constant(self.normal((outer,), 0.1), "bias")
        return self.add(self.node("MatMul", x, weight, power=1.0), bias)

    def gemm(self, x: str, inner: int, outer: int) -> str:
        """x [n, inner] times a transposed weight, plus a bias; the result has power one."""
        weight = self.constant(
            self.normal((outer, inner), (inner * self.power[x]) ** -0.5), "weight"
        )
        bias = self.constant(self.normal((outer,), 0.1), "bias")
        return self.node("Gemm", x, weight, bias, transB=1, power=1.0)

    def model(self) -> onnx.ModelProto:
        """The finished model."""
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs)
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="satura.benchmarks"
        )
        for name, value in self._initializers.items():
            store(model.graph, name, value)
        return model
