"""Graphs inside of nodes that fit the nodes, wherever they are."""

from __future__ import annotations

import onnx
import pytest

import satura
from satura.rewrite.errors import ModelError

HEAD = '<ir_version: 8, opset_import: ["": 18]> g (bool c, float x, float[3] v) => (float p) {'
REST = "i = Identity(z) j = Identity(c)"

COUNTS = {
    "p = If(c) <then_branch = t (float z) => (float q) { q = Exp(x) }, else_branch = e () =>"
    " (float s) { s = Exp(x) }>": "then_branch takes 1 inputs, not 0",
    "p = If(c) <then_branch = t () => (float q) { q = Exp(x) }, else_branch = e () =>"
    " (float s, float u) { s = Exp(x) u = Exp(s) }>": "else_branch has 2 results, not 1",
    f"p = Loop(, c, x) <body = b (int64 n, bool d, float z, float a) => (bool j, float i)"
    f" {{ {REST} }}>": "body takes 4 inputs, not 3",
    f"p = Loop(, c, x) <body = b (int64 n, bool d, float z) => (bool j) {{ {REST} }}>":
    "body has 1 results, not 2",
    f"p = Loop(, c, x) <body = b (int64 n, bool d, float z) => () {{ {REST} }}>":
    "body has 0 results, not 2",
    f"p = Scan <num_scan_inputs = 1, body = b (float z, float a) => (float i) {{ {REST} }}> (v)":
    "body takes 2 inputs, not 1",
    f"p = Scan <num_scan_inputs = 1, body = b (float z) => () {{ {REST} }}> (v)":
    "body has 0 results, not 1",
}  # fmt: skip


@pytest.mark.parametrize(("node", "message"), COUNTS.items())
@pytest.mark.parametrize("is_inside", [False, True])
def test_bodies_take_and_give_what_their_nodes_do(node: str, message: str, is_inside: bool) -> None:
    if is_inside:
        node = (
            f"p = If(c) <then_branch = o () => (float p) {{ {node} }},"
            f" else_branch = w () => (float h) {{ h = Identity(x) }}>"
        )
    with pytest.raises(ModelError, match=f"^node .*: {message}$"):
        satura.load(onnx.parser.parse_model(f"{HEAD} {node} }}"))


TWO = "t = Concat <axis = 0> (n, n)"
BRANCHES = (
    "<then_branch = t () => (float q) { q = Exp(x) },"
    " else_branch = e () => (float s) { s = Abs(x) }>"
)
MISFITS = {
    f"p = If(c, c) {BRANCHES}": r"Node .* has input size 2 not in range",
    f"m = Size(v) one = Constant <value_ints = [1]> () n = Reshape(m, one) {TWO}"
    f" p = Loop(t, c, x) <body = b (int64 n, bool d, float z) => (bool j, float i) {{ {REST} }}>":
    "its number of steps is not a single element",
    f"p = Loop(, c, x) <body = b (int64 n, bool d, float z) => (float z, float i) {{ {REST} }}>":
    "its body gives a condition of f32, not of bool",
    f"p = Scan <num_scan_inputs = 1, scan_output_directions = [2], body = b (float z) => (float i)"
    f" {{ {REST} }}> (v)": "scan_output_directions has others than 0, forward, and 1, backward",
    "p = Scan <num_scan_inputs = 1, scan_input_directions = [0, 1], body = b (float z) =>"
    f" (float i) {{ {REST} }}> (v)": "scan_input_directions has 2 entries for 1",
    f"p = Scan <num_scan_inputs = 1, scan_output_axes = [0, 1], body = b (float z) => (float i)"
    f" {{ {REST} }}> (v)": "scan_output_axes has 2 entries for 1",
}  # fmt: skip


@pytest.mark.parametrize(("node", "message"), MISFITS.items())
@pytest.mark.parametrize("verb", ["load", "optimize", "compile"])
@pytest.mark.parametrize("rows", ["3", "k"])
def test_attributes_and_inputs_fit_where_a_node_stays_too(
    node: str, message: str, verb: str, rows: str
) -> None:
    model = onnx.parser.parse_model(f"{HEAD.replace('[3]', f'[{rows}]')} {node} }}")
    with pytest.raises(ModelError, match=f"^node .*: {message}"):
        getattr(satura, verb)(model)


@pytest.mark.parametrize("verb", [satura.load, satura.compile, satura.optimize])
def test_a_body_that_is_no_graph_is_named(verb: object) -> None:
    """A graph of which nothing is left is no graph in the file."""
    model = onnx.parser.parse_model(
        f"{HEAD} p = If(c) <then_branch = t () => (float q) {{ q = Exp(x) }},"
        " else_branch = e () => (float s) { s = Exp(x) }> }"
    )
    (else_branch,) = (x for x in model.graph.node[0].attribute if x.name == "else_branch")
    else_branch.ClearField("g")
    assert callable(verb)
    with pytest.raises(ModelError, match=r"^node .*\(If\) .*: else_branch is not a graph$"):
        verb(model)


def test_nodes_of_opsets_that_are_converted_have_bodies_too() -> None:
    branches = "then_branch = t () => (float q) { q = Exp(x) }, else_branch = e () => (float s)"
    model = onnx.parser.parse_model(f"{HEAD} p = If(c) <{branches} {{ s = Abs(x) }}> }}")
    model.opset_import[0].version = 6
    assert satura.load(model).outputs[0][0] == "p"
