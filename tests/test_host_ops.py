"""What runs on the host, and what did, against onnxruntime: the onnx package's own reference
implementations are no oracle beyond the cases that come with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import satura
from satura.rewrite.errors import HostFallbackWarning, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.program import host_call
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import Array
from tests.host_models import host_models
from tests.onnx_models import Typed, make_model, node
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but

MODELS = {f"{number} {model.name}": model for number, model in enumerate(host_models())}
OPS = (
    "GridSample", "DFT", "STFT", "LSTM", "GRU", "RNN", "ScatterElements", "ScatterND", "TopK",
    "ReverseSequence", "MaxUnpool", "Col2Im", "RoiAlign",
)  # fmt: skip
ON_HOST = ("mode=max", "sampling_ratio=0")  # of RoiAlign
NATIVE = [
    name for name in MODELS
    if name.split()[1] in OPS and not any(setting in name.split() for setting in ON_HOST)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnxruntime(name: str) -> None:
    model = MODELS[name]
    expected = run(onnx.shape_inference.infer_shapes(model.model), model.arguments)
    program = load(model.model)
    results = interpret(program, model.arguments)
    for (output, _), wanted in zip(program.outputs, expected, strict=True):
        got = results[output]
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got, np.asarray(wanted), 1e-4)


@pytest.mark.parametrize("name", deep_but(NATIVE[-1:], NATIVE, NATIVE[8::16]))
def test_kernels_compute_what_ran_on_the_host(name: str) -> None:
    model = MODELS[name]
    compiled = satura.compile(model.model, threads=1)
    assert compiled.statistics["host-count"] == 0
    expected = interpret(compiled.source, model.arguments)
    for output, got in compiled.run(model.arguments).items():
        assert_close(got, expected[output], 1e-4)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_call, "find_spec", lambda module: None)
    decode = node("ImageDecoder", "x", pixel_format="RGB")
    model = make_model([decode], {"x": Typed([9], TensorProto.UINT8)}, opset=20)
    declared = helper.make_tensor_value_info("y", TensorProto.UINT8, [2, 2, 3])
    model.graph.output[0].CopyFrom(declared)
    with pytest.raises(UnsupportedError, match=r"ImageDecoder.*pip install pillow"):
        load(model)


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
@pytest.mark.parametrize("most", [3, 90, 1000])
def test_boxes_are_kept_as_by_onnxruntime(most: int) -> None:
    """More of them than are compared at once, many with equal scores."""
    random = np.random.default_rng(most)
    corners = random.integers(0, 30, (2, 200, 4)).astype(np.float32)
    arguments: dict[str, Array] = {
        "boxes": np.sort(corners.reshape(2, 200, 2, 2), axis=2).reshape(2, 200, 4),
        "scores": random.integers(0, 40, (2, 3, 200)).astype(np.float32) / 40,
    }
    constants = {"most": np.int64(most), "iou": np.float32(0.3), "score": np.float32(0.1)}
    inputs = {name: array.shape for name, array in arguments.items()}
    nms = node("NonMaxSuppression", "boxes scores most iou score")
    model = make_model([nms], inputs, constants, 18)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    (wanted,) = run(model, arguments)
    assert np.array_equal(satura.compile(model, 1).run(arguments)["y"], wanted)


FOLDED = {
    "Det": ("n = Neg(m) d = Det(n) y = Mul(x, d)", "<float[2,2] m = {1.0, 2.0, 3.0, 4.0}>"),
    "MelWeightMatrix": (
        "w = MelWeightMatrix(three, five, rate, low, high) s = ReduceSum<keepdims=0>(w)"
        " y = Mul(x, s)",
        "<int64 three = {3}, int64 five = {5}, int64 rate = {9000}, float low = {0.0},"
        " float high = {4000.0}>",
    ),
    "Unique": (
        "u = Unique(m) n = Size(u) f = Cast<to=1>(n) y = Mul(x, f)",
        "<float[4] m = {1.0, 2.0, 1.0, 4.0}>",
    ),
}


@pytest.mark.filterwarnings("error::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize("op_type", FOLDED)
def test_nodes_of_constants_alone_are_constants(op_type: str, tmp_path: Path) -> None:
    steps, constants = FOLDED[op_type]
    text = f"g (float[n] x) => (float[n] y) {constants} {{ {steps} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    compiled = satura.compile(model, threads=1)
    x = np.array([1, 2, -1], np.float32)
    compiled(x)
    compiled.save(tmp_path / "saved.satura")
    opened = satura.open(tmp_path / "saved.satura")
    assert_close(opened.run({"x": x})["y"], run(model, {"x": x})[0])


def test_what_is_drawn_is_no_constant() -> None:
    model = make_model([node("RandomNormalLike", "c", "y")], {}, {"c": np.zeros(4, np.float32)})
    with pytest.warns(HostFallbackWarning):
        assert load(model).nodes[-1].op.name == "host"
