"""Weights of types that no arithmetic knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from satura.rewrite.errors import ModelError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.narrow import BITS
from satura.rewrite.onnx.write.save import LARGEST_FILE, save, to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import NARROW, DType
from tests.onnx_models import Typed, floats, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run, session

VALUES = [1, 0, 2, 1, 3, 0, 1, 2, 3, 1, 0, 2]
NAMES = {name: code for name, code in TensorProto.DataType.items() if code in BITS}


def with_weight(model: ModelProto, code: int) -> ModelProto:
    """The model with a weight `w` of 4 rows and 3 columns, and a zero point of as many columns."""
    name = TensorProto.DataType.Name(code)
    values = [value - 2 for value in VALUES] if name.startswith("INT") else VALUES
    zeros = [0, 0, 0] if "FLOAT" in name else [0, 1, 1]
    model.graph.initializer.append(helper.make_tensor("w", code, [4, 3], values))
    model.graph.initializer.append(helper.make_tensor("z", code, [3], zeros))
    return model


@pytest.mark.parametrize("name", ["INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_dequantized_weights_are_those_of_onnxruntime(name: str) -> None:
    nodes = [node("DequantizeLinear", "w s z", "d", axis=1), node("MatMul", "x d")]
    constants = {"s": floats([0.5, 0.25, 2])}
    model = with_weight(make_model(nodes, {"x": (2, 4)}, constants, opset=21), NAMES[name])
    model.ir_version = 10
    x = random_input(2, 4)
    # Its optimisations would round x, too.
    (expected,) = run(onnx.shape_inference.infer_shapes(model), {"x": x})
    assert_close(interpret(load(model), {"x": x})["y"], expected)


@pytest.mark.parametrize("name", NAMES)
def test_casts_keep_the_values(name: str) -> None:
    nodes = [node("Cast", "w", "f", to=TensorProto.FLOAT), node("MatMul", "x f")]
    model = with_weight(make_model(nodes, {"x": (4, 4)}, opset=25), NAMES[name])
    model.ir_version = 13
    expected = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float32)
    result = interpret(load(model), {"x": np.eye(4, dtype=np.float32)})["y"]
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("name", ["INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_zero_points_say_what_is_quantised_to(name: str) -> None:
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z")]
    model = with_weight(
        make_model(nodes, {"x": (2, 3)}, {"s": floats([0.3, 1, 1])}, opset=21), NAMES[name]
    )
    model.ir_version = 10
    x = 10 * random_input(2, 3)
    (expected,) = run(model, {"x": x})
    program = load(model)
    assert_close(interpret(program, {"x": x})["y"], expected)
    assert_close(run(to_model(program), {"x": x})[0], expected)


@pytest.mark.parametrize("name", [each for each in NAMES if each.startswith("FLOAT8")])
@pytest.mark.parametrize("saturate", [0, 1])
def test_what_is_beyond_floats_saturates_or_not(name: str, saturate: int) -> None:
    nodes = [node("QuantizeLinear", "x s z", "q", saturate=saturate)]
    nodes += [node("Cast", "q", to=TensorProto.FLOAT)]
    model = make_model(nodes, {"x": (5,)}, {"s": floats([0.5])}, opset=21)
    model.graph.initializer.append(helper.make_tensor("z", NAMES[name], [], [0.0]))
    model.ir_version = 10
    x = np.array([1e6, -np.inf, np.nan, 2, -1e6], np.float32)
    (expected,) = run(model, {"x": x})
    program = load(model)
    assert np.array_equal(interpret(program, {"x": x})["y"], expected, equal_nan=True)
    assert np.array_equal(run(to_model(program), {"x": x})[0], expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [each for each in NARROW if each.value.startswith("f8")])
def test_moved_floats_of_a_byte_are_saved_for_onnxruntime(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (2, 3, 4))
    session(to_model(build.program({"y": build.reshape(x, (8, 3))})))


@pytest.mark.parametrize("largest_file", [LARGEST_FILE, 1], ids=["inside", "outside"])
def test_weights_are_saved_packed(largest_file: int, tmp_path: Path) -> None:
    nodes = [node("Gather", "w i", "c"), node("Cast", "c", "d", to=TensorProto.FLOAT)]
    nodes += [node("Add", "x d")]
    model = make_model(nodes, {"x": (801,), "i": Typed([1])}, opset=21)
    weight = helper.make_tensor("w", TensorProto.INT4, [5, 801], [-8, 7, 1, -3, 0] * 801)
    model.graph.initializer.append(weight)
    save(load(model), tmp_path / "m.onnx", largest_file)
    arguments = {"x": random_input(801), "i": np.array([1])}
    expected = interpret(load(model), arguments)["y"]
    assert np.array_equal(interpret(load(tmp_path / "m.onnx"), arguments)["y"], expected)


def test_too_few_bytes_are_an_error() -> None:
    model = with_weight(make_model([node("Cast", "w", to=1)], {}, opset=21), TensorProto.INT4)
    model.graph.initializer[0].dims[0] = 9
    with pytest.raises(ModelError, match="needs 14 bytes, the file has 6"):
        load(model)


def test_narrow_weights_lie_packed_in_other_files(tmp_path: Path) -> None:
    nodes = [node("Cast", "w", "f", to=TensorProto.FLOAT), node("Add", "x f")]
    model = make_model(nodes, {"x": (3,)}, opset=21)
    model.ir_version = 10
    weight = helper.make_tensor("w", TensorProto.INT4, [3], [1, -2, 4])
    content = weight.raw_data or bytes(weight.int32_data)
    model.graph.initializer.append(weight)
    (weight,) = model.graph.initializer
    del weight.int32_data[:]
    weight.raw_data = content
    onnx.external_data_helper.set_external_data(weight, "w.bin")
    weight.ClearField("raw_data")
    (tmp_path / "w.bin").write_bytes(content)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    result = interpret(load(tmp_path / "m.onnx"), {"x": np.zeros(3, np.float32)})["y"]
    assert result.tolist() == [1, -2, 4]
