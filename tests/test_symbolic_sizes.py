"""Models whose sizes are open: each kind of node against onnxruntime, at several sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto

import satura
from satura.rewrite.errors import CallError, ModelError, UnsupportedError
from satura.rewrite.onnx.files import read_apart
from satura.rewrite.onnx.load import load, load_at
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.parse import parse
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.rewrite.types.typical import allowed_sizes
from tests.onnx_models import Shape, Typed, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.open_kinds import KINDS
from tests.tiers import deep_but


def arguments(shape: Sequence[int]) -> dict[str, Array]:
    return {"x": random_input(*shape)}


@pytest.mark.parametrize("name", deep_but([*KINDS][::2], KINDS))
def test_a_kind_of_node_runs_at_all_sizes(name: str) -> None:
    model, shapes = KINDS[name]
    program = load(model)
    assert program.symbols and not any(node.op.name == "host" for node in program.nodes)
    assert parse(str(program), program.constants) == program
    for shape in shapes:
        found = interpret(program, arguments(shape))
        for result, expected in zip(found.values(), run(model, arguments(shape)), strict=True):
            assert result.shape == expected.shape and result.dtype == expected.dtype
            assert_close(result, expected, 1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "wrong"),
    [
        ("hourglass", (1, 2, 18, 4), r"(?s)Concat.* 8 and 9 where h = 18"),
        ("hourglass", (1, 2, 2, 4), r"(?s)Concat.* 0 and 1 where h = 2"),
        ("windows", (1, 5, 4), r"Reshape.* 20 and 16 where h = 5"),
        ("three parts", (1, 4, 2), "Split.* 3 and 4 where"),
        ("equal parts without a number", (1, 5, 2), "Split.* 4 and 5 where"),
        ("groups of open channels", (1, 4, 2), "GroupN.*: c must be equal to .* 4 and 3 where"),
        ("reflected", (1, 2, 1), "Pad.*: l must be at least 3, but these are 2 and 3 where"),
        ("the largest along an open axis", (1, 2, 1), "TopK.*: l must be at least 3, but"),
        ("places along an open axis", (1, 3, 2), r"Gather.*: the extent l is 3, .* at least 4,"),
        ("places along an open axis", (1, 0, 0), r"Gather.*: the extent l is 0, .* at least 4,"),
        ("elements along an open axis", (2, 1, 2), r"GatherEl.*: the extent n is 2, .* least 3,"),
        ("updates along an open axis", (2, 1, 2), r"ScatterEl.*: the extent n is 2, .* least 3,"),
        ("updates at open places", (3, 1, 1), r"ScatterND.*: the extent l is 1, .* at least 2,"),
        ("elements at open places", (2, 2, 2), r"GatherND.*: the extent n is 2, .* at least 3,"),
        ("elements at open places", (3, 1, 2), r"GatherND.*: the extent l is 1, .* at least 2,"),
        (
            "linear to fixed sizes",
            (1, 2, 0, 4),
            r"Resize.*: the extent h is 0, .* at least 1, where",
        ),
    ],
)
def test_a_call_that_the_model_cannot_run_names_node_and_sizes(
    name: str, shape: tuple[int, ...], wrong: str
) -> None:
    with pytest.raises(CallError, match=wrong):
        interpret(load(KINDS[name][0]), arguments(shape))


def test_a_target_that_holds_a_size_of_0_copies_another_extent_there() -> None:
    nodes = [
        node("Shape", "x", "s", start=2), node("Concat", "rest s", "t", axis=0),
        node("Reshape", "x t"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n", 3, "m")}, {"rest": [-1]})
    assert satura.interpret(model, arguments((2, 3, 4)))["y"].shape == (6, 4)
    with pytest.raises(CallError, match=r"Reshape.*: m must be at least 1"):
        interpret(load(model), arguments((2, 3, 0)))
    types = {"x": TensorType(DType.F32, (symbol("n"), 3, symbol("m")))}
    at_0 = load_at(read_apart(model), {"n": 2, "m": 0}, types)
    assert interpret(at_0, arguments((2, 3, 0)))["y"].shape == (0, 3)


def test_an_open_axis_that_is_dropped_has_extent_1() -> None:
    nodes = [node("Squeeze", "x a", "z"), node("Shape", "z", "s"), node("Reshape", "z s")]
    model = make_model(nodes, {"x": ("n", "m")}, {"a": [0]})
    compiled = satura.compile(model)
    np.testing.assert_array_equal(compiled(x := random_input(1, 3)), x[0])
    with pytest.raises(CallError, match=r"axis 0 .*1"):
        compiled(random_input(2, 3))
    halved = make_model(
        [node("MaxPool", "x", "p", kernel_shape=[2], strides=[2]), node("Squeeze", "p a")],
        {"x": (1, 1, "m")},
        {"a": [2]},
    )
    with pytest.raises(CallError, match=r"Squeeze.* must be equal to 1"):
        interpret(load(halved), arguments((1, 1, 4)))
    x = random_input(1, 1, 3)
    assert interpret(load(halved), {"x": x})["y"] == x[..., :2].max()


def test_an_artifact_keeps_the_conditions(tmp_path: Path) -> None:
    compiled = satura.compile(KINDS["hourglass"][0])
    compiled.save(tmp_path / "hourglass")
    opened = satura.open(tmp_path / "hourglass")
    for program in (compiled, opened):
        program(random_input(1, 2, 8, 4))
        with pytest.raises(
            CallError, match=r"Concat.* differ in axis 2 where h = 10, n = 1, w = 4"
        ):
            program(random_input(1, 2, 10, 4))


def test_sizes_that_must_be_the_same_are_one() -> None:
    inputs: dict[str, Shape | Typed] = {"x": ("n", "m"), "y": ("k", 3), "z": ("n",)}
    nodes = [node("MatMul", "x y", "p"), node("Unsqueeze", "z a", "w"), node("Mul", "p w", "out")]
    program = load(make_model(nodes, inputs, {"a": [1]}, outputs=("out",)))
    types = [str(program.nodes[index].type) for index in program.inputs]
    assert types == ["f32[n, m]", "f32[m, 3]", "f32[n]"]
    x, y, z = random_input(2, 4), random_input(4, 3), random_input(2)
    assert_close(interpret(program, {"x": x, "y": y, "z": z})["out"], (x @ y) * z[:, None], 1e-5)
    with pytest.raises(
        CallError, match="input 'y': axis 0 is 5, but must be 4 as axis 1 of input 'x'"
    ):
        interpret(program, {"x": x, "y": random_input(5, 3), "z": z})


def test_sizes_taken_for_equal_may_broadcast_in_calls() -> None:
    model = make_model([node("Add", "x b")], {"x": ("m", 3), "b": ("n", 3)})
    compiled = satura.compile(model)
    for rows, more in ((4, 4), (4, 1), (1, 5), (4, 1)):
        x, b = random_input(rows, 3), random_input(more, 3)
        np.testing.assert_array_equal(compiled(x, b), x + b)
    with pytest.raises(CallError, match="axis 0 is 3, but must be 4 as axis 0 of input 'x' is"):
        compiled(random_input(4, 3), random_input(3, 3))


def test_a_batch_that_a_model_fixes_is_fixed() -> None:
    nodes = [
        node("Shape", "x", "s", start=1, end=2), node("Concat", "one s four", "t", axis=0),
        node("Reshape", "x t"),
    ]  # fmt: skip
    program = load(make_model(nodes, {"x": ("n", "s", 4)}, {"one": [1], "four": [4]}))
    assert str(program.nodes[program.inputs[0]].type) == "f32[1, s, 4]"


def test_sizes_that_are_typical_fulfil_the_conditions() -> None:
    x = symbol("n")
    program = load(KINDS["running sums"][0])
    assert set(program.typical.values()) == {64}
    seventh = program.where((SizeCondition(x // 7 * 7, x, "=", "here"),))
    assert seventh.typical["n"] == 7
    assert program.where((SizeCondition(x, 300, ">=", "here"),)).typical["n"] == 300
    y = symbol("m")
    for condition, sizes in (
        (SizeCondition(x + y, 3, "=", "here"), {"n": 1, "m": 2}),
        (SizeCondition(y - x, 2, ">=", "here"), {"n": 64, "m": 66}),
        (SizeCondition(y, 2 * x + 5, "=", "here"), {"n": 64, "m": 133}),
    ):
        assert allowed_sizes([condition], {"n", "m"}, 64) == sizes
    both = [SizeCondition(y, 2 * x, "=", "here"), SizeCondition(100, y, "<=", "here")]
    assert allowed_sizes(both, {"n", "m"}, 64) == {"n": 64, "m": 128}
    nowhere = [SizeCondition(x * x, 3, "=", "here")]
    assert allowed_sizes(nowhere, {"n"}, 64) == {"n": 64}
    assert satura.compile(seventh).statistics["host-count"] == 0


def test_a_range_of_inputs_says_what_to_do() -> None:
    inputs: dict[str, Shape | Typed] = {name: Typed(()) for name in "abc"}
    with pytest.raises(
        UnsupportedError, match=r"input 0 \('a'\) decides a shape.*give its value when you load"
    ):
        load(make_model([node("Range", "a b c")], inputs))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_scattering_of_open_sizes(op: str, reduction: str) -> None:
    """However many places and updates there are."""
    width, is_folded = (1 if op == "ScatterND" else 3), reduction != "none"
    for rows, updates in (("n", "e"), ("n", 2), (4, "e")):
        inputs: dict[str, Shape | Typed] = {
            "x": (rows, 3), "i": Typed((updates, width)), "u": (updates, 3),
        }  # fmt: skip
        model = make_model([node(op, "x i u", "y", reduction=reduction)], inputs, opset=18)
        program = load(model)
        assert not any(node.op.name == "host" for node in program.nodes)
        for places, count in ((5, 7), (2, 2), (4, 0)):
            places = rows if isinstance(rows, int) else places
            count = updates if isinstance(updates, int) else count
            indices = np.arange(count)[::-1, None] % places - 1
            if not is_folded:  # for repeated ones the order is not defined
                indices = np.arange(min(count, places))[:, None]
            given: dict[str, Array] = {
                "x": random_input(places, 3), "i": np.tile(indices, (1, width)),
                "u": random_input(len(indices), 3, seed=1),
            }  # fmt: skip
            assert_close(interpret(program, given)["y"], run(model, given)[0], 1e-5)


SCATTERED: dict[str, tuple[NodeProto, tuple[int, ...], object]] = {
    "ScatterND": (node("ScatterND", "x i u", "y"), (4, 5, 3), [[1, 2], [0, 4]]),
    "ScatterElements": (
        node("ScatterElements", "x i u", "y", axis=1), (4, 3), [[1, 2, 0], [0, -1, 1]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("op", SCATTERED)
def test_as_many_updates_as_places_are_scattered_whatever_their_sizes_are_called(op: str) -> None:
    proto, shape, places = SCATTERED[op]
    indices = np.array(places)
    given: dict[str, Array] = {
        "x": np.zeros(shape, np.float32), "i": indices, "u": random_input(2, 3),
    }  # fmt: skip
    kinds: list[tuple[int | str, Shape]] = [
        ("n", ("m", 3)), ("n", (2, "k")), (2, ("m", 3)), ("n", ("n", "k")),
    ]  # fmt: skip
    for count, updates in kinds:
        inputs: dict[str, Shape | Typed] = {
            "x": ("a", *shape[1:]), "i": Typed((count, indices.shape[1])), "u": updates,
        }  # fmt: skip
        model = make_model([proto], inputs, opset=18)
        compiled = satura.compile(model, threads=1)
        assert_close(compiled.run(given)["y"], run(model, given)[0], 0)
        for wrong in ((3, 3), (1, 3), (2, 2)):
            other = {**given, "u": random_input(*wrong)}
            with pytest.raises(CallError, match="'u': axis"):
                compiled.run(other)
            with pytest.raises(CallError, match="'u': axis"):
                interpret(load(model), other)


@pytest.mark.parametrize("op", SCATTERED)
def test_updates_of_another_shape_are_refused(op: str) -> None:
    proto, shape, places = SCATTERED[op]
    shapes: list[Shape] = [(3, 3), (6,), (2, 3, 1)]
    for updates in shapes:
        inputs: dict[str, Shape | Typed] = {
            "x": shape,
            "i": Typed(np.array(places).shape),
            "u": updates,
        }
        with pytest.raises(ModelError, match=r"do not fit updates: .* should have the shape"):
            load(make_model([proto], inputs, opset=18))


def test_a_recurrence_has_as_many_steps_as_a_size_says() -> None:
    weights = {"w": random_input(1, 8, 3), "r": random_input(1, 8, 2, seed=1)}
    nodes = [node("LSTM", "x w r", "y h c", hidden_size=2)]
    model = make_model(nodes, {"x": ("t", "n", 3)}, dict(weights), outputs=("y", "h", "c"))
    for shape in ((1, 2, 3), (5, 1, 3)):
        found = interpret(load(model), arguments(shape))
        for result, expected in zip(found.values(), run(model, arguments(shape)), strict=True):
            assert_close(result, expected, 1e-5)


@pytest.mark.deep
@pytest.mark.parametrize("name", KINDS)
def test_compiled_kinds_agree_with_the_interpreter(name: str) -> None:
    model, shapes = KINDS[name]
    compiled = satura.compile(model)
    for shape in [*shapes, *shapes]:  # the second time in classes that are known
        expected = interpret(load(model), arguments(shape))
        for output, result in compiled.run(arguments(shape)).items():
            assert_close(result, expected[output], 1e-5)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin", "Hardmax"])
@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (2, 3)])
def test_places_along_an_axis_without_elements(
    op: str, shape: tuple[int, int], tmp_path: Path
) -> None:
    """They are an error alone where there would be some."""
    x = np.zeros(shape, np.float32)
    outer = shape if op == "Hardmax" else (shape[0], 1)
    for declared in (("n", "m"), shape):
        model = make_model([node(op, "x", axis=1)], {"x": declared})
        if shape == (3, 0) and op != "Hardmax":
            with pytest.raises((ModelError, CallError), match="the axis is empty"):
                satura.compile(model, threads=1).run({"x": x})
            continue
        compiled = satura.compile(model, threads=1)
        satura.save(satura.load(model), tmp_path / "saved.onnx")
        compiled.save(tmp_path / "saved.satura", [] if declared == shape else [{"n": 2, "m": 2}])
        for found in (
            satura.interpret(model, {"x": x})["y"], compiled.run({"x": x})["y"],
            satura.open(tmp_path / "saved.satura").run({"x": x})["y"],
            run(onnx.load(tmp_path / "saved.onnx"), {"x": x})[0],
        ):  # fmt: skip
            assert found.shape == outer
            assert found.sum() == (shape[0] if op == "Hardmax" and shape[1] else 0)


def test_hard_max_takes_the_first_of_equal_elements_of_an_open_axis() -> None:
    model = make_model([node("Hardmax", "x", axis=1)], {"x": ("n", "m")})
    x = np.array([[-np.inf, -np.inf], [1, 2], [np.nan, 5]], np.float32)
    found = satura.compile(model, threads=1).run({"x": x})["y"]
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize("mode", deep_but(["linear"], ["linear", "cubic"]))
def test_an_image_without_rows_is_resized_with_antialias(mode: str) -> None:
    scales = {"scales": np.array([1, 1, 3, 1.5], np.float32)}
    resize = node("Resize", "x - scales", mode=mode, antialias=1)
    compiled = satura.compile(make_model([resize], {"x": (1, 1, "h", 3)}, scales, 18), threads=1)
    for rows in (4, 0, 1):
        x = np.ones((1, 1, rows, 3), np.float32)
        assert compiled.run({"x": x})["y"].shape == (1, 1, 3 * rows, 4)


def test_sizes_that_are_bounded_may_have_to_be_equal_too() -> None:
    build, left, right = Tensors(), 2 * symbol("n"), 3 * symbol("m")
    build.need_at_least(left, right)
    build.need_equal(left, right)
    assert [each.relation for each in build.conditions.values()] == [">=", "="]
