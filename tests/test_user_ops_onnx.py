"""Ops that users declare in ONNX models: nodes of other domains, in and out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import satura
from satura.errors import ModelError, UnsupportedError
from satura.ops import Axis, Constant, Count, DType, Perm, Scalar, Shape, TensorType, local_ops, op
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.host_call import HostFallbackWarning
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Attribute, Axes, Groups, ReduceFn, UnaryFn
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array
from tests.random_programs import compare
from tests.user_ops import Shift, UserOps


def model(*nodes: onnx.NodeProto, opset: int = 1, shape: tuple[int, ...] = (2, 3)) -> bytes:
    """A model with inputs x and y of `shape`, whose output is y0 of the last node."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    output = helper.make_tensor_value_info("y0", TensorProto.FLOAT, None)
    imports = [helper.make_opsetid("", 21)]
    imports += [helper.make_opsetid(d, opset) for d in ("test.domain", "satura.user") if opset]
    graph = helper.make_graph(list(nodes), "test", inputs, [output])
    return bytes(helper.make_model(graph, opset_imports=imports).SerializeToString())


def user_node(
    op_type: str, inputs: tuple[str, ...], attributes: Mapping[str, object], outputs: int = 1
) -> onnx.NodeProto:
    """A node of an op that `tests/user_ops.py` declares."""
    domain = "test.domain" if op_type in ("MyElu", "Stranger") else "satura.user"
    node = helper.make_node(op_type, inputs, [f"y{at}" for at in range(outputs)], domain=domain)
    node.attribute.extend(helper.make_attribute(*pair) for pair in attributes.items())
    return node


def elu_node(attributes: Mapping[str, object]) -> onnx.NodeProto:
    return user_node("MyElu", ("x",), attributes)


class MyElu(OpRun):
    """The op as a user of the onnx package states it."""

    op_domain = "test.domain"

    def _run(self, x: Array, alpha: float = 1.0) -> tuple[Array]:
        negative = np.multiply(np.float32(alpha), np.subtract(np.exp(x), np.float32(1)))
        return (np.where(np.greater(x, 0), x, negative),)


def test_a_node_of_another_domain_is_the_op(ops: UserOps) -> None:
    program = satura.load(model(elu_node({"alpha": 0.5})))
    assert [node.op.name for node in program.nodes] == ["input", "input", "elu"]
    assert program.nodes[-1].attributes == (Scalar.of(0.5, DType.F32),)


def test_the_onnx_package_computes_the_saved_model(ops: UserOps, tmp_path: Path) -> None:
    build = Builder()
    x = build.transpose(build.input("x", DType.F32, (2, 3)), (1, 0))
    bent = build.add(ops.elu, (x,), Scalar.of(0.25, DType.F32))
    program = satura.optimize(build.program({"y": build.transpose(bent, (1, 0))}))
    satura.save(program, tmp_path / "model.onnx")
    saved = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(saved)
    assert [node.op_type for node in saved.graph.node] == ["MyElu"]
    values: Array = np.array([[1, -2, np.inf], [-np.inf, np.nan, -0.0]], np.float32)
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(saved, new_ops=[MyElu]).run(None, {"x": values})
        got = satura.compile(tmp_path / "model.onnx", threads=1).run({"x": values})["y"]
    (expected,) = map(np.asarray, results)
    assert compare(expected, got, exact=False) is None


def test_programs_come_back_as_they_were(ops: UserOps) -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (symbol("n"), 3)) for name in "xy")
    q = build.input("q", DType.U8, (symbol("n"), 3))
    wide = build.broadcast(build.constant([[2.0]], DType.F32), (symbol("n"), 3))
    outputs = {
        "a": build.add(ops.softsign, (x,)),
        "b": build.add(ops.hypotenuse, (x, wide)),
        "c": build.add(ops.lerp, (x, y, wide)),
        "d": build.add(ops.dequantize, (q, y), Count(3)),
        "e": build.add(ops.sorted_rows, (x,), Axis(1)),
    }
    program = build.program(outputs)
    saved = to_model(program)
    onnx.checker.check_model(saved)
    assert {(entry.domain, entry.version) for entry in saved.opset_import} >= {("satura.user", 1)}
    (wide_name,) = (node.output[0] for node in saved.graph.node if node.op_type == "Expand")
    reads = {node.op_type: list(node.input) for node in saved.graph.node}
    assert reads["hypotenuse"] == ["x", wide_name], "other tools do not broadcast for it"
    with pytest.warns(HostFallbackWarning, match="op 'sorted_rows' has no formula"):
        again = satura.load(saved)
    random = np.random.default_rng(0)
    arguments: dict[str, Array] = {
        "x": random.standard_normal((4, 3)).astype(np.float32),
        "y": random.standard_normal((4, 3)).astype(np.float32),
        "q": random.integers(0, 9, (4, 3)).astype(np.uint8),
    }
    expected, got = satura.interpret(program, arguments), satura.interpret(again, arguments)
    assert all(np.array_equal(expected[name], got[name]) for name in outputs)
    found = [node.op.name for node in again.nodes]
    assert {"unary", "binary", "lerp", "dequantize", "sorted_rows"} <= set(found)


