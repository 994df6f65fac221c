"""Ops that programs spell out in small ones are nodes again in saved models."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper

import satura
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.opsets import is_one_of, means_the_same
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import BinaryFn
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import Typed, make_model, node
from tests.onnxruntime_reference import run
from tests.saved_programs import arguments_of, check, values


def test_ops_of_many_small_ones_come_back() -> None:
    nodes = [
        node("LayerNormalization", "x scale bias", "a", axis=-1),
        node("LayerNormalization", "a scale", "b", axis=2, epsilon=0.1),
        node("Mul", "b cut", "c"), node("Erf", "c", "d"), node("Add", "d one", "e"),
        node("Mul", "b half", "f"), node("Mul", "f e", "g"), node("Softmax", "g", "y", axis=1),
    ]  # fmt: skip
    line = values(DType.F32, (6,), special=False)
    constants = {
        "scale": line, "bias": line + 1, "half": np.float32(0.5), "one": np.float32(1),
        "cut": np.float32(0.5**0.5),
    }  # fmt: skip
    program = satura.optimize(make_model(nodes, {"x": ("n", 4, 6)}, constants))
    ops = [each.op_type for each in to_model(program).graph.node]
    assert ops == ["LayerNormalization", "LayerNormalization", "Gelu", "Softmax"]
    check(program, arguments_of(program, n=2), arguments_of(program, special=False, n=3))


RAISED: tuple[tuple[str, dict[str, object], tuple[tuple[int, ...], ...]], ...] = (
    ("Softmax", {"axis": 0}, ()), ("LogSoftmax", {"axis": 0}, ()), ("LogSoftmax", {"axis": 2}, ()),
    ("Gelu", {"approximate": "none"}, ()), ("Gelu", {"approximate": "tanh"}, ()),
    ("LayerNormalization", {"axis": 2, "epsilon": 0.1}, ((2,), (2,))),
    ("LayerNormalization", {"axis": 1, "epsilon": 1e-5}, ((4, 2),)),
    ("InstanceNormalization", {"epsilon": 1e-3}, ((4,), (4,))),
    ("LpNormalization", {"axis": 1, "p": 2}, ()), ("LpNormalization", {"axis": 2, "p": 1}, ()),
    ("LeakyRelu", {"alpha": 0.2}, ()), ("LeakyRelu", {"alpha": -1.5}, ()), ("Selu", {}, ()),
    ("Elu", {"alpha": 1.0}, ()), ("Elu", {"alpha": -0.3}, ()), ("Celu", {"alpha": 2.0}, ()),
    ("HardSwish", {}, ()), ("HardSigmoid", {"alpha": 0.3, "beta": 0.0}, ()), ("Softplus", {}, ()),
    ("HardSigmoid", {"alpha": 1.0, "beta": 0.4}, ()), ("ThresholdedRelu", {"alpha": 0.7}, ()),
    ("Softsign", {}, ()), ("Clip", {}, ((), ())), ("Trilu", {"upper": 1}, ()),
    ("Trilu", {"upper": 0}, ()), ("PRelu", {}, ((4, 1),)), ("PRelu", {}, ((2,),)),
)  # fmt: skip
"""Ops that programs spell out in small ones: attributes, and the shapes of the constants."""


@pytest.mark.parametrize("op_type, attributes, shapes", RAISED)
def test_an_op_comes_back_of_what_has_its_type(
    op_type: str, attributes: dict[str, object], shapes: tuple[tuple[int, ...], ...]
) -> None:
    constants = {f"c{at}": values(DType.F32, s, at, special=False) for at, s in enumerate(shapes)}
    one = node(op_type, " ".join(["x", *constants]), "y", **attributes)
    alone = load(make_model([one], {"x": ("n", 4, 2)}, constants, opset=22))
    (written,) = to_model(alone).graph.node
    found = {a.name: onnx.helper.get_attribute_value(a) for a in written.attribute}
    wanted = {a.name: onnx.helper.get_attribute_value(a) for a in one.attribute}
    assert written.op_type == op_type
    assert {"approximate": b"none", **found} == {"approximate": b"none", **wanted} | {
        name: pytest.approx(value) for name, value in wanted.items() if isinstance(value, float)
    }
    check(alone, *(arguments_of(alone, n, special=n % 2 == 1, n=n) for n in (1, 3, 4)))
    one.input[0] = "wide"
    spread = load(
        make_model([node("Expand", "x shape", "wide"), one], {"x": (1, 4, 1)},
                   constants | {"shape": [3, 1, 2]}, opset=22)
    )  # fmt: skip
    check(spread, arguments_of(spread))


_OTHER = {"add": "sub", "sub": "add", "mul": "div", "div": "mul", "max": "min", "min": "max",
          "lt": "le", "le": "eq", "eq": "lt"}  # fmt: skip


@pytest.mark.parametrize("op_type, attributes, shapes", RAISED)
def test_what_is_not_quite_an_op_is_saved_as_it_is(
    op_type: str, attributes: dict[str, object], shapes: tuple[tuple[int, ...], ...]
) -> None:
    """One binary of its formula is turned round, or of another function."""
    constants = {f"c{at}": values(DType.F32, s, at, special=False) for at, s in enumerate(shapes)}
    one = node(op_type, " ".join(["x", *constants]), "y", **attributes)
    program = load(make_model([one], {"x": (3, 4, 2)}, constants, opset=22))
    nodes = list(program.nodes)
    results: list[tuple[str, int]] = []
    for index, each in enumerate(program.nodes):
        if each.op.name != "binary":
            continue
        (function,) = each.attributes
        assert isinstance(function, BinaryFn)
        turned = replace(each, operands=each.operands[::-1])
        for other in (turned, replace(each, attributes=(BinaryFn(_OTHER[function.name]),))):
            start = len(nodes) - program.inputs[-1] - 1
            assert program.inputs == (0,)
            nodes += [
                replace(n, operands=tuple(at and at + start for at in n.operands))
                for n in [*program.nodes[:index], other, *program.nodes[index + 1 :]][1:]
            ]
            results.append((f"y{len(results)}", program.outputs[0][1] + start))
    mutants = Program(tuple(nodes), program.inputs, tuple(results))
    x = values(DType.F32, (3, 4, 2), special=False)
    check(mutants, {"x": np.multiply(x, 0.25, dtype=np.float32)}, tolerance=1e-4)


def test_sums_so_far_and_repeated_elements_come_back() -> None:
    nodes = [
        node("CumSum", "x one", "a"), node("CumSum", "a one", "b", reverse=1, exclusive=1),
        node("Resize", "b scales", "y", mode="nearest"),
    ]  # fmt: skip
    nodes[2].input.insert(1, "")
    constants = {"one": 1, "scales": np.array([1, 2, 3], np.float32)}
    program = load(make_model(nodes, {"x": ("n", 4, 2)}, constants))
    assert [each.op_type for each in to_model(program).graph.node] == ["CumSum", "CumSum", "Resize"]
    check(program, *(arguments_of(program, special=False, n=n) for n in (1, 3)), tolerance=1e-5)
    check(program, arguments_of(program, n=2))


def test_activations_and_repeated_elements_between_convolutions_are_single_nodes() -> None:
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("LeakyRelu", "a", "b", alpha=0.1),
        node("Resize", "b scales", "c", mode="nearest"), node("Conv", "c w2", "d"),
        node("PRelu", "d slope", "y"),
    ]  # fmt: skip
    nodes[2].input.insert(1, "")
    constants = {
        "w": values(DType.F32, (32, 3, 3, 3), special=False),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "w2": values(DType.F32, (16, 32, 1, 1), special=False),
        "slope": values(DType.F32, (16, 1, 1), special=False),
    }  # fmt: skip
    program = satura.optimize(make_model(nodes, {"x": (1, 3, 9, 8)}, constants))
    ops = [each.op_type for each in to_model(program).graph.node]
    assert ops == ["Conv", "LeakyRelu", "Resize", "Conv", "PRelu"]
    check(program, arguments_of(program, special=False), tolerance=3e-4)


def test_ops_of_f16_come_back() -> None:
    build = Builder()
    x = build.input("x", DType.F16, (3, 4))
    six = build.broadcast(build.constant(np.full((1, 1), 6, np.float16)), (3, 4))
    clipped = build.binary("min", build.unary("relu", x), six)
    program = build.program({"y": clipped})
    assert [each.op_type for each in to_model(program).graph.node] == ["Clip"]
    check(program, arguments_of(program))


@pytest.mark.filterwarnings("ignore::satura.rewrite.errors.LimitWarning")
def test_nodes_of_a_model_come_back_where_nothing_is_cheaper() -> None:
    nodes = [
        node("DynamicQuantizeLinear", "rows", "q s z"), node("MatMulInteger", "q w z", "a"),
        node("ArgMax", "rows", "b", axis=-1), node("ReduceL2", "rows", "c", axes=[1]),
        node("DepthToSpace", "x", "d", blocksize=2), node("TopK", "rows two", "e f"),
        node("GridSample", "x grid", "g", mode="bilinear"),
        node("Resize", "x none scales", "h", mode="linear"),
        node("QuantizeLinear", "x step zero", "x8"), node("DequantizeLinear", "x8 step zero", "xq"),
        node("DequantizeLinear", "k step nought", "kq"),
        node("Conv", "xq kq bias", "cq", pads=[1, 1, 1, 1]), node("Relu", "cq", "rq"),
        node("QuantizeLinear", "rq step zero", "i"),
    ]  # fmt: skip
    nodes[7].input[1] = ""
    constants = {
        "w": np.arange(-6, 6, dtype=np.int8).reshape(4, 3), "two": [2],
        "scales": np.array([1, 1, 2, 3], np.float32), "step": np.float32(0.25),
        "zero": np.uint8(128), "nought": np.int8(0), "bias": np.array([0.5, 1, 2, 0], np.float32),
        "k": np.arange(-72, 72, dtype=np.int8).reshape(4, 4, 3, 3),
    }  # fmt: skip
    inputs = {"x": (1, 4, 5, 6), "grid": (1, 3, 4, 2), "rows": (3, 4)}
    model = make_model(nodes, inputs, constants, outputs=tuple("abcdefghi"))
    program = satura.optimize(model, limits=satura.Limits(rounds=1))
    written = Counter(each.op_type for each in to_model(program).graph.node)
    assert written == Counter(each.op_type for each in nodes)
    check(program, arguments_of(program, special=False), tolerance=2e-5)


OF_F16 = {
    "ReduceLogSumExp": [-1000, -1000, -999, -np.inf],
    "ReduceLogSum": [60000, 60000, 5, 1],
    "ReduceSumSquare": [0.01, 0.02, 0.03, 0.0005],
}


@pytest.mark.parametrize("name", OF_F16)
def test_a_node_of_f16_does_not_come_back_where_newer_opsets_define_it_by_others(name: str) -> None:
    """onnxruntime would round what is between these: 0 behind the exponentials, and infinities."""
    x = Typed((4, "n"), TensorProto.FLOAT16)
    model = make_model([node(name, axes=[0], keepdims=0)], {"x": x}, opset=13)
    saved = to_model(satura.optimize(model))
    assert name not in {each.op_type for each in saved.graph.node}
    given = {"x": np.array(OF_F16[name], np.float16).reshape(4, 1)}
    (result,), (expected,) = (run(each, given) for each in (saved, model))
    np.testing.assert_allclose(result.astype(np.float32), expected.astype(np.float32), rtol=2e-3)


def test_nodes_whose_inputs_changed_places_do_not_come_back_in_newer_opsets() -> None:
    assert means_the_same("Resize", 11, 13) and not means_the_same("Resize", 10, 11)
    assert means_the_same("BatchNormalization", 9, 15)


def graph(op_type: str) -> GraphProto:
    """A graph of one node."""
    return helper.make_graph([node(op_type, "x", "y")], "inside", [], [])


@pytest.mark.parametrize(
    ("written", "types", "is_old"),
    [
        (node("AveragePool", "x", kernel_shape=[2, 2], auto_pad="NOTSET"), (), True),
        (node("AveragePool", "x", kernel_shape=[2, 2], dilations=[2, 2]), (), False),
        (node("Pad", "x p"), (), True),
        (node("Pad", "x p", mode="wrap"), (), False),
        (node("Pad", "x p"), ("tensor(float8e5m2)",), False),
        (node("Gelu", "x"), (), False),
        (node("Relu", "x"), ("tensor(float8e5m2)",), True),
        (node("Scan", "x p q", body=graph("Relu"), num_scan_inputs=1), (), True),
        (node("Scan", "x p q", body=graph("Gelu"), num_scan_inputs=1), (), False),
    ],
)
def test_what_came_with_newer_opsets_is_told(
    written: NodeProto, types: tuple[str, ...], is_old: bool
) -> None:
    every = {"tensor(float)", *types}
    assert is_one_of(written, 18, 21, lambda name: every) is is_old
