"""What the parts of a saved model have in common: weights, names, sizes and functions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

import satura
from satura.errors import EqualSizesWarning
from satura.rewrite.onnx.write.save import save, to_model
from tests import test_data_extents as extents
from tests.models_in_parts import compare
from tests.onnx_models import make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.user_ops import UserOps


def _body(step: NodeProto, shape: Sequence[str | int]) -> GraphProto:
    """The body of a loop that passes on what a node makes of `h`."""
    info = helper.make_tensor_value_info
    return helper.make_graph(
        [node("Identity", "go", "on"), step], "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []),
         info("h", TensorProto.FLOAT, shape)],
        [info("on", TensorProto.BOOL, []), info("o", TensorProto.FLOAT, shape)],
    )  # fmt: skip


def test_weights_are_stored_beside_the_model_once(tmp_path: Path) -> None:
    """Those that only a body reads, too."""
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal((64, 64)).astype("f4") for name in ("v", "w")}
    body = _body(node("MatMul", "h v", "o"), ("n", 64))
    nodes = [
        node("MatMul", "x w", "a"), node("ReduceMax", "d", "e", keepdims=0),
        node("Cast", "e", "m", to=7), node("Loop", "m - a", "r", body=body),
        node("MatMul", "r w", "y"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n", 64), "d": (1, 1)}, weights)
    own = ModelProto.FromString(model.SerializeToString())
    onnx.save(
        own, tmp_path / "model.onnx", save_as_external_data=True, location="w", size_threshold=0
    )
    save(satura.optimize(tmp_path / "model.onnx"), tmp_path / "saved.onnx", largest_file=0)
    (data,) = tmp_path.glob("saved.onnx.*.data")
    assert data.stat().st_size == 2 * 64 * 64 * 4
    session = onnxruntime.InferenceSession(
        tmp_path / "saved.onnx", providers=["CPUExecutionProvider"]
    )
    for turns in (0, 2):
        call = {"x": random_input(3, 64), "d": np.full((1, 1), turns, np.float32)}
        for one, other in zip(session.run(None, call), run(model, call), strict=True):
            assert_close(one, other, 1e-4)


def _swapped(nodes: Sequence[NodeProto], names: tuple[str, str]) -> None:
    """Let each node read one of two tensors where it reads the other."""
    other = dict(zip(names, reversed(names), strict=True))
    for each in nodes:
        each.input[:] = [other.get(name, name) for name in each.input]


def test_names_in_another_order_are_found_by_the_comparison() -> None:
    model, calls = extents.written()
    saved = to_model(satura.optimize(model))
    compare(model, saved, calls)
    faults = 0
    for names in permutations(("x", "u", "w", "places"), 2):
        if names[0] < names[1]:
            broken = ModelProto.FromString(saved.SerializeToString())
            _swapped(broken.graph.node, names)
            with pytest.raises(Exception):  # noqa: B017  # wrong, or refused by onnxruntime
                compare(model, broken, calls)
            faults += 1
    assert faults == 6


def test_open_axes_without_names_are_the_same_in_each_part() -> None:
    """Else those of two parts would meet, and be taken for equal with a warning."""
    nodes = [
        node("Relu", "x", "r"), node("NonZero", "r", "p"), node("ReduceMax", "p", "m", keepdims=0),
        node("Cast", "m", "f", to=1), node("Add", "r x", "s"), node("Mul", "s f", "y"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (None, None)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved = to_model(satura.optimize(model))
    compare(model, saved, [{"x": random_input(*shape)} for shape in ((2, 3), (1, 4))])


@pytest.mark.deep
def test_sizes_that_data_decide_may_be_taken_for_equal() -> None:
    nodes = [node("NonZero", "x", "p"), node("NonZero", "z", "q"), node("Add", "p q")]
    model = make_model(nodes, {"x": ("n",), "z": ("m",)})
    with pytest.warns(EqualSizesWarning, match=r'the sizes "q\[1\]" and "p\[1\]" are taken'):
        parts = satura.optimize(model)
    x, z = np.array([0, 2, 1], np.float32), np.array([3, 4], np.float32)
    compare(model, to_model(parts), [{"x": x, "z": z}])


@pytest.mark.deep
def test_a_size_of_data_that_is_taken_for_one_is_said() -> None:
    nodes = [
        node("NonZero", "x", "p"), node("Add", "p five", "a"), node("Add", "p three", "b"),
        node("Concat", "a b", axis=1),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n",)}, {"five": np.arange(5), "three": np.arange(3)})
    with pytest.warns(EqualSizesWarning, match=r'behind \'p\': the sizes "p\[1\]" and 1 are taken'):
        parts = satura.optimize(model)
    compare(model, to_model(parts), [{"x": np.array([0, 2], np.float32)}])


@pytest.mark.deep
def test_functions_of_declared_ops_stay_with_the_nodes_that_call_them(ops: UserOps) -> None:
    assert ops.elu.user is not None
    domain, name = ops.elu.user.domain, ops.elu.user.op_type
    body = _body(helper.make_node(name, ["h"], ["o"], domain=domain), ("n",))
    function = helper.make_function(
        domain, name, ["h"], ["o"], [node("Elu", "h", "o")], [helper.make_opsetid("", 18)]
    )
    nodes = [
        node("ReduceMax", "x", "e", keepdims=0), node("Cast", "e", "m", to=7),
        node("Loop", "m - x", "y", body=body),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n",)}, opset=18, functions=[function])
    saved = to_model(satura.optimize(model))
    assert [each.name for each in saved.functions] == [name]
    compare(model, saved, [{"x": np.array([2, -1], np.float32)}])
