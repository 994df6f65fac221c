"""Nodes whose results have extents that only data decide: between two programs, on the host."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import satura
from satura.commands.cli import main
from satura.rewrite.errors import CallError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.program.host_call import HostFallbackWarning
from satura.rewrite.program.reference import evaluator
from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import Typed, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but


def detector() -> tuple[ModelProto, list[dict[str, Array]]]:
    """Boxes that are kept, with their scores: what comes before is read after it, too."""
    nodes = [
        node("Relu", "x", "boxes"), node("Sigmoid", "s", "scores"),
        node("NonMaxSuppression", "boxes scores most", "kept"),
        node("Gather", "kept last", "at", axis=1), node("Gather", "boxes at", "found", axis=1),
        node("Mul", "found two", "y"),
    ]  # fmt: skip
    constants: dict[str, object] = {
        "most": [3], "last": np.int64(2), "two": np.float32(2),
    }  # fmt: skip
    model = make_model(nodes, {"x": (1, "n", 4), "s": (1, 2, "n")}, constants, 18, ("y", "kept"))
    return model, [{"x": random_input(1, n, 4), "s": random_input(1, 2, n)} for n in (10, 3)]


@pytest.mark.parametrize("seed", deep_but(range(20), range(200)))
def test_boxes_that_overlap_better_ones_are_left_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    batches, classes, n = map(int, random.integers(0, (3, 4, 40)))
    boxes = np.round(4 * random.standard_normal((batches, n, 4))) / random.integers(1, 9)
    scores = np.round(4 * random.random((batches, classes, n)))  # with ties
    given: dict[str, Array] = {"boxes": boxes.astype("f4"), "scores": scores.astype("f4")}
    limits: dict[str, object] = {
        "most": random.integers(-1, 9, 1), "overlap": random.random(1).astype("f4"),
        "score": random.uniform(-1, 3, 1).astype("f4"),
    }  # fmt: skip
    names = [*given, *limits][: int(random.integers(2, 6))]
    constants = {name: value for name, value in limits.items() if name in names}
    by_center = int(random.integers(2))
    nms = node("NonMaxSuppression", " ".join(names), center_point_box=by_center)
    model = make_model([nms], {name: value.shape for name, value in given.items()}, constants)
    results = evaluator(model).run(None, given)
    np.testing.assert_array_equal(np.asarray(next(iter(results))), run(model, given)[0])


def twice() -> tuple[ModelProto, list[dict[str, Array]]]:
    """The elements above 0, and of these the distinct ones."""
    nodes = [
        node("Relu", "x", "r"), node("NonZero", "r", "places"),
        node("Transpose", "places", "rows", perm=[1, 0]), node("GatherND", "r rows", "some"),
        node("Round", "some", "whole"), node("Unique", "whole", "y", sorted=1),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n", 5)}, opset=18)
    return model, [{"x": 3 * random_input(4, 5)}, {"x": -np.ones((2, 5), np.float32)}]


def beside() -> tuple[ModelProto, list[dict[str, Array]]]:
    """Two numbers of places, which differ, and a range up to a number that is computed."""
    nodes = [
        node("NonZero", "x", "a"), node("NonZero", "b", "c"), node("Shape", "a", "s"),
        node("Shape", "c", "t"), node("Concat", "s t", "u", axis=0),
        node("ReduceMax", "u", "most", keepdims=0), node("Range", "zero most one", "y"),
    ]  # fmt: skip
    numbers: dict[str, object] = {"zero": np.int64(0), "one": np.int64(1)}
    model = make_model(nodes, {"x": ("n", 5), "b": ("n", 5)}, numbers)
    x = random_input(4, 5)
    return model, [{"x": x, "b": np.eye(4, 5, dtype=np.float32)}, {"x": x, "b": x}]


def written() -> tuple[ModelProto, list[dict[str, Array]]]:
    """Updates of an input, and of elements at places, as many as there are places."""
    nodes = [
        node("NonZero", "x", "places"), node("Transpose", "places", "rows", perm=[1, 0]),
        node("ScatterND", "x rows u", "y"),
        node("ScatterElements", "x places w", "z", axis=1, reduction="add"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (2, 3), "u": ("m",), "w": (2, "k")}, {}, 18, ("y", "z"))
    x = np.array([[1, 0, 2], [0, 3, 0]], np.float32)
    calls: list[dict[str, Array]] = [
        {"x": x * (x > least), "u": random_input(n), "w": random_input(2, n)}
        for least, n in ((0, 3), (9, 0), (2, 1))
    ]
    return model, calls


def ramp() -> tuple[ModelProto, list[dict[str, Array]]]:
    """What is computed of sizes is read by the node, and by others before and behind it."""
    nodes = [
        node("Shape", "x", "s"), node("Squeeze", "s", "n"), node("Range", "zero n one", "r"),
        node("Concat", "r r", "t", axis=0), node("NonZero", "t", "places"),
        node("ReduceSum", "places", "y", keepdims=0), node("Mul", "t t", "squares"),
        node("Shape", "t", "twice"),
    ]  # fmt: skip
    numbers: dict[str, object] = {"zero": np.int64(0), "one": np.int64(1)}
    model = make_model(nodes, {"x": ("n",)}, numbers, 18, ("y", "squares", "twice"))
    return model, [{"x": random_input(n)} for n in (5, 0, 1)]


def best() -> tuple[ModelProto, list[dict[str, Array]]]:
    """As many as there are, at most six, are passed to the part behind: no dim says how many."""
    nodes = [
        node("Shape", "x", "n"), node("Min", "n six", "k"), node("TopK", "x k", "some places"),
        node("NonZero", "some", "kept"), node("Gather", "some kept", "y"),
        node("Mul", "some two", "doubled"),
    ]  # fmt: skip
    constants: dict[str, object] = {"six": [6], "two": np.float32(2)}
    model = make_model(nodes, {"x": ("n",)}, constants, 18, ("y", "doubled", "some"))
    return model, [{"x": random_input(n)} for n in (16, 5, 3, 40, 0)]


def rest() -> tuple[ModelProto, list[dict[str, Array]]]:
    """What is behind the third element has no negative extent in the part behind."""
    nodes = [
        node("Slice", "x three far", "some"), node("NonZero", "some", "kept"),
        node("Shape", "kept", "s"), node("Add", "some one", "y"), node("Add", "s s", "z"),
    ]  # fmt: skip
    constants: dict[str, object] = {"three": [3], "far": [99], "one": np.float32(1)}
    model = make_model(nodes, {"x": ("n",)}, constants, 18, ("y", "z"))
    return model, [{"x": random_input(n)} for n in (9, 2, 0, 5)]


@pytest.mark.parametrize(
    "make", deep_but([written, ramp, best], [detector, twice, beside, written, ramp, best, rest])
)
def test_a_model_runs_in_parts_around_what_depends_on_data(
    make: Callable[[], tuple[ModelProto, list[dict[str, Array]]]],
) -> None:
    model, calls = make()
    with pytest.warns(HostFallbackWarning, match="on the host, between two programs"):
        compiled = satura.compile(model)
    for arguments in calls:
        results = compiled.run(arguments)
        for result, expected in zip(results.values(), run(model, arguments), strict=True):
            assert result.dtype == expected.dtype and result.shape == expected.shape
            assert_close(result, expected, 1e-6)
    with pytest.raises(CallError, match="several programs"):
        _ = compiled.statistics
    assert all(not part.statistics["host-count"] for part in compiled.parts[:1])
    with pytest.raises(CallError, match="input 'x'"):
        compiled.run({name: x for name, x in calls[0].items() if name != "x"})
    with pytest.raises(UnsupportedError, match="the extent of axis"):
        load(model)


HOSTS = {
    detector: [["NonMaxSuppression 'kept'"], []],
    twice: [["NonZero 'places'"], ["Unique 'y'"]],
    beside: [["NonZero 'a'"], ["NonZero 'c'"], []],
}
"""What runs in Python behind each part."""


@pytest.mark.parametrize("make", deep_but([detector], HOSTS))
def test_parts_of_parts_are_parts_and_all_have_statistics(
    make: Callable[[], tuple[ModelProto, list[dict[str, Array]]]], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    hosts = HOSTS[make]
    model, path = make()[0], tmp_path / "model.onnx"
    onnx.save(model, path)
    with pytest.warns(HostFallbackWarning):
        compiled = satura.compile(model, threads=1)
    assert list(map(list, compiled.hosts)) == hosts
    assert all(part.parts == (part,) and part.hosts == ((),) for part in compiled.parts)
    meant = [part.statistics for part in compiled.parts]
    for more in (["--json"], []):
        with pytest.raises(SystemExit) as ended:
            main(["stats", str(path), "--threads", "1", *more])
        assert not ended.value.code
    out = capsys.readouterr().out
    told, end = json.JSONDecoder().raw_decode(out)
    parts = told["parts"]
    assert all(part["after"].pop("predicted-us") >= 0 for part in parts)
    assert [part["after"] for part in parts] == meant
    assert [part["hosts"] for part in parts] == hosts
    for at, nodes in enumerate(hosts, 1):
        assert f"model.onnx, part {at} of {len(hosts)} on 1 thread" in out[end:]
        assert all(f"then {node} runs in Python" in out[end:] for node in nodes)


def test_as_many_updates_as_places_that_data_decide_are_taken() -> None:
    model, (arguments, *_) = written()
    with pytest.warns(HostFallbackWarning):
        compiled = satura.compile(model, threads=1)
    with pytest.raises(CallError, match=r"axis 1 is 3, but must be 2 as axis 0 of input 'u'"):
        compiled.run({**arguments, "u": random_input(2)})


def test_parts_have_what_a_compiled_model_has(tmp_path: Path) -> None:
    model, (first, second) = twice()
    with pytest.warns(HostFallbackWarning):
        compiled = satura.compile(model, threads=1)
    expected = compiled.run(first)["y"]
    assert "<satura.Compiled (x: f32[n, 5]) -> (y: " in repr(compiled)
    assert len(compiled.parts) == 2 and compiled.deciding == ()
    sizes = [dict(each.sizes) for each in compiled.cache]
    assert sizes == [{"n": 4}, {"n": 4, "places[1]": sizes[1]["places[1]"]}]  # before each node
    room = np.empty_like(expected)
    assert compiled.run(first, out={"y": room})["y"] is room
    np.testing.assert_array_equal(room, expected)
    with pytest.raises(CallError, match=rf"'y' must be f32\[0\], not float32\[{len(room)}\]"):
        compiled.run(second, out={"y": room})
    with pytest.raises(CallError, match="'y' shares memory with an input"):
        compiled.run(first, out={"y": first["x"].reshape(-1)[: len(room)]})
    with pytest.raises(CallError, match="use run, not bind"):
        compiled.bind(first)
    with pytest.raises(UnsupportedError, match=r"depends on data; satura.compile and `satura run`"):
        satura.load(model)
    with pytest.raises(UnsupportedError, match=r"\('NonZero'\) runs in Python.* its `parts`"):
        compiled.save(tmp_path / "parts.satura")
    with pytest.raises(CallError, match=r"a satura.Compiled cannot be pickled or copied"):
        pickle.dumps(compiled)
    with pytest.raises(CallError, match=r"several programs .* its `parts`"):
        compiled.prepare({"n": 4})
    with pytest.raises(CallError, match=r"several programs .* measure each of its `parts`"):
        compiled.measure(first)
    assert compiled.parts[0].measure(first, 1).launches
    assert list(tmp_path.iterdir()) == []
    compiled.parts[0].save(tmp_path / "first.satura")
    assert satura.open(tmp_path / "first.satura").outputs == compiled.parts[0].outputs
    compiled.release()
    np.testing.assert_array_equal(compiled(first["x"]), expected)


COUNTS: dict[str, tuple[list[NodeProto], dict[str, Any], Callable[[Array, Array], Array]]] = {
    "rows behind": (
        [node("NonZero", "x", "a"), node("Transpose", "a", "b"), node("Slice", "b k most", "y")],
        {"most": [99]}, lambda x, k: np.argwhere(x)[k[0] :],
    ),
    "rows before and behind": (
        [
            node("Add", "k zero", "first"), node("Slice", "x first most", "a"),
            node("NonZero", "a", "b"), node("Transpose", "b", "c"),
            node("Slice", "c first most", "y"),
        ],
        {"most": [99], "zero": [0]}, lambda x, k: np.argwhere(x[k[0] :])[k[0] :],
    ),
    "largest": (
        [node("Unique", "x", "a"), node("TopK", "a k", "y places")],
        {}, lambda x, k: np.unique(x)[::-1][: k[0]],
    ),
    "reshaped": (
        [node("NonZero", "x", "a"), node("Concat", "k rest", "s", axis=0),
         node("Reshape", "a s", "y")],
        {"rest": [-1]}, lambda x, k: np.array(np.nonzero(x)).reshape(k[0], -1),
    ),
    "boxes": (
        [node("Unsqueeze", "x zero", "a"), node("Unsqueeze", "scores zero", "b"),
         node("NonMaxSuppression", "a b four", "c"), node("Slice", "c k most", "y")],
        {"zero": [0], "four": [4], "most": [99], "scores": np.ones((1, 3), np.float32)},
        lambda x, k: np.zeros((1 - k[0], 3), np.int64),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
@pytest.mark.parametrize("case", deep_but(["rows before and behind"], COUNTS))
def test_values_of_inputs_decide_shapes_in_each_part(case: str, tmp_path: Path) -> None:
    """NonZero as a result has no declared shape, and what decides may be computed of an input."""
    nodes, constants, expected = COUNTS[case]
    model = make_model(nodes, {"x": ("n", 4), "k": Typed([1])}, constants)
    compiled = satura.compile(model, threads=1)
    assert compiled.deciding == ("k",) and len(compiled.parts) == 1
    x = np.array([[0, 0, 2, 3], [0, 0, 2, 3], [0, 0, 2, 3]], np.float32)
    for k in (np.array([1]), np.array([2]) if case != "boxes" else np.array([0])):
        wanted = expected(x, k)
        np.testing.assert_array_equal(compiled(x, k), wanted)
        program = compiled.for_values({"k": k})
        np.testing.assert_array_equal(program(x), wanted)
        assert [*program.inputs] == ["x"] and len(program.parts) > 1
        room = np.empty(wanted.shape, wanted.dtype)
        assert compiled.run({"x": x, "k": k}, out={"y": room})["y"] is room
        np.testing.assert_array_equal(room, wanted)
    with pytest.raises(CallError, match="use run, not bind"):
        compiled.bind({"x": x, "k": k})
    with pytest.raises(UnsupportedError, match="runs in Python"):
        compiled.save(tmp_path / "parts.satura")


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}], ids=str)
@pytest.mark.parametrize("names", [("y",), ("y", "first", "places", "counts")], ids=len)
def test_what_is_distinct_in_order_of_first_appearance(
    names: tuple[str, ...], attributes: dict[str, int]
) -> None:
    model = make_model(
        [node("Unique", "x", " ".join(names), sorted=0, **attributes)], {"x": (3, 3)},
        opset=17, outputs=names,
    )  # fmt: skip
    x = np.array([[3, 1, 3], [2, 1, 2], [3, 1, 3]], np.float32)
    results = satura.compile(model, threads=1).run({"x": x})
    for name, expected in zip(names, run(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(results[name], expected)


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
@pytest.mark.parametrize(
    "nodes",
    [
        [node("Greater", "x zero", "b"), node("Compress", "x b", "y")],
        [node("Unique", "x", "u"), node("Cast", "u", "b", to=9), node("Compress", "u b", "y")],
    ],
)
def test_what_is_chosen_by_data_is_none_that_decides(nodes: list[NodeProto]) -> None:
    """A program for the values of each call would be searched for each call."""
    model = make_model(nodes, {"x": ("n",)}, {"zero": np.float32(0)})
    compiled = satura.compile(model, threads=1)
    assert not compiled.deciding
    for n in (9, 0, 5):
        x = np.round(2 * random_input(n))
        np.testing.assert_array_equal(compiled(x), run(model, {"x": x})[0])


def test_results_of_open_extent_need_no_declared_shape() -> None:
    model = make_model([node("NonZero", "x", "y")], {"x": ("n", 2)})
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT64, None))
    with pytest.warns(HostFallbackWarning):
        compiled = satura.compile(model, threads=1)
    np.testing.assert_array_equal(compiled(np.eye(2, dtype=np.float32)), [[0, 1], [0, 1]])


def call(function: str, read: str, made: str, **attributes: object) -> NodeProto:
    result = node(function, read, made, **attributes)
    result.domain = "own"
    return result


def in_functions() -> ModelProto:
    """A function twice, each time less a number of its own; another in it keeps what is not 0."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    kept = helper.make_function(
        "own", "kept", ["x"], ["y"],
        [node("NonZero", "x", "n"), node("Transpose", "n", "t"), node("GatherND", "x t", "y")],
        imports[:1],
    )  # fmt: skip
    number = helper.make_node("Constant", [], ["c"])
    number.attribute.add(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="less")
    shifted = helper.make_function(
        "own", "shifted", ["x"], ["y"],
        [call("kept", "x", "n"), number, node("Sub", "n c", "y")],
        imports, attributes=["less"],
    )  # fmt: skip
    calls = [call("shifted", "x", "a", less=2.0), call("shifted", "a", "y", less=3.0)]
    return make_model(calls, {"x": ("n",)}, functions=[kept, shifted])


