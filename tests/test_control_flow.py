"""If, Loop and Scan: bodies are copied, and branches that depend on data are selected from."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

import satura
from satura.rewrite.errors import CallError, UnsupportedError
from satura.rewrite.onnx import importer as loading
from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from tests.onnx_models import F32, I64, agrees_with_onnxruntime, floats, make_model, random_input
from tests.onnx_models import node as make_node

BOOL = TensorProto.BOOL


def body(nodes: list[NodeProto], inputs: dict[str, int], outputs: dict[str, int]) -> GraphProto:
    """A graph whose values have these element types; vectors, but for a Loop's own two."""

    def infos(values: dict[str, int]) -> list[ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, code, [3] if code == F32 else [])
            for name, code in values.items()
        ]

    return helper.make_graph(nodes, "body", infos(inputs), infos(outputs))


def negated_or_doubled() -> NodeProto:
    """If the first element of x is positive -x, else x + x."""
    return make_node(
        "If", "c",
        then_branch=body([make_node("Neg", "x", "a")], {}, {"a": F32}),
        else_branch=body([make_node("Add", "x x", "b")], {}, {"b": F32}),
    )  # fmt: skip


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_branch_may_depend_on_data(sign: float) -> None:
    condition = [
        make_node("Gather", "x at", "first"),
        make_node("Greater", "first zero", "c"),
    ]
    constants = {"at": np.int64(0), "zero": np.float32(0)}
    model = make_model([*condition, negated_or_doubled()], {"x": (3,)}, constants)
    x = sign * floats([1, 2, 3])
    agrees_with_onnxruntime(model, {"x": x})
    result = satura.compile(model, threads=1).run({"x": x})["y"]
    assert result.tolist() == (-x if sign > 0 else x + x).tolist()


def test_branches_of_unlike_types_are_refused() -> None:
    chosen = make_node(
        "If", "c",
        then_branch=body([make_node("Neg", "x", "a")], {}, {"a": F32}),
        else_branch=helper.make_graph(
            [make_node("Concat", "x x", "b", axis=0)], "body", [],
            [helper.make_tensor_value_info("b", F32, [6])],
        ),
    )  # fmt: skip
    model = make_model([make_node("Cast", "k", "c", to=BOOL), chosen], {"x": (3,), "k": ()})
    with pytest.raises(UnsupportedError, match="depends on data"):
        load(model)


def counted(goes_on: str = "Identity", inputs: str = "c") -> NodeProto:
    """Each step adds its number to the state, whose squares are the rows of the result."""
    nodes = [
        make_node("Cast", "i", "number", to=F32),
        make_node("Add", "s number", "t"),
        make_node("Mul", "t t", "row"),
        make_node(goes_on, inputs, "d"),
    ]
    inner = body(nodes, {"i": I64, "c": BOOL, "s": F32}, {"d": BOOL, "t": F32, "row": F32})
    return make_node("Loop", "count - x", "y rows", body=inner)


def test_a_loop_with_a_known_count_is_copied() -> None:
    model = make_model([counted()], {"x": (3,)}, {"count": np.int64(4)}, outputs=("y", "rows"))
    program = agrees_with_onnxruntime(model, {"x": random_input(3)})
    assert [str(program.nodes[i].type) for _, i in program.outputs] == ["f32[3]", "f32[4, 3]"]


def test_a_loop_ends_where_its_condition_is_known_to_fail() -> None:
    model = make_model(
        [counted("Less", "i two")], {"x": (3,)},
        {"count": np.int64(9), "two": np.int64(2)}, outputs=("y", "rows"),
    )  # fmt: skip
    results = interpret(load(model), {"x": floats([0, 1, 2])})
    assert results["y"].tolist() == [3, 4, 5]
    assert results["rows"].shape == (3, 3)


@pytest.mark.parametrize(("of_rows", "expected"), [(0, (0, 3)), (1, (3, 0))])
def test_no_steps_make_no_rows_of_the_type_that_their_body_says(
    of_rows: int, expected: tuple[int, int]
) -> None:
    model = make_model([counted()], {"x": (3,)}, {"count": np.int64(0)}, outputs=("y", "rows"))
    results = interpret(load(model), {"x": floats([0, 1, 2])})
    assert results["y"].tolist() == [0, 1, 2] and results["rows"].shape == (0, 3)
    inner = body([make_node("Add", "s e", "t"), make_node("Tanh", "t", "row")],
                 {"s": F32, "e": F32}, {"t": F32, "row": F32})  # fmt: skip
    scan = make_node("Scan", "s0 x", "y rows", body=inner, num_scan_inputs=1,
                     scan_output_axes=[of_rows])  # fmt: skip
    program = load(
        make_model([scan], {"x": (0, 3)}, {"s0": floats([1, 2, 3])}, outputs=("y", "rows"))
    )
    results = interpret(program, {"x": np.zeros((0, 3), np.float32)})
    assert results["y"].tolist() == [1, 2, 3] and results["rows"].shape == expected
    assert results["rows"].dtype == np.float32