ATTRIBUTES: list[Attribute] = [
    Scalar.of(-0.0, DType.F32), Scalar.of(1 << 60, DType.I64), Scalar.of(0.1, DType.F64),
    Scalar.of(0.1, DType.BF16), Scalar.of(True, DType.BOOL), Count(3), Axis(1), Groups(2),
    Axes((0, 1)), Axes(()), Perm((1, 0)), Shape((2, 3)), DType.BF16, UnaryFn("exp"),
    ReduceFn("max"), Constant(np.array([[1, 2]], np.int8)),
]  # fmt: skip


@pytest.mark.parametrize("value", ATTRIBUTES, ids=lambda value: f"{type(value).__name__} {value}")
def test_attributes_come_back_as_they_were(value: Attribute, ops: UserOps) -> None:
    def kept(x: TensorType, value: Scalar) -> TensorType:
        """x, whatever the attribute."""
        return x

    kept.__annotations__ = {**kept.__annotations__, "value": type(value)}
    with local_ops():
        declared = op(reference=lambda x, value: x)(kept)
        build = Builder()
        made = build.add(declared, (build.input("x", DType.F32, (2,)),), value)
        program = build.program({"y": made})
        with pytest.warns(HostFallbackWarning):
            assert satura.load(to_model(program)) == program


def test_elementwise_operands_broadcast(ops: UserOps) -> None:
    node = user_node("lerp", ("x", "c", "y"), {})
    constant = helper.make_node("Constant", [], ["c"], value_floats=[1.0, 2.0, 3.0])
    program = satura.load(model(constant, node))
    lerp = program.nodes[-1]
    assert lerp.op is ops.lerp and lerp.type == TensorType(DType.F32, (2, 3))


WRONG = [
    ({}, "op 'elu' (.*) needs the attribute 'alpha', a Scalar"),
    ({"alpha": 0.5, "beta": 1}, "op 'elu' (.*) has no attribute 'beta'"),
    ({"alpha": "a"}, "attribute 'alpha' is of type STRING, but a Scalar, .*is of type FLOAT or"),
    ({"alpha": onnx.numpy_helper.from_array(np.ones(2))}, "'alpha': it has 2 elements, not one"),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "message"), WRONG)
def test_attributes_that_do_not_fit_are_errors(
    attributes: dict[str, object], message: str, ops: UserOps
) -> None:
    with pytest.raises(ModelError, match=rf"MyElu.*{message}"):
        satura.load(model(elu_node(attributes)))


def test_operands_that_do_not_fit_are_errors(ops: UserOps) -> None:
    for wrong, message in (
        (user_node("lerp", ("x", "y"), {}), r"op 'lerp' \(.*\) takes 3 inputs, not 2"),
        (user_node("lerp", ("x", "", "y"), {}), "input 1 is missing"),
        (user_node("softsign", ("x",), {}, outputs=2), "has one output"),
        (user_node("sorted_rows", ("x",), {"axis": 5}), "there is no such axis"),
    ):
        with pytest.raises(ModelError, match=message):
            satura.load(model(wrong))


def test_what_is_not_declared_stays_unknown(ops: UserOps) -> None:
    stranger = user_node("Stranger", ("x",), {})
    with pytest.raises(
        UnsupportedError, match=r"nothing is known about '\w+' of the domain.*satura\.ops"
    ):
        satura.load(model(stranger))
    with pytest.raises(ModelError, match="does not import its domain"):
        satura.load(model(elu_node({"alpha": 0.5}), opset=0))


def test_what_has_no_form_in_onnx_is_not_saved(ops: UserOps) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    program = build.program({"y": build.add(ops.rolled, (x,), Shift(1, 1))})
    with pytest.raises(UnsupportedError, match=r"rolled.*its attribute shift = .* has no form"):
        to_model(program)


def test_a_function_in_the_model_gives_way_to_the_op(ops: UserOps) -> None:
    """A model may carry a definition of the op for others; here it would be a plain copy."""
    body = helper.make_node("Identity", ["a"], ["b"])
    function = helper.make_function(
        "satura.user", "softsign", ["a"], ["b"], [body], [helper.make_opsetid("", 21)]
    )
    node = user_node("softsign", ("x",), {})
    proto = onnx.ModelProto.FromString(model(node))
    proto.functions.append(function)
    program: Program = satura.load(proto)
    assert [str(node) for node in program.nodes][-1] == "unary(%0) softsign"
