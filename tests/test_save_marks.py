"""Quantisation that programs spell out is saved as QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import satura
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import F32, Typed, floats, make_model, node
from tests.onnxruntime_reference import assert_close, run
from tests.saved_programs import values

SCALES = floats([0.25, 0.3, 1.7])
TYPES = [DType.U8, DType.I8, DType.U16, DType.I16]


def op_types(model: onnx.ModelProto) -> Counter[str]:
    return Counter(each.op_type for each in model.graph.node)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [None, 1])
def test_what_the_loader_makes_of_a_quantisation_is_one_node(
    dtype: DType, axis: int | None
) -> None:
    least, most = dtype.bounds
    scale = np.array(SCALES[1]) if axis is None else SCALES
    zero = np.array(7) if axis is None else np.array([least, 7, most])
    quantisation = {} if axis is None else {"axis": axis}
    marks = [
        node("QuantizeLinear", "x scale zero", "q", **quantisation),
        node("DequantizeLinear", "q scale zero", "y", **quantisation),
    ]
    constants = {"scale": scale, "zero": zero.astype(dtype.numpy)}
    model = make_model(marks, {"x": (5, 3, "n")}, constants, 21, ("q", "y"))
    saved = to_model(load(model))
    assert op_types(saved) == Counter(each.op_type for each in marks)
    assert saved.opset_import[0].version == (18 if dtype.itemsize == 1 else 21)
    halves = np.arange(-300, 300, dtype=np.float32).reshape(5, 3, 40) / 2
    x = halves * SCALES.reshape(1, 3, 1)
    x[0, :, 0], x[0, :, 1], x[0, :, 2], x[0, :, 3] = np.inf, -np.inf, 3e38, -3e38
    for result, expected in zip(run(saved, {"x": x}), run(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("by", "op_type", "is_one"),
    [(0.25, "Div", True), (4.0, "Mul", True), (0.3, "Div", True), (3.0, "Mul", False)],
)
def test_only_a_product_with_a_power_of_two_is_a_quotient(
    by: float, op_type: str, is_one: bool
) -> None:
    nodes = [
        node(op_type, "x by", "a"), node("Round", "a", "b"), node("Add", "b zero", "c"),
        node("Clip", "c low high", "d"), node("Cast", "d", to=onnx.TensorProto.UINT8),
    ]  # fmt: skip
    constants = {name: np.float32(each) for name, each in (("by", by), ("zero", 3), ("low", 0))}
    model = make_model(nodes, {"x": (64,)}, {**constants, "high": np.float32(255)})
    saved = to_model(load(model))
    assert (op_types(saved) == {"QuantizeLinear": 1}) is is_one
    x = np.linspace(-100, 100, 64, dtype=np.float32)
    np.testing.assert_array_equal(run(saved, {"x": x})[0], run(model, {"x": x})[0])


@pytest.mark.parametrize(("zero", "low", "high"), [(0.5, 0, 255), (256, 0, 255), (3, 1, 255)])
def test_what_is_no_quantisation_stays_as_it_is(zero: float, low: float, high: float) -> None:
    nodes = [
        node("Div", "x by", "a"), node("Round", "a", "b"), node("Add", "b zero", "c"),
        node("Clip", "c low high", "d"), node("Cast", "d", to=onnx.TensorProto.UINT8),
    ]  # fmt: skip
    constants = {"by": 0.3, "zero": zero, "low": low, "high": high}
    model = make_model(
        nodes, {"x": (64,)}, {name: np.float32(each) for name, each in constants.items()}
    )
    saved = to_model(load(model))
    assert "QuantizeLinear" not in op_types(saved)
    x = np.linspace(-100, 100, 64, dtype=np.float32)
    expected = interpret(load(model), {"x": x})["y"].astype(np.uint8)
    np.testing.assert_array_equal(run(saved, {"x": x})[0], expected)


@pytest.mark.parametrize("shape", [(4, 3), (200, 300)])
def test_weights_of_8_bits_are_saved_in_8_bits(shape: tuple[int, int]) -> None:
    weights = np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8)
    nodes = [node("DequantizeLinear", "w scale zero", "f"), node("MatMul", "x f")]
    constants = {"w": weights, "scale": np.float32(0.3), "zero": np.uint8(128)}
    model = make_model(nodes, {"x": Typed(("n", shape[0]), F32)}, constants)
    saved = to_model(load(model))
    assert op_types(saved) == {"DequantizeLinear": 1, "MatMul": 1}
    stored = {each.data_type for each in saved.graph.initializer if len(each.dims) == 2}
    assert stored <= {helper.np_dtype_to_tensor_dtype(np.dtype(x)) for x in ("uint8", "int8")}
    x = np.random.default_rng(1).standard_normal((2, shape[0])).astype(np.float32)
    np.testing.assert_allclose(
        run(saved, {"x": x})[0], run(model, {"x": x})[0], rtol=1e-4, atol=1e-3
    )


def test_int8_beside_int16_runs_where_a_reshape_follows() -> None:
    """int16 needs opset 21, in which onnxruntime refuses what it makes of int8 zero points."""
    nodes = [
        node("DequantizeLinear", "a scale zero", "d"), node("Reshape", "d shape", "e"),
        node("Div", "e two", "y"), node("DequantizeLinear", "b scale wide", "z"),
    ]  # fmt: skip
    constants = {
        "scale": np.float32(0.5), "zero": np.int8(0), "wide": np.int16(0), "shape": [3, 2],
        "two": np.float32(2),
    }  # fmt: skip
    codes = (onnx.TensorProto.INT8, onnx.TensorProto.INT16)
    inputs = {name: Typed((2, 3), code) for name, code in zip("ab", codes, strict=True)}
    model = make_model(nodes, inputs, constants, 21, ("y", "z"))
    saved = to_model(load(model))
    assert op_types(saved)["DequantizeLinear"] == 2
    session = onnxruntime.InferenceSession(saved.SerializeToString())
    a = np.arange(-3, 3).reshape(2, 3)
    y, z = session.run(None, {"a": a.astype(np.int8), "b": a.astype(np.int16)})
    np.testing.assert_array_equal(y, a.reshape(3, 2) / 4)
    np.testing.assert_array_equal(z, a / 2)


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("weights", ["f32", "f16"])
def test_quantised_activations_are_of_an_opset_that_onnxruntime_runs(
    opset: int, weights: str, tmp_path: Path
) -> None:
    """At its default level it refuses a Transpose of int8 QDQ in opset 21; nodes are there once."""
    dtype = np.float16 if weights == "f16" else np.float32
    marks = ("QuantizeLinear", "DequantizeLinear")
    nodes = [
        node("Cast", "x", "c", to=10 if weights == "f16" else 1),
        *(node(mark, f"{x} scale zero", y) for mark, x, y in zip(marks, "cp", "pq", strict=True)),
        node("Transpose", "c", "t", perm=[1, 0]),
        *(node(mark, f"{x} scale zero", y) for mark, x, y in zip(marks, "tu", "uv", strict=True)),
        node("MatMul", "q v"),
    ]
    constants = {"scale": np.array(0.03, dtype), "zero": np.array(0, np.int8)}
    model = make_model(
        nodes, {"x": (4, 8)}, constants, opset=max(opset, 19 if dtype != np.float32 else 0)
    )
    path = tmp_path / "out.onnx"
    satura.save(satura.optimize(model), path)
    (version,) = (each.version for each in onnx.load(path).opset_import)
    assert version == (18 if weights == "f32" else 19)
    given = {"x": values(DType.F32, (4, 8), special=False)}
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_close(session.run(None, given)[0], run(model, given)[0], 1e-3)
    counts = Counter(each.op_type for each in onnx.load(path).graph.node)
    assert counts["QuantizeLinear"] == counts["DequantizeLinear"] == 1
