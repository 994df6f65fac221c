"""Saved models keep nodes that open sizes keep from being programs, and steps without shapes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import satura
from satura.rewrite.onnx.write.save import to_model
from tests.onnx_models import random_input
from tests.onnxruntime_reference import assert_close, run

_BEST_PATH = """
    <ir_version: 8, opset_import: ["" : 16]>
    viterbi (float[b, t, 4] scores) => (float[b, 4] best, int64[b, r, 1] path) <
        int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] end = {999},
        float[4, 4] moves = {0, 1, -1, 2, 1, 0, 3, -2, 0.5, 2, 1, 0, -1, 1, 0, 2}
    > {
        head = Slice (scores, zero, one, one)
        start = Squeeze (head, one)
        rest = Slice (scores, one, end, one)
        best, places = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
            body = forward (float[b, 4] s, float[b, 4] e) => (float[b, 4] next, int64[b, 4] place) {
                wide = Unsqueeze (s, two)
                all = Add (wide, moves)
                most = ReduceMax <axes = [1], keepdims = 0> (all)
                place = ArgMax <axis = 1, keepdims = 0> (all)
                next = Add (most, e)
            }> (start, rest)
        last = ArgMax <axis = 1> (best)
        first, path = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
            scan_input_directions = [1], scan_output_directions = [1],
            body = backward (int64[b, 1] c, int64[b, 4] p) => (int64[b, 1] n, int64[b, 1] o) {
                n = GatherElements <axis = 1> (p, c)
                o = Identity (n)
            }> (last, places)
    }
"""
_OF_DATA = """
    <ir_version: 8, opset_import: ["" : 16]>
    grow (float[b, 4] x, int64 count) => (float[b, 4] y, float[r, b, 1, 4] rows) <
        int64[1] one = {1}, bool yes = {1}
    > {
        twice = Add (count, count)
        least = ReduceSum <keepdims = 0> (x)
        few = Cast <to = 7> (least)
        steps = Add (few, twice)
        y, rows = Loop <body =
            step (int64 i, bool on, float[b, 4] s) => (bool go, float[b, 4] next, float[b, 1, 4] o)
            {
                go = Identity (on)
                next = Tanh (s)
                o = Unsqueeze (next, one)
            }> (steps, yes, x)
    }
"""


def _undeclared(text: str) -> ModelProto:
    model = parser.parse_model(text)
    for node in model.graph.node:
        for body in (each.g for each in node.attribute if each.HasField("g")):
            for value in (*body.input, *body.output):
                if value.type.tensor_type.shape.dim:
                    value.type.tensor_type.ClearField("shape")
    return model


def test_a_scan_whose_body_declares_no_shapes_stays() -> None:
    model = _undeclared(_BEST_PATH)
    saved = to_model(satura.optimize(model))
    onnx.checker.check_model(saved, full_check=True)
    assert [node.op_type for node in saved.graph.node].count("Scan") == 2
    for b, t in ((1, 2), (2, 3), (3, 9)):
        scores = np.random.default_rng(t).standard_normal((b, t, 4)).astype(np.float32)
        arguments = {"scores": scores}
        for found, expected in zip(run(saved, arguments), run(model, arguments), strict=True):
            assert_close(found, expected, 2e-6)


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_a_loop_whose_body_declares_no_shapes_stays() -> None:
    model = _undeclared(_OF_DATA)
    saved = to_model(satura.optimize(model))
    onnx.checker.check_model(saved, full_check=True)
    compiled = satura.compile(model, threads=1)
    for b, count in ((1, 1), (3, 2)):
        arguments = {"x": np.full((b, 4), 0.25, np.float32), "count": np.array(count)}
        expected = run(model, arguments)
        for found, wanted in zip(run(saved, arguments), expected, strict=True):
            assert_close(found, wanted, 2e-6)
        for found, wanted in zip(compiled.run(arguments).values(), expected, strict=True):
            assert_close(found, wanted, 1e-5)


def test_a_convolution_of_open_channels_stays() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 16]>
        g (float[n, c, h, w] x, float[o, c, 3, 3] k) => (float[n, o, a, b] y) {
            t = Relu (x)
            u = Conv <pads = [1, 1, 1, 1]> (t, k)
            y = Neg (u)
        }
    """)
    saved = to_model(satura.optimize(model))
    assert [node.op_type for node in saved.graph.node] == ["Relu", "Conv", "Neg"]
    for c, o in ((1, 3), (2, 1)):
        arguments = {"x": random_input(2, c, 4, 5), "k": random_input(o, c, 3, 3)}
        assert_close(run(saved, arguments)[0], run(model, arguments)[0], 2e-6)


def test_an_attention_of_open_heads_with_a_past_stays() -> None:
    model = parser.parse_model("""
        <ir_version: 11, opset_import: ["": 23]>
        g (float[b, h, s, 4] q, float[b, h, t, 4] k, float[b, h, t, 4] v,
           float[b, h, p, 4] past_k, float[b, h, p, 4] past_v) => (y, new_k, new_v)
        { y, new_k, new_v = Attention (q, k, v, , past_k, past_v) }
    """)
    saved = to_model(satura.optimize(model))
    assert [node.op_type for node in saved.graph.node] == ["Attention"]
    now, past = random_input(1, 2, 3, 4), random_input(1, 2, 5, 4)
    arguments = {"q": now, "k": now, "v": -now, "past_k": past, "past_v": past}
    for found, expected in zip(run(saved, arguments), run(model, arguments), strict=True):
        assert_close(found, expected, 2e-6)
