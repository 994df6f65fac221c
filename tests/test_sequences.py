"""Sequences of tensors whose number is known are lists at load; of inputs and outputs each tensor
has a name of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

import satura
from satura.rewrite.errors import CallError, ModelError, SaturaError, UnsupportedError
from satura.rewrite.onnx.load import load
from tests.command_line import cli
from tests.onnx_models import F32, I64, agrees_with_onnxruntime, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run

CONSTANTS = {
    "two": np.int64(2), "last": np.int64(-1), "listed": np.array([1, 3, 1]), "three": np.int64(3),
}  # fmt: skip
SPLIT = node("SplitToSequence", "x two", "s", axis=1)
ROWS = node("SplitToSequence", "x", "s", axis=1, keepdims=0)


def appended() -> list[NodeProto]:
    """A loop that appends x plus its step's number to a sequence."""
    body = helper.make_graph(
        [
            node("Cast", "i", "number", to=F32), node("Add", "x number", "t"),
            node("SequenceInsert", "before t", "after"), node("Identity", "c", "more"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", I64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("before", F32, None),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("after", F32, None),
        ],
    )  # fmt: skip
    empty = helper.make_node("SequenceEmpty", [], ["none"])
    loop = helper.make_node("Loop", ["three", "", "none"], ["s"], body=body)
    return [empty, loop, node("ConcatFromSequence", "s", axis=0)]


@pytest.mark.parametrize(
    "nodes",
    [
        [SPLIT, node("SequenceAt", "s last")],
        [node("SplitToSequence", "x listed", "s", axis=-1), node("SequenceAt", "s last")],
        [ROWS, node("ConcatFromSequence", "s", axis=-1, new_axis=1)],
        [ROWS, node("SequenceErase", "s two", "t"), node("ConcatFromSequence", "t", axis=0)],
        [ROWS, node("SequenceErase", "s", "t"), node("SequenceAt", "t last")],
        [ROWS, node("SequenceAt", "s two", "a"), node("SequenceInsert", "s a last", "t"),
         node("ConcatFromSequence", "t", axis=0)],
        [SPLIT, node("Identity", "s", "t"), node("SequenceLength", "t")],
        appended(),
    ],
)  # fmt: skip
def test_sequences_agree_with_onnxruntime(nodes: list[NodeProto]) -> None:
    agrees_with_onnxruntime(make_model(nodes, {"x": (3, 5)}, CONSTANTS), {"x": random_input(3, 5)})


@pytest.mark.parametrize(
    ("change", "positions", "outside"),
    [
        (node("SequenceInsert", "s x at", "t"), (-2, -1, 0, 1, 2), (-3, 3)),
        (node("SequenceErase", "s at", "t"), (-2, -1, 0, 1), (-3, 2)),
    ],
)
def test_data_may_say_where_a_sequence_changes(
    change: NodeProto, positions: tuple[int, ...], outside: tuple[int, ...]
) -> None:
    nodes = [
        node("Neg", "x", "y0"), node("Exp", "x", "y1"), node("SequenceConstruct", "y0 y1", "s"),
        node("ReduceMax", "d", "most", keepdims=0), node("Cast", "most", "at", to=I64), change,
        node("ConcatFromSequence", "t", axis=0),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (3,), "d": (1, 1)})
    compiled = satura.compile(model, threads=1)
    for at in (*positions, *outside):
        given = {"x": random_input(3), "d": np.full((1, 1), at, np.float32)}
        if at in positions:
            agrees_with_onnxruntime(model, given)
            assert_close(compiled.run(given)["y"], run(model, given)[0])
        else:
            with pytest.raises(CallError, match="an index"):
                compiled.run(given)


