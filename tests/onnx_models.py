"""Small ONNX models for tests, and their comparison with onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array
from tests.onnxruntime_reference import assert_close

Shape = Sequence[int | str | None]
F32 = TensorProto.FLOAT
I64 = TensorProto.INT64


@dataclass(frozen=True)
class Typed:
    """The shape of an input and the code of its element type, i64 by default."""

    shape: Shape
    code: int = I64


Inputs = Mapping[str, Shape | Typed]


def make_model(
    nodes: Sequence[NodeProto],
    inputs: Inputs,
    constants: Mapping[str, object] | None = None,
    opset: int = 17,
    outputs: Sequence[str] = ("y",),
    functions: Sequence[FunctionProto] = (),
) -> ModelProto:
    """A model of `nodes`; an input is its shape, with elements of f32 unless it is `Typed`."""
    infos = []
    for name, described in inputs.items():
        typed = described if isinstance(described, Typed) else Typed(described, F32)
        infos.append(helper.make_tensor_value_info(name, typed.code, typed.shape))
    arrays = {name: np.asarray(value) for name, value in (constants or {}).items()}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        infos,
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(f.domain, 1) for f in functions]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    model.ir_version = 8
    return model


def floats(values: Sequence[float]) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def random_input(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agrees_with_onnxruntime(model: ModelProto, arguments: Mapping[str, Array]) -> Program:
    """Compare every output with onnxruntime's; the declared output types are inferred first."""
    inferred = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(
        inferred.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    program = load(model)
    results = interpret(program, arguments)
    for output, expected in zip(session.get_outputs(), session.run(None, arguments), strict=True):
        result = results[output.name]
        assert result.dtype == expected.dtype and result.shape == expected.shape
        assert_close(result, expected, 1e-5)
    return program


def node(op_type: str, inputs: str = "x", outputs: str = "y", **attributes: object) -> NodeProto:
    """A node whose names are separated by blanks; '-' is a left-out input."""
    names = ["" if name == "-" else name for name in inputs.split()]
    result = helper.make_node(op_type, names, outputs.split())
    result.attribute.extend(helper.make_attribute(k, value) for k, value in attributes.items())
    return result