def rows_behind_the_first() -> NodeProto:
    """Each step adds a row of `rest` to the state, and its result is a row of `k` as well."""
    nodes = [
        make_node("Gather", "rest i", "r"), make_node("Add", "s r", "t"),
        make_node("Gather", "k zero", "q"), make_node("Add", "r q", "row"),
        make_node("Identity", "c", "d"),
    ]  # fmt: skip
    inner = body(nodes, {"i": I64, "c": BOOL, "s": F32}, {"d": BOOL, "t": F32, "row": F32})
    return make_node("Loop", "count - first", "y rows", body=inner)


@pytest.mark.filterwarnings("error::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize("length", [1, "n"])
def test_what_no_step_reads_may_have_no_elements(length: int | str) -> None:
    nodes = [
        make_node("Shape", "x", "shape"), make_node("Gather", "shape zero", "n"),
        make_node("Sub", "n one", "count"), make_node("Slice", "x at far", "rest"),
        make_node("Gather", "x zero", "first"), rows_behind_the_first(),
    ]  # fmt: skip
    constants = {"zero": np.int64(0), "one": np.int64(1), "at": [1], "far": [2**63 - 1]}
    model = make_model(nodes, {"x": (length, 3), "k": ("m", 3)}, constants, outputs=("y", "rows"))
    compiled = satura.compile(model, threads=1)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    results = compiled.run({"x": x[:1], "k": x[:0]})
    assert results["y"].tolist() == [0, 1, 2] and results["rows"].shape == (0, 3)
    if length == "n":
        rows = compiled.run({"x": x, "k": x[:1]})["rows"]
        np.testing.assert_array_equal(rows, x[1:] + x[0])
        with pytest.raises(CallError, match="the extent m is 0, and must be at least 1"):
            compiled.run({"x": x, "k": x[:0]})


@pytest.mark.parametrize("start", [0.0, 0.5, 3.0])
def test_a_loop_keeps_its_state_where_the_condition_depends_on_data(start: float) -> None:
    nodes = [
        make_node("Add", "s s", "t"),
        make_node("ReduceMax", "t", "most", keepdims=0),
        make_node("Less", "most limit", "d"),
    ]
    inner = body(nodes, {"i": I64, "c": BOOL, "s": F32}, {"d": BOOL, "t": F32})
    model = make_model(
        [make_node("Loop", "count - x", body=inner)], {"x": (3,)},
        {"count": np.int64(5), "limit": np.float32(10)},
    )  # fmt: skip
    agrees_with_onnxruntime(model, {"x": start + floats([0, 1, 0])})


def test_a_count_that_depends_on_data_is_refused() -> None:
    model = make_model(
        [make_node("Cast", "k", "count", to=I64), counted()], {"x": (3,), "k": ()},
        outputs=("y", "rows"),
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="number of steps"):
        load(model)


@pytest.mark.deep
def test_loops_inside_loops_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_INLINED", 10_000)
    inner = body([make_node("Identity", "c", "d"), make_node("Neg", "s", "t")],
                 {"i": I64, "c": BOOL, "s": F32}, {"d": BOOL, "t": F32})  # fmt: skip
    for _ in range(6):
        nodes = [make_node("Loop", "count - s", "t", body=inner), make_node("Identity", "c", "d")]
        inner = body(nodes, {"i": I64, "c": BOOL, "s": F32}, {"d": BOOL, "t": F32})
    model = make_model(
        [make_node("Loop", "count - x", body=inner)], {"x": (3,)}, {"count": np.int64(200)}
    )
    with pytest.raises(UnsupportedError, match="more than 10,000 nodes in all"):
        load(model)


def test_copies_without_nodes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = body([], {"i": I64, "c": BOOL, "s": F32}, {"c": BOOL, "s": F32})
    loop = make_node("Loop", "count - x", body=inner)
    model = make_model([loop], {"x": (3,)}, {"count": np.int64(200)})
    assert load(model).outputs
    monkeypatch.setattr(loading, "MOST_INLINED", 100)
    with pytest.raises(UnsupportedError, match="more than 100 nodes in all"):
        load(model)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_axes": [1], "scan_output_axes": [1]},
        {"scan_input_directions": [1], "scan_output_directions": [1]},
    ],
)
def test_a_scan_is_copied_per_element(attributes: dict[str, list[int]]) -> None:
    nodes = [make_node("Add", "s e", "t"), make_node("Tanh", "t", "row")]
    inner = body(nodes, {"s": F32, "e": F32}, {"t": F32, "row": F32})
    scan = make_node("Scan", "s0 x", "y rows", body=inner, num_scan_inputs=1, **attributes)
    shape = (3, 5) if "scan_input_axes" in attributes else (5, 3)
    model = make_model([scan], {"x": shape}, {"s0": floats([1, 2, 3])}, outputs=("y", "rows"))
    agrees_with_onnxruntime(model, {"x": random_input(*shape)})
