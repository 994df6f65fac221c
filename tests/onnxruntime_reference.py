"""onnxruntime as the reference of tests.

Its Python interface takes no bf16 arrays, so Casts at the model's border turn them to f32. Some
functions it has in f32 only, so Casts around their nodes turn f64 to f32.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import ReduceFn
from satura.rewrite.types.tensor_type import Array, DType

BF16 = DType.BF16.numpy
WITHOUT_F64 = (
    "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf",
)  # fmt: skip


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """The model in onnxruntime, on one thread and without graph optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model: onnx.ModelProto, arguments: Mapping[str, Array]) -> list[np.ndarray]:
    """Outputs of onnxruntime, of lists all tensors; bf16 outputs come as f32."""
    feeds = {
        name: np.asarray(array.astype(np.float32) if array.dtype == BF16 else array)
        for name, array in arguments.items()
    }
    outputs = session(_in_f32(_without_bf16(model))).run(None, feeds)
    tensors = (each if isinstance(each, list) else [each] for each in outputs)
    return [np.asarray(tensor) for each in tensors for tensor in each]


def _without_bf16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with Casts at its bf16 inputs and outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    before, after = [], []
    for value in copy.graph.input:
        if value.type.tensor_type.elem_type == TensorProto.BFLOAT16:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
            inner = f"{value.name}__bf16"
            for node in copy.graph.node:
                node.input[:] = [inner if name == value.name else name for name in node.input]
            before.append(helper.make_node("Cast", [value.name], [inner], to=TensorProto.BFLOAT16))
    for value in copy.graph.output:
        if value.type.tensor_type.elem_type == TensorProto.BFLOAT16:
            inner = value.name
            value.type.tensor_type.elem_type = TensorProto.FLOAT
            value.name = f"{inner}__f32"
            after.append(helper.make_node("Cast", [inner], [value.name], to=TensorProto.FLOAT))
    nodes = [*before, *copy.graph.node, *after]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _in_f32(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with nodes of f64 that onnxruntime lacks computed in f32."""
    lacking = {name.capitalize() for name in WITHOUT_F64}
    if not any(node.op_type in lacking for node in model.graph.node):
        return model
    graph = onnx.shape_inference.infer_shapes(model).graph
    declared = (*graph.input, *graph.value_info, *graph.output)
    types = {value.name: value.type.tensor_type.elem_type for value in declared}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type not in lacking or types[node.input[0]] != TensorProto.DOUBLE:
            nodes.append(node)
            continue
        (x,), (y,) = node.input, node.output
        nodes += [
            helper.make_node("Cast", [x], [f"{y}__in"], to=TensorProto.FLOAT),
            helper.make_node(node.op_type, [f"{y}__in"], [f"{y}__out"]),
            helper.make_node("Cast", [f"{y}__out"], [y], to=TensorProto.DOUBLE),
        ]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def assert_close(got: Array, wanted: Array, tolerance: float = 1e-4, name: str = "") -> None:
    """Elements agree within `tolerance`, relative or, below one, absolute."""
    wide, close = np.asarray(wanted, np.float64), np.asarray(got, np.float64)
    np.testing.assert_allclose(close, wide, rtol=tolerance, atol=tolerance, err_msg=name)


_LARGEST = float(np.finfo(np.float32).max)


def kept_by_pools(
    program: Program, arguments: Mapping[str, Array], expected: Mapping[str, Array]
) -> dict[str, NDArray[np.bool_]]:
    """Where results do not depend on what maxima under windows make of NaN and -inf, which for a
    runtime may be the least number. A sum of such is no number again, so others are tried, too."""
    found = [interpret(_with_lossy_pools(program, nan), arguments) for nan in (_LARGEST, 1.0)]
    return {
        name: np.logical_and(*(same(wanted, each[name]) for each in found))
        for name, wanted in expected.items()
    }


def with_casts_in_two_steps(program: Program) -> Program:
    """The program with casts of f64 to f16 and bf16 by way of f32, as onnxruntime computes them."""
    build = Builder()
    made: list[int] = []
    for node in program.nodes:
        operands = [made[at] for at in node.operands]
        is_narrowed = node.op.name == "cast" and node.type.dtype in (DType.F16, DType.BF16)
        if is_narrowed and build.type(operands[0]).dtype is DType.F64:
            operands = [build.cast(operands[0], DType.F32)]
        made.append(build.add(node.op.name, operands, *node.attributes))
    return build.program({name: made[at] for name, at in program.outputs})


def _with_lossy_pools(program: Program, nan: float) -> Program:
    """The program with -`nan` for NaN in maxima under windows, and the least number for -inf."""
    build = Builder()
    made: list[int] = []
    for node in program.nodes:
        operands = [made[at] for at in node.operands]
        dtype = node.type.dtype
        if node.op.name == "pool" and dtype.is_float and ReduceFn("sum") not in node.attributes:
            (x,) = operands
            sign = 1 if ReduceFn("max") in node.attributes else -1
            units, shape = (1,) * node.type.rank, build.type(x).shape
            least, instead = (
                build.broadcast(build.reshape(build.constant(-sign * each, dtype), units), shape)
                for each in (_LARGEST, nan)
            )
            known = build.select(build.unary("isnan", x), instead, x)
            operands = [build.binary("max" if sign > 0 else "min", known, least)]
        made.append(build.add(node.op.name, operands, *node.attributes))
    return build.program({name: made[at] for name, at in program.outputs})


def same(x: Array, y: Array) -> NDArray[np.bool_]:
    """Where two arrays have the same bits."""
    return np.asarray((x == y) | ((x != x) & (y != y)))
