"""Nodes that no program computes stay in saved models together with those that need it: of lists of
open length, and of branches whose results have other ranks."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import satura
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.write.save import to_model
from tests.onnxruntime_reference import assert_close, run

BODY = """body = step (int64 i, bool go, seq(float[2]) s, float[2] v)
    => (bool on, seq(float[2]) t, float[2] o) {
    on = Identity(go) o = Tanh(v) t = SequenceInsert(s, o) }"""

TOGETHER = {
    "parts of an axis": (
        "(float[n, 3] x) => (float y, float[n, 3] z) {"
        " a = Tanh(x) s = SplitToSequence(a) b = SequenceAt(s, last) c = ReduceSum<keepdims=0>(b)"
        " y = Neg(c) e = ConcatFromSequence<axis=0>(s) z = Exp(e) }",
        {"SplitToSequence", "SequenceAt", "ConcatFromSequence"},
    ),
    "parts of two": (
        "(float[n, 3] x) => (float[k, 3] y, int64 z) { s = SplitToSequence(x, two)"
        " e = ConcatFromSequence<axis=0>(s) y = Exp(e) c = SequenceLength(s) z = Add(c, last) }",
        {"SplitToSequence", "ConcatFromSequence", "SequenceLength"},
    ),
    "a list as long as an axis": (
        "(float[n, 2] x) => (float[2] v, float[n, 2] y) { h = Shape<end=1>(x)"
        " m = Squeeze(h) f = ReduceSum<keepdims=0>(x, zeros) l = SequenceEmpty()"
        f" r, v = Loop(m, , l, f) <{BODY}> e = ConcatFromSequence<axis=0, new_axis=1>(r)"
        " y = Add(e, x) }",
        {"Loop", "ConcatFromSequence", "Add"},
    ),
    "a list that is a result": (
        "(float[n, 3] x) => (seq(float[m, 3]) s) { a = Exp(x) s = SplitToSequence(a) }",
        {"SplitToSequence"},
    ),
    "what lies between": (
        "(float[n, 3] x) => (float[k, 3] y) { s = SplitToSequence(x) b = SequenceAt(s, last)"
        " c = Exp(b) d = SequenceInsert(s, c) e = ConcatFromSequence<axis=0>(d) y = Neg(e) }",
        {"SplitToSequence", "SequenceAt", "Exp", "SequenceInsert", "ConcatFromSequence"},
    ),
    "an axis of one element": (
        "(float[n, 3] x) => (float y, float[n, 3] z) { z = Exp(x) h = Shape<end=1>(x)"
        " c = Equal(h, ones) q = If(c) <then_branch = t () => (float p) { p = Squeeze(z, zeros) },"
        " else_branch = e () => (float[n, 3] r) { r = Identity(z) }>"
        " s = Neg(q) y = ReduceSum<keepdims=0>(s) }",
        {"If", "Neg", "ReduceSum"},
    ),
    "a result of any rank": (
        "(float[n, 3] x) => (float[] y) { z = Exp(x) h = Shape<end=1>(x)"
        " c = Equal(h, ones) q = If(c) <then_branch = t () => (float[] p) { p = Squeeze(z) },"
        " else_branch = e () => (float[n, 3] r) { r = Identity(z) }> y = Neg(q) }",
        {"If", "Neg"},
    ),
    "another matrix": (
        "(float[n, k] x) => (float[n, 2] y) { h = Shape<start=1>(x) c = Equal(h, ones)"
        " q = If(c) <then_branch = t () => (float[n, 2] p) { p = MatMul(x, w) },"
        " else_branch = e () => (float[n, 2] r) { r = MatMul(x, u) }> y = Exp(q) }",
        {"If"},
    ),
}  # fmt: skip


CONSTANTS = """<int64[1] zeros = {0}, int64[1] ones = {1}, int64 last = {-1}, int64 two = {2},
    float[1, 2] w = {2, 3}, float[3, 2] u = {1, 2, 3, 4, 5, 6}> {"""


def the_model(text: str) -> ModelProto:
    text = text.replace("{", CONSTANTS, 1)
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", TOGETHER)
def test_what_no_program_takes_stays_with_what_reads_it(name: str) -> None:
    text, kept = TOGETHER[name]
    model = the_model(text)
    made = satura.optimize(model)
    assert isinstance(made, Parts) and {node.op_type for node in made.kept} == kept
    saved = to_model(made)
    has_shapes = all(each.type.tensor_type.HasField("shape") for each in model.graph.output)
    if has_shapes:  # as the checker asks of lists and tensors alike
        onnx.checker.check_model(saved, full_check=True)
    width = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    for rows in (1, 2, 5, 16):
        for columns in (width,) if width else (1, 3):
            x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
            found, expected = (run(each, {"x": x}) for each in (saved, model))
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                assert one.shape == other.shape
                assert_close(one, other, 2e-6)


def test_it_stays_when_it_is_in_a_function() -> None:
    inner = parser.parse_function(
        '<domain: "own", opset_import: ["": 17]> split (x) => (y)'
        " { s = SplitToSequence(x) z = ConcatFromSequence<axis=0>(s) y = Neg(z) }"
    )
    model = the_model("(float[n, 3] x) => (float[n, 3] z) { y = Exp(x) z = Neg(y) }")
    model.graph.node[1].op_type, model.graph.node[1].domain = "split", "own"
    model.functions.append(inner)
    model.opset_import.add(domain="own", version=1)
    saved = to_model(satura.optimize(model))
    x = np.ones((4, 3), np.float32)
    assert_close(run(saved, {"x": x})[0], run(model, {"x": x})[0])