@pytest.mark.parametrize(
    ("nodes", "error", "reason"),
    [
        ([ROWS, node("Relu", "s")], UnsupportedError, "input 0 is a sequence"),
        ([ROWS, node("SequenceInsert", "s s")], UnsupportedError, "input 1 is a sequence"),
        ([node("SequenceAt", "x two")], ModelError, "input 0 is a tensor, not a sequence"),
        ([SPLIT, node("SequenceAt", "s three")], ModelError, "out of range for 3 tensors"),
        (
            [ROWS, node("Cast", "x", "i", to=I64), node("SequenceErase", "s i")],
            UnsupportedError,
            r"input 1 \('i'\) decides",
        ),
    ],
)
def test_what_is_not_a_sequence_or_not_a_tensor(
    nodes: list[NodeProto], error: type[SaturaError], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        load(make_model(nodes, {"x": (3, 5)}, CONSTANTS))


def typed(name: str, *kinds: str, shape: list[int | str | None] | None = None) -> ValueInfoProto:
    """A value of these kinds, the outermost first, of tensors of f32."""
    type_ = helper.make_tensor_type_proto(F32, shape)
    for kind in reversed(kinds):
        is_list = kind == "sequence"
        wrap = helper.make_sequence_type_proto if is_list else helper.make_optional_type_proto
        type_ = wrap(type_)
    return helper.make_value_info(name, type_)


def mapped() -> ModelProto:
    """Twice each tensor of a sequence, then that of an optional, and how many these are."""
    body = helper.make_graph(
        [node("Add", "a a", "b")], "body",
        [helper.make_tensor_value_info("a", F32, None)], [onnx.ValueInfoProto(name="b")],
    )  # fmt: skip
    nodes = [
        node("SequenceMap", "s", "d", body=body), node("OptionalHasElement", "o", "c"),
        node(
            "If", "c", "y",
            then_branch=helper.make_graph(
                [node("OptionalGetElement", "o", "e"), node("SequenceInsert", "d e", "f")],
                "then", [], [onnx.ValueInfoProto(name="f")],
            ),
            else_branch=helper.make_graph(
                [node("Identity", "d", "f")], "else", [], [onnx.ValueInfoProto(name="f")]
            ),
        ),
        node("SequenceLength", "y", "n"),
    ]  # fmt: skip
    inputs = [typed("s", "sequence"), typed("o", "optional", shape=["k"])]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("y", "n")]
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_sequences_and_optionals_are_inputs_and_outputs() -> None:
    compiled = satura.compile(mapped(), threads=1)
    assert "s: a sequence of f32[…], o: optional f32[?]" in repr(compiled)
    a, b = random_input(2, 3), random_input(4, seed=1)
    for tensors, last in (([a, b], b), ([a[1:], b], a[0]), ([b], None)):
        found = compiled.run({"s": tensors, "o": last})
        expected = [2 * each for each in tensors] + ([] if last is None else [last])
        assert [*found] == [*(f"y[{at}]" for at in range(len(expected))), "n"]
        assert found["n"] == len(expected)
        for at, each in enumerate(expected):
            np.testing.assert_array_equal(found[f"y[{at}]"], each)
    whole = compiled.for_values({"s": [a], "o": None})
    np.testing.assert_array_equal(whole.run({"s[0]": a})["y[0]"], 2 * a)
    program = load(mapped(), {"s": np.array([2]), "o": np.array([-1])})
    assert [program.nodes[index].input_name for index in program.inputs] == ["s[0]"]


def test_tensors_of_a_sequence_may_be_given_by_name() -> None:
    compiled = satura.compile(mapped(), threads=1)
    a, b = random_input(2, 3), random_input(4, seed=1)
    found = compiled.run({"s[0]": a, "s[1]": b, "o": None})
    np.testing.assert_array_equal(found["y[1]"], 2 * b)
    found = compiled.run({"s": [], "o[0]": b})
    assert found["n"] == 1
    with pytest.raises(CallError, match="input 's', which decides shapes, is missing"):
        compiled.run({"s[1]": b, "o": None})


