"""f16 and bf16 are stored, and computed in f32: also between the ops that a node becomes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto

import satura
from satura.rewrite.errors import CallError
from satura.rewrite.onnx.load import load
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import Array, DType
from tests.onnx_models import floats, make_model, node
from tests.onnxruntime_reference import assert_close
from tests.tiers import deep_but

CODES = {DType.F16: TensorProto.FLOAT16, DType.BF16: TensorProto.BFLOAT16}
EPS = {DType.F16: 2.0**-10, DType.BF16: 2.0**-7}
# Per row: the node, its opset, and constants. In f16 each overflows, or loses what is left of x.
NODES: dict[str, tuple[NodeProto, int, dict[str, list[float]]]] = {
    "mean": (node("ReduceMean"), 13, {}),
    "l2": (node("ReduceL2"), 13, {}),
    "log sum": (node("ReduceLogSum"), 13, {}),
    "log sum exp": (node("ReduceLogSumExp"), 13, {}),
    "sum of many squares": (node("ReduceSumSquare"), 13, {}),
    "global average": (node("GlobalAveragePool"), 13, {}),
    "global norm": (node("GlobalLpPool"), 13, {}),
    "average": (node("AveragePool", kernel_shape=[8, 8]), 13, {}),
    "norm": (node("LpPool", kernel_shape=[8, 8]), 13, {}),
    "lrn": (node("LRN", size=3), 13, {}),
    "mean and variance": (node("MeanVarianceNormalization"), 13, {}),
    "instance": (node("InstanceNormalization", "x s s"), 13, {"s": [1, 2]}),
    "group": (node("GroupNormalization", "x s s", num_groups=1), 18, {"s": [1]}),
    "batch": (node("BatchNormalization", "x s s m v"), 13,
              {"s": [30, 25], "m": [3008, 2912], "v": [1, 2]}),
    "norm along an axis": (node("LpNormalization"), 13, {}),
    "sum of many exponentials": (node("Softmax", axis=1), 12, {}),
    "log of many exponentials": (node("LogSoftmax", axis=1), 12, {}),
    "mean of three": (node("Mean", "x x x"), 13, {}),
    "scaled product": (node("Gemm", "x w", alpha=0.01), 13, {"w": [100.0] * 8}),
    "gelu": (node("Gelu", approximate="tanh"), 20, {}),
    "mish": (node("Mish"), 18, {}),
}  # fmt: skip

SCALES = {
    "sum of many exponentials": 1e-6, "log of many exponentials": 1e-6, "sum of many squares": 5e-8,
    "mean of three": 10, "gelu": -1e-3, "mish": -4e-3,
}  # fmt: skip


def narrow_model(name: str, dtype: DType, x: Array) -> ModelProto:
    """The model of a row with its input and its constants in `dtype`."""
    proto, opset, given = NODES[name]
    constants = {key: floats(value).astype(dtype.numpy) for key, value in given.items()}
    if "w" in constants:
        constants["w"] = constants["w"].reshape(8, 1)
    model = make_model([proto], {"x": x.shape}, constants, opset)
    model.graph.input[0].type.tensor_type.elem_type = CODES[dtype]
    return model


def operand(name: str, dtype: DType) -> Array:
    """Elements around 3000, or those that make a row's result neither 0 nor infinite."""
    rng = np.random.default_rng(0)
    shape = {"scaled product": (2, 8)}.get(name, (1, 2, 8, 8))
    if "many" in name:
        shape = (1, 2, 128, 320)
    scale = SCALES.get(name, 1.0)
    return ((3000 + 500 * rng.standard_normal(shape)) * scale).astype(dtype.numpy)


def wide_result(name: str, x: Array) -> Array:
    """The result where everything is f32."""
    proto, opset, given = NODES[name]
    constants = {key: floats(value) for key, value in given.items()}
    if "w" in constants:
        constants["w"] = constants["w"].reshape(8, 1)
    wide = make_model([proto], {"x": x.shape}, constants, opset)
    return interpret(load(wide), {"x": x.astype(np.float32)})["y"]


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("name", NODES)
def test_a_node_rounds_once(name: str, dtype: DType) -> None:
    x = operand(name, dtype)
    result = interpret(load(narrow_model(name, dtype, x)), {"x": x})["y"]
    expected = wide_result(name, x).astype(dtype.numpy)
    assert result.dtype == dtype.numpy
    assert np.isfinite(expected.astype(np.float32)).all()
    np.testing.assert_allclose(
        result.astype(np.float32), expected.astype(np.float32), rtol=2 * EPS[dtype], atol=1e-7
    )


@pytest.mark.parametrize("name", deep_but(["average"], ["instance", "average", "scaled product"]))
def test_kernels_round_once_too(name: str) -> None:
    x = operand(name, DType.F16)
    result = satura.compile(narrow_model(name, DType.F16, x), threads=1).run({"x": x})["y"]
    expected = wide_result(name, x)
    assert_close(result, expected, 4e-3)


def test_quotients_of_small_divisors_do_not_overflow() -> None:
    """1 / 1e-5 is not a number of f16, but 1e-5 / 1e-5 is."""
    build = Builder()
    x = build.input("x", DType.F16, (3, 4))
    most = build.broadcast(build.reduce("max", x, (1,)), (3, 4))
    program = build.program({"y": build.binary("div", x, most)})
    arguments = {"x": (np.eye(3, 4) * 1e-5).astype(np.float16)}
    result = satura.compile(program, threads=1).run(arguments)["y"]
    np.testing.assert_array_equal(result, np.eye(3, 4, dtype=np.float16))


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_a_long_float_is_rounded_once(dtype: DType) -> None:
    """Just above the middle of two short floats an f32 is on it, and would go to the even one."""
    middle = (1 + EPS[dtype] / 2) * np.float64(2.0) ** np.array([-30, -20, -14, 0, 3, 7])
    x = np.concatenate([middle, middle * (1 + 2**-40), middle * (1 - 2**-40), [1e-300, 1e300, 0]])
    x = np.concatenate([x, -x, [np.nan, np.inf, -np.inf, 65519.9999999, 65520]])
    build = Builder()
    program = build.program({"y": build.cast(build.input("x", DType.F64, x.shape), dtype)})
    expected = interpret(program, {"x": x})["y"]
    result = satura.compile(program).run({"x": x})["y"]
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))
    if dtype is DType.F16:
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_array_equal(expected, x.astype(np.float16))
    else:
        ahead = expected[len(middle) : 2 * len(middle)].astype(np.float64)
        np.testing.assert_array_equal(ahead, (1 + EPS[dtype]) * middle / (1 + EPS[dtype] / 2))


@pytest.mark.parametrize("kind", ["uint16", "int16"])
def test_bits_of_a_narrow_float_are_told_from_its_values(kind: str) -> None:
    build = Builder()
    x = build.input("x", DType.BF16, (2,))
    compiled = satura.compile(build.program({"y": build.unary("relu", x)}), threads=1)
    bits = np.full(2, 0x3F80, kind)
    with pytest.raises(CallError) as refused:
        compiled(bits)
    values, as_bits = r"np.asarray(x, 'bfloat16') if it holds values", "x.view('bfloat16') if"
    assert values in str(refused.value) and as_bits in str(refused.value)
    assert compiled.run({"x": bits.view("bfloat16")})["y"].tolist() == [1, 1]
