"""Sizes that decide how a model is lowered: those of one decision share a program of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import satura
from satura.rewrite.errors import HostFallbackWarning, ModelError, on_command_line
from satura.rewrite.onnx.load import load
from tests.models_of_extent import of_extent, rounded
from tests.onnx_models import F32, I64, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but


def body(nodes: list[NodeProto], inputs: str = "", outputs: str = "") -> GraphProto:
    """A graph of values of f32, but for the number i and the condition c, d of a Loop."""
    own: dict[str, tuple[int, list[int] | None]] = {
        "i": (I64, []),
        "c": (TensorProto.BOOL, []),
        "d": (TensorProto.BOOL, []),
    }
    given, made = (
        [helper.make_tensor_value_info(name, *own.get(name, (F32, None))) for name in names.split()]
        for names in (inputs, outputs)
    )
    return helper.make_graph(nodes, "body", given, made)


STEP = [node("Add", "s e", "t"), node("Tanh", "t", "u"), node("Identity", "u", "row")]
LOOP = body(
    [node("Gather", "x i", "e", axis=0), *STEP, node("Identity", "c", "d")], "i c s", "d u row"
)
LEAST = node("ReduceMin", "x", "s0", axes=[0], keepdims=0)


def chosen(*nodes: NodeProto) -> ModelProto:
    """Where k holds x, else two rows of it."""
    branches = {
        "then_branch": body([node("Neg", "x", "y1")], "", "y1"),
        "else_branch": body([node("Slice", "x zero two", "y2")], "", "y2"),
    }
    return of_extent([*nodes], "If : k : y", **branches)


DECIDED: dict[str, ModelProto] = {
    "a product that floats round": rounded(node("Mul", "f third", "m"), node("Floor", "m", "r")),
    "a root": rounded(node("Sqrt", "f", "m"), node("Floor", "m", "r")),
    "the half of an axis, sorted": of_extent(
        [node("Div", "n two", "k")], "TopK : x k : y z", ("y", "z"), axis=0
    ),
    "at most six, sorted": of_extent(
        [node("Min", "n six", "k")], "TopK : x k : y z", ("y", "z"), axis=0
    ),
    "a loop of half as many steps": of_extent(
        [LEAST, node("Div", "n two", "k")], "Loop : k0 yes s0 : y z", ("y", "z"), body=LOOP
    ),
    "a loop of at most six steps": of_extent(
        [LEAST, node("Min", "n six", "k")], "Loop : k0 yes s0 : y z", ("y", "z"), body=LOOP
    ),
    "a branch for long axes": chosen(node("Greater", "n five", "k")),
    "a branch for one extent": chosen(node("Equal", "n six", "k")),
    "a branch for odd extents": chosen(node("Mod", "n two", "m"), node("Equal", "m one", "k")),
    "a scan": of_extent(
        [LEAST, node("Identity", "n", "k")], "Scan : s0 x : y z", ("y", "z"),
        body=body(STEP, "s e", "u row"), num_scan_inputs=1, scan_input_directions=[1],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    deep_but(
        [
            "a product that floats round", "the half of an axis, sorted",
            "a branch for odd extents",
        ],
        DECIDED,
    ),
)  # fmt: skip
def test_sizes_decide_by_programs_of_their_own(name: str, tmp_path: Path) -> None:
    model = DECIDED[name]
    compiled = satura.compile(model, threads=1)
    compiled.save(tmp_path / "program", sizes=[{"n": 9}])  # refuses what runs on the host
    opened = satura.open(tmp_path / "program")
    for size in (6, 5, 16, 9, 6):
        x = random_input(size, 5)
        for program in (compiled, opened):
            results = program.run({"x": x}).values()
            for result, expected in zip(results, run(model, {"x": x}), strict=True):
                assert result.shape == expected.shape and result.dtype == expected.dtype
                assert_close(result, expected, 1e-5)


@pytest.mark.parametrize(
    "attributes", deep_but([{"axis": 1}], [{"axis": 0}, {"axis": 1}, {}]), ids=str
)
def test_a_longer_condition_chooses_of_what_there_is(attributes: dict[str, Any]) -> None:
    condition = {"c": np.array([1, 0, 1, 0, 0, 1], np.bool_)}
    model = make_model([node("Compress", "x c", **attributes)], {"x": ("n", "m")}, condition)
    compiled = satura.compile(model, threads=1)
    for shape in ((7, 6), (6, 7), (2, 2), (2, 0), (0, 0), (1, 3), (3, 1), (7, 6)):
        x = random_input(*shape)
        np.testing.assert_array_equal(compiled(x), run(model, {"x": x})[0])


def test_calls_of_one_decision_have_one_program() -> None:
    compiled = satura.compile(DECIDED["a branch for long axes"], threads=1)
    for size in (6, 7, 16, 40):
        compiled(random_input(size, 5))
    assert [report.sizes for report in compiled.cache if report.missed] == []


def in_a_function(model: ModelProto) -> ModelProto:
    """The model whose last node is a call of a function that has it."""
    last = model.graph.node[-1]
    imports = [helper.make_opsetid("", 17)]
    own = helper.make_function("own", "Last", last.input, last.output, [last], imports)
    nodes = [*model.graph.node[:-1], node("Last", " ".join(last.input), " ".join(last.output))]
    nodes[-1].domain = "own"
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    return make_model(nodes, {"x": ("n", 5)}, constants, outputs=last.output, functions=[own])


def of_rank(graph: GraphProto) -> GraphProto:
    """The graph, in which the values of f32 are declared to have five elements."""
    result = GraphProto()
    result.CopyFrom(graph)
    for value in (*result.input, *result.output):
        if value.type.tensor_type.elem_type == F32:
            value.CopyFrom(helper.make_tensor_value_info(value.name, F32, [5]))
    return result


REPEATED = {
    "a scan": DECIDED["a scan"],
    "a scan in a function": in_a_function(DECIDED["a scan"]),
    "a loop": of_extent(
        [LEAST, node("Identity", "n", "k")], "Loop : k0 yes s0 : y z", ("y", "z"),
        body=of_rank(LOOP),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", deep_but([], REPEATED))
def test_all_long_repetitions_share_the_program_of_a_step(name: str) -> None:
    compiled = satura.compile(REPEATED[name], threads=1)
    with pytest.warns(HostFallbackWarning, match=r"steps of \d nodes are more than 128 nodes"):
        compiled.run({"x": random_input(300, 5)})
    known = len(compiled.cache)
    for size in (301, 257, 100, 300):
        x = random_input(size, 5)
        expected = run(REPEATED[name], {"x": x})
        for result, wanted in zip(compiled.run({"x": x}).values(), expected, strict=True):
            assert result.shape == wanted.shape and result.dtype == wanted.dtype
            assert_close(result, wanted, 1e-5)
    assert len(compiled.cache) == known
    compiled.prepare({"n": 99})
    compiled.release()


def test_sizes_that_decide_are_tried_until_the_model_fits() -> None:
    """Three results of six elements: at none of the first sizes there are as many."""
    nodes = [
        node("Shape", "x", "n"), node("Div", "n two", "k"), node("TopK", "x k", "top places"),
        node("Add", "top three", "y"),
    ]  # fmt: skip
    three = np.arange(3, dtype=np.float32)
    model = make_model(nodes, {"x": ("n",)}, {"two": [2], "three": three}, 18)
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(satura.compile(model, 1).run({"x": x})["y"], [5, 5, 5])


def test_sizes_that_never_fit_are_asked_for() -> None:
    nodes = [
        node("Shape", "x", "n"), node("Div", "n two", "k"), node("TopK", "x k", "top places"),
        node("MatMul", "top many", "y"),
    ]  # fmt: skip
    constants: dict[str, object] = {"two": [2], "many": np.zeros((77, 2), np.float32)}
    model = make_model(nodes, {"x": ("a size",)}, constants, 18)
    with pytest.raises(
        ModelError, match=r"name yours, as in satura.compile\(model, dims=\{'a size': 6\}\)$"
    ):
        load(model)
    with on_command_line(), pytest.raises(ModelError, match=r"--dim 'a size=6'$"):
        load(model)
