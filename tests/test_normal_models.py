"""Models are read in one form: ONNX's own domain has one name, and negative extents are open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, OperatorSetIdProto, parser

import satura
from satura.errors import ModelError
from satura.rewrite.onnx.files import read_apart
from satura.rewrite.onnx.write.save import to_model
from tests.onnxruntime_reference import run

X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
TEXT = """<ir_version: 9, opset_import: ["" : 17, "own" : 1]>
    g (float[n,4] x, bool up) => (float[m,4] y) <float[m,4] r> {
        r = own.twice(x)
        y = If (up) <
            then_branch = a () => (float[m,4] u) { u = Relu (r) },
            else_branch = b () => (float[m,4] v) { v = Neg (r) }>
    }
    <domain: "own", opset_import: ["" : 17]> twice (z) => (t) { t = Add (z, z) }"""
Named = NodeProto | OperatorSetIdProto
PLACES: dict[str, Callable[[ModelProto], Named]] = {
    "a node": lambda model: model.graph.node[1],
    "a node in a branch": lambda model: model.graph.node[1].attribute[0].g.node[0],
    "a node of a function": lambda model: model.functions[0].node[0],
    "an import of a function": lambda model: model.functions[0].opset_import[0],
    "the import": lambda model: model.opset_import[0],
    "an import of the same version": lambda model: model.opset_import.add(version=17),
}


def _is_alike(model: ModelProto) -> None:
    arguments = {"x": X, "up": np.array(True)}
    given = model.SerializeToString()
    for source in (model, given):
        np.testing.assert_array_equal(
            satura.interpret(source, arguments)["y"], np.maximum(2 * X, 0)
        )
    saved = to_model(satura.optimize(model))
    np.testing.assert_array_equal(run(saved, arguments)[0], np.maximum(2 * X, 0))
    assert model.SerializeToString() == given  # that of the caller


@pytest.mark.parametrize("places", [*((place,) for place in PLACES), tuple(PLACES)], ids=", ".join)
def test_both_names_of_a_domain_are_one(places: tuple[str, ...]) -> None:
    model = parser.parse_model(TEXT)
    for place in places:
        PLACES[place](model).domain = "ai.onnx"
    _is_alike(model)


def test_versions_under_both_names_are_of_one_domain() -> None:
    model = parser.parse_model(TEXT)
    model.opset_import.add(domain="ai.onnx", version=18)
    with pytest.raises(ModelError, match="versions 17 and 18 of domain ''"):
        satura.load(model)


def test_negative_extents_are_open() -> None:
    """As those of Paddle, which onnxruntime reads so."""
    model = parser.parse_model(TEXT)
    graph = model.graph
    branch = graph.node[1].attribute[0].g
    for value in (graph.input[0], graph.output[0], *graph.value_info, branch.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    _is_alike(model)
    program = satura.load(model)
    assert [str(dim) for dim in program.input_types["x"].shape] == ["x_0", "4"]


def test_negative_extents_of_sequences_are_open() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]>
        g (seq(float[n,4]) s) => (float[m,4] y) { y = ConcatFromSequence <axis = 0> (s) }"""
    model = parser.parse_model(text)
    inner = model.graph.input[0].type.sequence_type.elem_type.tensor_type
    inner.shape.dim[0].dim_value = -1
    read = read_apart(model).proto.graph.input[0].type
    assert not read.sequence_type.elem_type.tensor_type.shape.dim[0].HasField("dim_value")
    result = satura.compile(model, threads=1).run({"s": [X, X[:1]]})["y"]
    np.testing.assert_array_equal(result, np.concatenate([X, X[:1]]))