@pytest.mark.parametrize(("sizes", "rows"), [((), 32), (("--size=s_0=3",), 48)])
def test_the_command_draws_sequences_and_reads_them(
    sizes: tuple[str, ...], rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (seq(float[a, 4]) s) => (float[n, 4] y)
        { y = ConcatFromSequence<axis=0>(s) }"""
    onnx.save(onnx.parser.parse_model(text), path := tmp_path / "rows.onnx")
    given, written = tmp_path / "s.npz", tmp_path / "written.onnx"
    np.savez(given, allow_pickle=False, **{"s[0]": random_input(2, 4), "s[1]": random_input(3, 4)})
    for options, count in ((sizes, rows), (("--inputs", given), 5)):
        assert cli("run", path, "--threads=1", "--json", *options) == 0
        assert json.loads(capsys.readouterr().out)["y"]["shape"] == [count, 4]
    assert cli("run", path, "--threads=1", "--size=s_0=0") == 2
    assert "--inputs FILE.npz, which names its tensors s[0], s[1], …" in capsys.readouterr().err
    assert cli("optimize", path, written) == 1
    assert "; give them, as in --value s=2,2 for two tensors" in capsys.readouterr().err
    assert cli("optimize", path, written, "--value=s=2,2") == 0
    with np.load(given) as arrays:
        assert satura.interpret(written, dict(arrays))["y"].shape == (5, 4)


def test_a_saved_program_has_sequences_as_inputs(tmp_path: Path) -> None:
    compiled = satura.compile(mapped(), threads=1)
    a, b = random_input(2, 3), random_input(4, seed=1)
    calls: list[dict[str, object]] = [{"s": [a, b], "o": None}, {"s": [], "o": b}]
    expected = [compiled.run(each) for each in calls]
    compiled.save(tmp_path / "mapped.satura")
    opened = satura.open(tmp_path / "mapped.satura")
    assert opened.inputs == compiled.inputs
    for arguments, outputs in zip(calls, expected, strict=True):
        found = opened.run(arguments)
        assert [*found] == [*outputs]
        for name, each in outputs.items():
            np.testing.assert_array_equal(found[name], each)
    with pytest.raises(CallError, match=r"no program for o=\[1\], s=int64\[50\], but for 2"):
        opened.run({"s": [a] * 50, "o": b})


@pytest.mark.parametrize("with_model", [True, False])
def test_a_saved_program_has_as_many_outputs_as_its_sequence_is_long(
    with_model: bool, tmp_path: Path
) -> None:
    """Not as many as that of the sizes it was made for; further sizes take the model."""
    split = helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)
    inputs = [helper.make_tensor_value_info("x", F32, ["n", 4])]
    outputs = [helper.make_tensor_sequence_value_info("s", F32, None)]
    model = helper.make_model(helper.make_graph([split], "graph", inputs, outputs))
    compiled = satura.compile(model, threads=1)
    expected = {n: compiled.run({"x": random_input(n, 4)}) for n in (3, 1)}
    compiled.save(tmp_path / "split.satura", with_model=with_model)
    opened = satura.open(tmp_path / "split.satura")
    for n in (3, 1, 5, 0) if with_model else (3, 1):
        found = opened.run({"x": random_input(n, 4)})
        assert [*found] == [f"s[{at}]" for at in range(n)]
        for name, each in expected.get(n, {}).items():
            np.testing.assert_array_equal(found[name], each)


def test_a_sequence_without_tensors_has_no_outputs() -> None:
    assert satura.compile(mapped(), threads=1).run({"s": [], "o": None}) == {"n": 0}
    inputs, outputs = [typed("o", "optional")], [onnx.ValueInfoProto(name="p")]
    graph = helper.make_graph([node("Identity", "o", "p")], "graph", inputs, outputs)
    model = helper.make_model(graph)
    assert satura.compile(model, threads=1).run({"o": None}) == {}
    with pytest.raises(UnsupportedError, match="the program has no outputs"):
        satura.save(load(model, {"o": np.array([-1])}), "unwritten.onnx")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"o": None}, "input 's', which decides shapes, is missing"),
        ({"s": None, "o": None}, r"input 's' is a sequence of f32\[…\]: its ranks cannot be"),
        ({"s": [np.float32(1)], "o": np.zeros((2, 2), np.float32)}, "optional f32.* cannot be"),
        ({"s": [np.float64(1)], "o": None}, r"input 's\[0\]' must be f32\[\], not float64"),
    ],
)
def test_what_is_no_sequence_is_refused(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(CallError, match=reason):
        satura.compile(mapped(), threads=1).run(arguments)


def test_a_sequence_without_ranks_is_refused() -> None:
    """So is an optional of one tensor, of which one rank is shown."""
    with pytest.raises(UnsupportedError, match=r"input 's' is a sequence .* give them"):
        load(mapped())
    inputs, outputs = [typed("o", "optional")], [onnx.ValueInfoProto(name="p")]
    model = helper.make_model(helper.make_graph([node("Identity", "o", "p")], "g", inputs, outputs))
    shown = r"as in values=\{'o': numpy\.array\(\[2\]\)\} for a tensor of rank 2, -1 for none"
    with pytest.raises(UnsupportedError, match=shown):
        load(model)


@pytest.mark.parametrize("inputs", ["", ", int64 i"], ids=["constant", "given"])
def test_a_position_that_a_call_has_no_tensor_for_is_named(inputs: str) -> None:
    """And not the number of tensors that the program was made for."""
    constant = "" if inputs else "i = Constant<value_int=5>()"
    text = f"""<ir_version: 8, opset_import: ["": 18]> g (float[n,2] x{inputs}) => (float[2] y)
        {{ {constant} s = SplitToSequence<axis=0, keepdims=0>(x) y = SequenceAt(s, i) }}"""
    compiled = satura.compile(onnx.parser.parse_model(text), threads=1)
    given = {"i": np.array(5)} if inputs else {}
    for count in (6, 20):
        x = np.arange(2 * count, dtype=np.float32).reshape(count, 2)
        np.testing.assert_array_equal(compiled.run({"x": x, **given})["y"], x[5])
    with pytest.raises(CallError, match=r"position \[5\] is out of range for 5 tensors"):
        compiled.run({"x": np.zeros((5, 2), np.float32), **given})
