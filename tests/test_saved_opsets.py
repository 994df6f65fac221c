"""The opset that a model is saved in: the oldest since 18 that takes what each node has."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, defs, helper, parser

import satura
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.element_types import types_of
from satura.rewrite.onnx.write.emitter import OPSET
from satura.rewrite.onnx.write.program import OLDEST_SAVED, older_opsets
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType
from tests.onnxruntime_reference import run

WRITER = Path(satura.__file__).parents[1] / "rewrite" / "onnx" / "write"
OPSETS = range(OLDEST_SAVED, OPSET + 1)


def written_ops() -> list[str]:
    """The names of ops that the writer has in its texts, of those that changed since opset 18."""
    texts = "".join(path.read_text() for path in WRITER.glob("*.py"))
    names = {*re.findall(r'"([A-Z]\w+)"', texts)}
    return sorted(name for name in names if defs.has(name, OPSET, "") and is_changed(name))


def is_changed(op_type: str) -> bool:
    return defs.get_schema(op_type, OPSET, "").since_version > OLDEST_SAVED


def takes(op_type: str, opset: int, element_type: str) -> bool:
    """Whether an opset has the op, with a first operand of this type."""
    return (
        defs.has(op_type, opset, "")
        and element_type in defs.get_schema(op_type, opset, "").inputs[0].types
    )


def saved_opset(node: NodeProto, element_type: str) -> int:
    """The opset of a node whose first operand has this type."""
    types = {"x": {element_type}}
    return older_opsets([node], OPSET, lambda name: types.get(name, set()))[0]


@pytest.mark.parametrize("op_type", written_ops())
def test_a_node_has_the_oldest_opset_that_takes_its_element_type(op_type: str) -> None:
    schema = defs.get_schema(op_type, OPSET, "")
    for element_type in schema.inputs[0].types:
        oldest = next(opset for opset in OPSETS if takes(op_type, opset, element_type))
        if op_type == "Reshape" and "float8" in element_type:
            oldest = 21  # from which on onnxruntime has it
        node = NodeProto(op_type=op_type, input=["x"], output=["y"])
        assert saved_opset(node, element_type) == oldest, element_type


def test_attributes_and_inputs_of_newer_opsets_count() -> None:
    for node, opset in (
        (helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT), 18),
        (helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT, saturate=0), 19),
        (helper.make_node("DequantizeLinear", ["x", "s"], ["y"]), 18),
        (helper.make_node("DequantizeLinear", ["x", "s"], ["y"], block_size=2), 21),
        (helper.make_node("Gelu", ["x"], ["y"]), 20),
    ):
        element_type = "int8" if node.op_type == "DequantizeLinear" else "float"
        assert saved_opset(node, f"tensor({element_type})") == opset


def test_element_types_are_those_of_the_operands() -> None:
    half = helper.make_tensor("h", TensorProto.FLOAT16, [], [0.5])
    inside = helper.make_graph(
        [helper.make_node("Add", ["h", "h"], ["d"])], "inside", [], [], [half]
    )
    nodes = [
        helper.make_node("Greater", ["x", "c"], ["g"]),
        helper.make_node("Cast", ["g"], ["k"], to=TensorProto.FLOAT16),
        helper.make_node("Shape", ["k"], ["s"]),
        helper.make_node("Where", ["g", "x", "x"], ["w"]),
        helper.make_node("Own", ["w"], ["o"], domain="own"),
        helper.make_node("If", ["g"], ["f"], then_branch=inside),
    ]
    build = Builder()
    x = build.input("x", DType.F64, (2,))
    types = types_of([build.program({"y": x})], nodes, {}, OPSET)
    assert [types(name) for name in "xgkswd"] == [
        {f"tensor({each})"} for each in ("double", "bool", "float16", "int64", "double", "float16")
    ]
    assert types("o") == {f"tensor({each})" for each in ("double", "bool", "float", "int64")}


def test_a_largest_of_floats_is_of_opset_18_beside_bools() -> None:
    """onnxruntime has no Softsign of f64 in opset 20."""
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["": 18]>
        g (double[2] x) => (double[1] z, double[2] y, bool[2] b) <int64[1] a = {0}> {
            z = ReduceMax (x, a) y = Softsign (x) b = Greater (x, z)
        }
    """)
    saved = to_model(load(model))
    assert [each.version for each in saved.opset_import] == [18]
    arguments = {"x": np.array([1.0, -3.0])}
    for found, wanted in zip(run(saved, arguments), run(model, arguments), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["int2", "uint4", "float4e2m1", "float8e5m2"])
def test_copies_that_outputs_are_count(kind: str) -> None:
    """An output that is an input is copied by a node, which has its element type, too."""
    code = TensorProto.DataType.Value(kind.upper())
    x, y = (helper.make_tensor_value_info(name, code, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    saved = to_model(load(model))
    onnx.checker.check_model(saved, full_check=True)
    assert saved.opset_import[0].version > 18


@pytest.mark.parametrize("op_type", ["Softplus", "ReduceLogSumExp"])
def test_a_half_is_not_computed_in_steps_that_overflow(op_type: str) -> None:
    """onnxruntime computes a Softplus of opset 18 as ONNX defines it, by an Exp."""
    model = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": 22]>
        g (float16[1, 3] x) => (float16[a, b] y) {{ y = {op_type} (x) }}
    """)
    arguments = {"x": np.array([[0, 20, 100]], np.float16)}
    saved = to_model(satura.optimize(model))
    np.testing.assert_array_equal(run(saved, arguments)[0], run(model, arguments)[0])
    assert saved_opset(saved.graph.node[0], "tensor(float)") == OLDEST_SAVED