def chooses_in_a_function() -> ModelProto:
    """What the function's result is called in its body, it is called in the graph."""
    nodes = [node("Greater", "x two", "m"), node("Compress", "x m", "y", axis=0)]
    number = node("Constant", "", "two", value_float=2.0)
    imports = [helper.make_opsetid("", 17)]
    chosen = helper.make_function("own", "chosen", ["x"], ["y"], [number, *nodes], imports)
    return make_model([call("chosen", "x", "y")], {"x": ("n",)}, functions=[chosen])


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
@pytest.mark.parametrize("make", [in_functions, chooses_in_a_function])
def test_a_function_that_depends_on_data_is_its_body(make: Callable[[], ModelProto]) -> None:
    model = make()
    compiled = satura.compile(model, threads=1)
    for values in ([1, 0, 2, 5], [0, 0], [4, 3, 2, 1, 0]):
        x = np.array(values, np.float32)
        np.testing.assert_array_equal(compiled(x), run(model, {"x": x})[0])
    with pytest.raises(UnsupportedError, match=r"depends? on data|decides a shape"):
        load(model)


def test_a_function_of_another_opset_that_depends_on_data_is_refused() -> None:
    model = chooses_in_a_function()
    model.functions[0].opset_import[0].version = 18
    with pytest.raises(UnsupportedError, match=r"\(Compress\) .* it cannot be inlined: .* opset"):
        satura.compile(model, threads=1)


