"""Types of inputs and outputs that a Compiled tells of, where its program has numbers for sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import satura
from satura.rewrite.types.tensor_type import TensorType
from tests.tiers import deep_but

BODY = "(float[3] p, float[3] q) => (float[3] r, float[3] o) { r = Add(p, q) o = Tanh(r) }"


def scanned(extent: str, output: str, more: str = "") -> onnx.ModelProto:
    """A Scan over `extent` rows, and nodes behind it that compute `output`, its third result."""
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[3] s, float['
        f"{extent}3] x) => (float[3] e, float[] c, {output}) {{"
        f" e, y = Scan <num_scan_inputs = 1, body = b {BODY}> (s, x)"
        f" c = ReduceSum <keepdims = 0> (x) {more} }}"
    )


def texts(types: dict[str, TensorType]) -> list[str]:
    return [str(each) for each in types.values()]


def test_extents_of_other_programs_are_open() -> None:
    compiled = satura.compile(scanned("t, ", "float[t, 3] y"), threads=1)
    for size in (2, 5):
        assert texts(compiled.inputs) == ["f32[3]", "f32[t, 3]"]
        assert texts(compiled.outputs) == ["f32[3]", "f32[]", "f32[t, 3]"]
        x = np.ones((size, 3), np.float32)
        assert compiled.run({"s": x[0], "x": x})["y"].shape == (size, 3)
    assert "x: f32[t, 3]" in repr(compiled)


def test_names_are_those_of_the_model_or_of_the_output() -> None:
    """Where nothing says that a number is the same at all sizes, it has a name."""
    model = scanned("t, ", "float[rows, 3] z", "z = Concat <axis = 0> (y, x)")
    assert texts(satura.compile(model, threads=1).outputs)[2] == "f32[rows, 3]"
    model.graph.output[2].type.tensor_type.ClearField("shape")
    assert texts(satura.compile(model, threads=1).outputs)[2] == "f32[z_0, 3]"


def test_saved_programs_tell_of_the_same(tmp_path: Path) -> None:
    path = tmp_path / "scan.onnx"
    onnx.save(scanned("t, ", "float[t, 3] y"), path)
    for _ in range(2):  # compiled, and recalled
        compiled = satura.compile(path, threads=1)
        assert texts(compiled.inputs) == ["f32[3]", "f32[t, 3]"]
        compiled.run({"s": np.ones(3, np.float32), "x": np.ones((2, 3), np.float32)})
    compiled.save(tmp_path / "scan.satura")
    opened = satura.open(tmp_path / "scan.satura")
    assert (opened.inputs, opened.outputs) == (compiled.inputs, compiled.outputs)


def test_a_size_that_the_model_needs_is_a_number() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y)'
        " <float[3] w = {1, 2, 3}> { z = Concat <axis = 0> (x, w) s = Shape(w)"
        " t = Reshape(x, s) y = Add(t, w) }"
    )
    assert texts(satura.compile(model, threads=1).inputs) == ["f32[3]"]


TURNS = ("Sub(n, one)", "Div(n, two)", "Min(n, two)")


@pytest.mark.parametrize("turns", deep_but(TURNS[1:2], TURNS))
def test_extents_of_as_many_turns_as_sizes_make_are_open(turns: str) -> None:
    """The number of turns may be computed from a size."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n, 3] x) => (float[3] e, float[k, 3] y)'
        " <int64 one = {1}, int64 two = {2}, float[3] s = {0, 0, 0}, int64[1] first = {0}>"
        f" {{ sizes = Shape <start = 0, end = 1> (x) n = Squeeze (sizes, first) m = {turns}"
        " e, y = Loop <body = b (int64 i, bool go, float[3] p) => (bool on, float[3] q, float[3] r)"
        " { on = Identity (go) row = Gather <axis = 0> (x, i) q = Add (p, row) r = Neg (q) }>"
        " (m, , s) }"
    )
    compiled = satura.compile(model, threads=1)
    assert texts(compiled.outputs) == ["f32[3]", "f32[k, 3]"]
    count = {"Sub": 4, "Div": 2, "Min": 2}[turns[:3]]
    assert compiled.run({"x": np.ones((5, 3), np.float32)})["y"].shape == (count, 3)
