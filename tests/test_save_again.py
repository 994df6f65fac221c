"""Saved models are as large as what they were made of, and stay so, in every opset."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import satura
from benchmarks.models import build
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import Typed, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.test_load import FORMS
from tests.tiers import deep_but

FLOAT, DOUBLE, HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16
INTEGERS = (TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT64)


def _model(
    nodes: list[NodeProto], types: dict[str, int], constants: dict[str, Array], opset: int,
    shape: tuple[str | int, ...] = ("n", 4), outputs: tuple[str, ...] = (),
) -> ModelProto:  # fmt: skip
    """A model of inputs of one shape; without `outputs` every result is one."""
    inputs = {name: Typed(shape, code) for name, code in types.items()}
    names = outputs or tuple(name for each in nodes for name in each.output)
    return make_model(nodes, inputs, constants, opset, names)


def _one_of_each() -> ModelProto:
    """Nodes that are spelled out as many where nothing says what the model had."""
    types = {f"x{code}": int(code) for code in (FLOAT, DOUBLE, HALF, *INTEGERS)}
    nodes: list[NodeProto] = []
    constants: dict[str, Array] = {"twice": np.array([2, 1]), "wide": np.array([3, 1, 4])}

    def add(op_type: str, operands: str, **attributes: object) -> None:
        nodes.append(node(op_type, operands, f"y{len(nodes)}", **attributes))

    for code in INTEGERS:
        for source in (FLOAT, DOUBLE, HALF):
            add("Cast", f"x{source}", to=code)
        dtype = helper.tensor_dtype_to_np_dtype(code)
        constants[f"c{code}"] = np.array([3, 1, 2, 5], dtype)
        for op_type in ("Add", "Mul", "Div", "Mod", "Max", "Min"):
            add(op_type, f"c{code} x{code}")
        if code in (TensorProto.INT32, TensorProto.INT64):
            add("Pow", f"c{code} x{code}")
        if code in (TensorProto.UINT8, TensorProto.UINT32, TensorProto.UINT64):
            add("BitShift", f"x{code} c{code}", direction="LEFT")
            add("BitShift", f"c{code} x{code}", direction="RIGHT")
    for op_type in ("Add", "Mul", "Sub", "Div", "Pow", "Max", "Min"):
        add(op_type, f"x{HALF} x{HALF}")
        add(op_type, f"x{FLOAT} x{FLOAT}")
    add("Mod", f"x{FLOAT} x{FLOAT}", fmod=1)
    add("Tile", f"x{FLOAT} twice")
    add("Expand", f"x{FLOAT} wide")
    add("Shape", f"x{FLOAT}")
    add("Size", f"x{FLOAT}")
    constants |= {"scale": np.array([1, 2], np.float32), "bias": np.array([0.5, 3], np.float32)}
    add("GroupNormalization", f"x{FLOAT} scale bias", num_groups=2)
    return _model(nodes, types, constants, 20)


def _ops(model: ModelProto) -> Counter[str]:
    return Counter(each.op_type for each in model.graph.node)


@pytest.mark.filterwarnings("ignore::satura.rewrite.errors.LimitWarning")
def test_a_node_is_saved_as_one_however_often_it_is_saved() -> None:
    model = _one_of_each()
    limits = satura.Limits(rounds=1)
    saved = to_model(satura.optimize(model, limits=limits))
    assert _ops(saved) == _ops(model)
    assert _ops(to_model(satura.optimize(saved, limits=limits))) == _ops(model)
    onnx.checker.check_model(saved, full_check=True)


def test_what_is_only_loaded_and_saved_does_not_grow() -> None:
    once = to_model(satura.load(_one_of_each()))
    assert len(to_model(satura.load(once)).graph.node) <= len(once.graph.node)
    random = np.random.default_rng(0)
    arguments = {
        each.name: random.integers(0, 99, (3, 4)).astype(
            helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        )
        for each in once.graph.input
    }
    for one, two in zip(
        run(once, arguments), run(to_model(satura.load(once)), arguments), strict=True
    ):
        np.testing.assert_array_equal(one, two)


_KEPT = (  # ops that changed in opsets 18 to 24
    node("Conv", "x w", "y", pads=[1, 1]), node("LpPool", "x", "y", kernel_shape=[2], pads=[0, 1]),
    node("Mish", "x", "y"), node("InstanceNormalization", "x one one", "y"),
    node("BatchNormalization", "x one one one one", "y"), node("TopK", "x four", "y places"),
    node("AveragePool", "x", "y", kernel_shape=[3], pads=[1, 1]),
)  # fmt: skip
_SPELLED_OUT = (  # what has a name of its own
    [node("HardSigmoid", "x", "s", alpha=1 / 6), node("Mul", "x s", "y")],
    [node("Abs", "x", "a"), node("Add", "a unit", "b"), node("Div", "x b", "y")],
    [node("Greater", "x zero", "a"), node("Where", "a x zero", "y")],
    [node("Exp", "x", "a"), node("Add", "a unit", "b"), node("Log", "b", "y")],
)


@pytest.mark.filterwarnings("ignore::satura.rewrite.errors.LimitWarning")
@pytest.mark.parametrize("opset", deep_but([22], range(18, 25)))
def test_what_is_kept_and_what_is_raised_agree_on_an_opset(opset: int) -> None:
    random = np.random.default_rng(opset)
    ones = np.ones(4, np.float32)
    constants: dict[str, Array] = {
        "w": random.standard_normal((4, 4, 3)).astype(np.float32), "one": ones,
        "zero": np.zeros((), np.float32), "unit": np.ones((), np.float32),
        "four": np.array([4]),
    }  # fmt: skip
    for _ in range(3):
        nodes: list[NodeProto] = []
        for at in range(3):
            kept = _KEPT[random.integers(len(_KEPT))]
            spelled = _SPELLED_OUT[random.integers(len(_SPELLED_OUT))]
            for number, part in enumerate(([kept], spelled)):
                before, after = f"y{2 * at + number}", f"y{2 * at + number + 1}"
                for each in part:
                    names = {"x": before, "y": after}
                    own = {name: f"{name}{after}" for name in ("a", "b", "s", "places")}
                    nodes.append(_renamed(each, names | own))
        model = _model(nodes, {"y0": FLOAT}, constants, opset, (2, 4, 4), ("y6",))
        saved = to_model(satura.optimize(model, limits=satura.Limits(rounds=1)))
        assert saved.opset_import[0].version in (18, max(opset, 21))
        onnx.checker.check_model(saved, full_check=True)
        assert "HardSigmoid" not in _ops(saved)
        arguments = {"y0": random.standard_normal((2, 4, 4)).astype(np.float32)}
        for found, wanted in zip(run(saved, arguments), run(model, arguments), strict=True):
            assert_close(found, wanted, 1e-4)


@pytest.mark.filterwarnings("ignore::satura.rewrite.errors.LimitWarning")
def test_the_outputs_of_a_split_in_equal_parts_are_counted() -> None:
    nodes = [node("Split", "x", "a b", axis=1), node("Mul", "a b", "y")]
    model = _model(nodes, {"x": FLOAT}, {}, 17, outputs=("y",))
    saved = to_model(satura.optimize(model, limits=satura.Limits(rounds=1)))
    assert _ops(saved) == _ops(model)
    onnx.checker.check_model(saved, full_check=True)


@pytest.mark.filterwarnings("ignore::satura.rewrite.errors.LimitWarning")
def test_patterns_that_runtimes_fuse_are_kept() -> None:
    nodes = [
        node("Pow", "x two", "p"), node("ReduceMean", "p", "m", axes=[-1]),
        node("Sqrt", "m", "s"), node("Div", "x s", "d"), node("MatMul", "d up", "u"),
        node("Add", "u bias", "b"), node("Div", "b root", "r"), node("Erf", "r", "e"),
        node("Add", "e one", "f"), node("Mul", "b f", "g"), node("Mul", "g half", "h"),
        node("MatMul", "h down", "y"),
    ]  # fmt: skip
    constants: dict[str, Array] = {
        name: np.array(value, np.float32)
        for name, value in (("two", 2), ("root", 2**0.5), ("one", 1), ("half", 0.5))
    }
    random = np.random.default_rng(0)
    for name, shape in (("up", (16, 64)), ("bias", (64,)), ("down", (64, 16))):
        constants[name] = random.standard_normal(shape).astype(np.float32)
    model = _model(nodes, {"x": FLOAT}, constants, 17, ("n", 8, 8, 16), ("y",))
    found = [each.op_type for each in to_model(satura.optimize(model)).graph.node]
    assert found == ["Pow", "ReduceMean", "Sqrt", "Div", "MatMul", "Add", "Gelu", "MatMul"]


@pytest.mark.deep
def test_a_bias_stays_next_to_its_product() -> None:
    saved = to_model(satura.optimize(build("tiny_segformer")))
    producers = {name: each for each in saved.graph.node for name in each.output}
    constants = {each.name for each in saved.graph.initializer}
    biased = [
        producers[name].input[0]
        for each in saved.graph.node
        for name in each.input
        if each.op_type == "Add"
        and constants & {*each.input}
        and name in producers
        and producers[name].op_type == "Reshape"
    ]
    assert "MatMul" not in {producers[name].op_type for name in biased if name in producers}


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::satura.rewrite.errors.LimitWarning")
@pytest.mark.parametrize("opset", sorted({opset for opset, *_ in FORMS.values()}))
def test_forms_of_old_opsets_are_saved_as_nodes_of_their_own(opset: int) -> None:
    """All forms of an opset as one model, as it was loaded and as it was rewritten."""
    nodes: list[NodeProto] = []
    inputs: dict[str, tuple[int, ...]] = {}
    constants: dict[str, object] = {}
    for at, (name, (since, form, shape, values)) in enumerate(FORMS.items()):
        if since == opset and name != "hardmax flattens":  # nothing finds that one again
            names = {each: f"{each}{at}" for each in (*form.input, *form.output) if each}
            nodes.append(_renamed(form, names))
            inputs[f"x{at}"] = shape
            constants |= {names[each]: value for each, value in values.items()}
    outputs = [name for each in nodes for name in each.output]
    model = make_model(nodes, inputs, constants, opset, outputs)
    arguments = {name: random_input(*shape) for name, shape in inputs.items()}
    expected = run(model, arguments)
    rewritten = to_model(satura.optimize(model, limits=satura.Limits(rounds=1)))
    assert {*(_ops(rewritten) - _ops(model))} <= {"Identity", "Reshape", "Resize", "Slice"}
    for saved in (rewritten, to_model(satura.load(model))):
        onnx.checker.check_model(saved, full_check=True)
        for each in (saved, to_model(satura.load(saved))):
            for found, wanted in zip(run(each, arguments), expected, strict=True):
                assert found.shape == wanted.shape and found.dtype == wanted.dtype
                assert_close(np.asarray(found, np.float64), np.asarray(wanted, np.float64), 1e-4)


def _renamed(each: NodeProto, names: dict[str, str]) -> NodeProto:
    result = NodeProto()
    result.CopyFrom(each)
    result.input[:] = [names.get(name, name) for name in each.input]
    result.output[:] = [names.get(name, name) for name in each.output]
    return result
