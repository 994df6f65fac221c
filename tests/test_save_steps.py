"""Loops and scans of known length are saved as the nodes that they were where that is cheaper."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import satura
from satura.rewrite.onnx.order import all_nodes
from satura.rewrite.onnx.write.save import to_model
from tests.onnxruntime_reference import assert_close, run

_SCAN = """
    <ir_version: 8, opset_import: ["" : 17]>
    recurrent (float[b, 2] s, float[b, 6, 2] u) => (float[b, 2] last, float[b, 6, 2] y) {
        pair = Mul (s, s)
        end, rows = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body =
            step (float[b, 2] x, float[b, 2] v0) => (float[b, 2] next, float[b, 2] row) {
                narrow = Mul (x, half)
                sum = Add (narrow, v0)
                next = Add (sum, pair)
                more = MatMul (next, weight)
                row = Tanh (more)
            }> (s, u)
        last = Relu (end)
        y = Neg (rows)
    }
"""
_LOOP = """
    <ir_version: 8, opset_import: ["" : 11]>
    powers (float[b, 2] s) => (float[b, 2] last, float[5, b] sums) <
        int64 times = {5}, bool yes = {1}
    > {
        pair = Exp (s)
        last, sums = Loop <body =
            step (int64 i, bool goes_on, float[b, 2] x) => (bool on, float[b, 2] next, float[b] v1)
            {
                on = Identity (goes_on)
                v1 = ReduceSum <axes = [1], keepdims = 0> (x)
                scaled = Mul (x, pair)
                moved = MatMul (scaled, weight)
                first = Tanh (moved)
                mean = ReduceMean <keepdims = 0> (first)
                is_more = Greater (mean, half)
                next = If <
                    then_branch = plain () => (float[b, 2] out) { out = Add (first, half) },
                    else_branch = less () => (float[b, 2] out) { out = Mul (first, half) }
                > (is_more)
            }> (times, yes, s)
    }
"""
_INVARIANT = """
    <ir_version: 8, opset_import: ["" : 17]>
    scaled (float[b, 2] s, float[b, 3, 2] u) => (float[b, 2] last) {
        last = Scan <num_scan_inputs = 1, scan_input_axes = [1], body =
            step (float[b, 2] x, float[b, 2] each) => (float[b, 2] next) {
                power = Exp (s)
                sine = Sin (power)
                cosine = Cos (sine)
                root = Tanh (cosine)
                sum = Add (x, each)
                next = Mul (sum, root)
            }> (s, u)
    }
"""
_OF_CONSTANTS = """
    <ir_version: 8, opset_import: ["" : 17]>
    powers (float[b, 2] s) => (float[b, 2] y) <int64 times = {5}, bool yes = {1}> {
        power = Loop <body = step (int64 i, bool goes_on, float[2, 2] x) => (bool on, float[2, 2] z)
            {
                on = Identity (goes_on)
                z = MatMul (x, weight)
            }> (times, yes, weight)
        y = MatMul (s, power)
    }
"""


def _model(text: str) -> ModelProto:
    model = parser.parse_model(text)
    weight = np.array([[0.5, -1], [1, 0.25]], np.float32)
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name)
        for name, value in (("weight", weight), ("half", np.array(0.5, np.float32)))
    )
    return model


def _saved(model: ModelProto) -> ModelProto:
    saved = to_model(satura.optimize(model))
    onnx.checker.check_model(saved, full_check=True)
    for sizes in ({"b": 1}, {"b": 3}):
        arguments = _arguments(model, sizes)
        for found, expected in zip(run(saved, arguments), run(model, arguments), strict=True):
            assert_close(found, expected, 2e-6)
    return saved


def _arguments(model: ModelProto, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        each.name: random.standard_normal(
            [sizes.get(dim.dim_param, dim.dim_value) for dim in each.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for each in model.graph.input
    }


def _ops(model: ModelProto) -> Counter[str]:
    return Counter(each.op_type for each in all_nodes(model.graph.node))


@pytest.mark.parametrize("text", [_SCAN, _LOOP], ids=["scan", "loop"])
def test_what_is_repeated_is_saved_as_it_was(text: str) -> None:
    model = _model(text)
    assert _ops(_saved(model)) == _ops(model)


@pytest.mark.parametrize("text", [_INVARIANT, _OF_CONSTANTS], ids=["invariant", "constants"])
def test_what_need_not_be_repeated_is_not(text: str) -> None:
    written = _ops(_saved(_model(text)))
    assert not written.keys() & {"Loop", "Scan"}
    assert written["Sin"] == ("Sin" in text)


def test_weights_inside_of_what_is_repeated_are_stored_once() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        twice (float[b, 32] s, float[b, 6, 32] u, float[b, 6, 32] v)
            => (float[b, 32] y, float[b, 32] z)
        {
            y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body =
                one (float[b, 32] x, float[b, 32] e) => (float[b, 32] next) {
                    product = MatMul (x, w)
                    next = Add (product, e)
                }> (s, u)
            z = Scan <num_scan_inputs = 1, scan_input_axes = [1], body =
                two (float[b, 32] x, float[b, 32] e) => (float[b, 32] next) {
                    product = MatMul (x, w)
                    next = Add (product, e)
                }> (s, v)
        }
    """)
    weight = numpy_helper.from_array(np.eye(32, dtype=np.float32)[::-1] * 0.5, "w")
    for node in model.graph.node:
        (body,) = (each.g for each in node.attribute if each.HasField("g"))
        body.initializer.append(weight)
    saved = _saved(model)
    assert _ops(saved) == _ops(model)
    assert [list(each.dims) for each in saved.graph.initializer] == [[32, 32]]
    assert not any(each.g.initializer for node in saved.graph.node for each in node.attribute)


def test_a_branch_that_is_not_taken_is_not_run_in_a_saved_model() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        one_of (float[n] x, int64[1] at, bool inside) => (float[1] y) <int64[1] last = {-1}> {
            y = If <
                then_branch = there () => (float[1] a) { a = Gather (x, at) },
                else_branch = here () => (float[1] b) { b = Gather (x, last) }
            > (inside)
        }
    """)
    saved = to_model(satura.optimize(model))
    onnx.checker.check_model(saved, full_check=True)
    x = np.arange(3, dtype=np.float32)
    for at, inside, wanted in ((1, True, 1), (7, False, 2)):
        arguments = {"x": x, "at": np.array([at]), "inside": np.array(inside)}
        assert run(saved, arguments)[0].tolist() == [wanted]