BODIES = {
    "If": """y = If (c) <then_branch = t () => (float a) {{ {inner} }},
                        else_branch = e () => (float o) {{ o = ReduceSum<keepdims=0>(x) }}>""",
    "Loop": """y = Loop (two, c) <body = b (int64 i, bool go) => (bool on, float a)
                                  {{ on = Identity(go) {inner} }}>""",
    "Scan": "y = Scan <num_scan_inputs=1, body = b (float v) => (float a) {{ {inner} }}> (x)",
}


@pytest.mark.parametrize("kind", ["If", "Loop", "Scan"])
@pytest.mark.parametrize(
    ("op_type", "inputs"),
    [("NonZero", "x"), ("Unique", "x"), ("NonMaxSuppression", "b, s, most")],
)
def test_what_depends_on_data_inside_of_control_flow_runs_behind_it(
    op_type: str, inputs: str, kind: str
) -> None:
    inner = f"n = {op_type}({inputs}) f = Cast<to=1>(n) a = ReduceSum<keepdims=0>(f)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
            g (float[3] x, float[1,3,4] b, float[1,1,3] s, bool c) => (float y)
            <int64 two = {{2}}, int64[1] most = {{3}}> {{ {BODIES[kind].format(inner=inner)} }}"""
    )
    with pytest.warns(HostFallbackWarning):
        compiled = satura.compile(model, threads=1)
    arguments = {
        "x": np.array([0, 2, 0.5], np.float32), "b": random_input(1, 3, 4),
        "s": random_input(1, 1, 3),
    }  # fmt: skip
    for c in (True, False):
        given = {**arguments, "c": np.array(c)}
        given = {each.name: given[each.name] for each in model.graph.input}
        assert_close(compiled.run(given)["y"], run(model, given)[0])
