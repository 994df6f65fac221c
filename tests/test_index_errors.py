"""An index outside of its own axis is an error of the call that says which index of which extent,
and never another element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto, NodeProto

import satura
from satura.backend.lower.loop_nests import lower
from satura.errors import CallError, ModelError
from satura.rewrite.onnx.load import load
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType
from tests.onnx_models import Shape, Typed, make_model, node, random_input
from tests.onnxruntime_reference import assert_close
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch

FAR = 1 << 62
X: dict[str, Shape | Typed] = {"x": (2, 3)}
OPEN: dict[str, Shape | Typed] = {"x": ("a", "b")}
ARRAYS = {
    "x": random_input(2, 3), "u": random_input(2), "v": random_input(1, 2),
    "image": random_input(2, 1, 3, 3), "r": np.zeros((1, 4), np.float32),
    "s": random_input(3, 2, 1), "cache": random_input(2, 4, 2), "rows": random_input(2, 2, 2),
}  # fmt: skip


def tuples(inputs: dict[str, Shape | Typed] = X) -> ModelProto:
    return make_model([node("GatherND", "x i")], {**inputs, "i": Typed((2, 2))})


def elements(inputs: dict[str, Shape | Typed] = X) -> ModelProto:
    return make_model([node("GatherElements", "x i", axis=1)], {**inputs, "i": Typed((2, 1))})


def batches() -> ModelProto:
    return make_model([node("GatherND", "x i", batch_dims=1)], {**X, "i": Typed((2, 1))})


def losses(op: str) -> ModelProto:
    return make_model([node(op, "x i")], {**X, "i": Typed((2,))})


def updates() -> ModelProto:
    inputs: dict[str, Shape | Typed] = {**X, "i": Typed((2, 2)), "u": (2,)}
    return make_model([node("ScatterND", "x i u")], inputs, opset=18)


def updated_elements() -> ModelProto:
    inputs: dict[str, Shape | Typed] = {**X, "i": Typed((1, 2)), "v": (1, 2)}
    return make_model([node("ScatterElements", "x i v", axis=1)], inputs, opset=18)


def regions() -> ModelProto:
    align = node("RoiAlign", "image r i", sampling_ratio=1)
    return make_model([align], {"image": (2, 1, 3, 3), "r": (1, 4), "i": Typed((1,))})


def reversed_sequences() -> ModelProto:
    reverse = node("ReverseSequence", "x i", time_axis=1, batch_axis=0)
    return make_model([reverse], {**X, "i": Typed((2,))})


def written(cache: Shape = (2, 4, 2), rows: Shape = (2, 2, 2)) -> ModelProto:
    write = node("TensorScatter", "cache rows i")
    return make_model([write], {"cache": cache, "rows": rows, "i": Typed((2,))}, opset=24)


def recurrent(op: str, gates: int) -> ModelProto:
    weights = {"w": random_input(1, gates, 1), "r": random_input(1, gates, 1)}
    nodes = [node("Cast", "i", "l", to=6), node(op, "s w r  l", "y", hidden_size=1)]
    nodes[1].input[:] = ["s", "w", "r", "", "l"]
    return make_model(nodes, {"s": (3, 2, 1), "i": Typed((2,))}, dict(weights))


# What holds the index, good ones, and bad ones each with what is said of it.
BEYOND, BEFORE = (r"\[-3, 3\)", 3), (r"\[-3, 3\)", -4)
STARTS = [([1, 3], (r"\[0, 3\)", 3)), ([0, -1], (r"\[0, 3\)", -1))]
LONG, NEGATIVE = (r"\[0, 4\)", 4), (r"\[0, 4\)", -4)
CASES: dict[str, tuple[ModelProto, object, Sequence[tuple[object, tuple[str, int]]]]] = {
    "GatherND": (
        tuples(), [[-2, -3], [1, 2]],
        [([[0, 0], [0, 3]], BEYOND), ([[1, -4], [0, 0]], BEFORE),
         ([[1, 2], [2, 0]], (r"\[-2, 2\)", 2)), ([[-3, 2], [0, 0]], (r"\[-2, 2\)", -3))],
    ),
    "GatherND of open sizes": (
        tuples(OPEN), [[-2, -3], [1, 2]], [([[0, 0], [0, 3]], BEYOND), ([[1, -4], [0, 0]], BEFORE)],
    ),
    "GatherND in batches": (batches(), [[-3], [2]], [([[3], [0]], BEYOND), ([[0], [-4]], BEFORE)]),
    "GatherElements": (elements(), [[-3], [2]], [([[3], [0]], BEYOND), ([[0], [-4]], BEFORE)]),
    "GatherElements of open sizes": (elements(OPEN), [[-3], [2]], [([[3], [0]], BEYOND)]),
    "Gather of one element": (
        make_model([node("Gather", "c i", axis=0)], {"i": Typed((2,))}, {"c": [[7.0]]}),
        [0, -1], [([0, 1], (r"\[-1, 1\)", 1))],
    ),
    "GatherElements of one element": (
        make_model([node("GatherElements", "c i", axis=0)], {"i": Typed((2, 1))}, {"c": [[7.0]]}),
        [[0], [-1]], [([[0], [-2]], (r"\[-1, 1\)", -2))],
    ),
    "SoftmaxCrossEntropyLoss": (losses("SoftmaxCrossEntropyLoss"), [0, 2], [([3, 0], BEYOND)]),
    "NegativeLogLikelihoodLoss": (
        make_model(
            [node("Reshape", "x s", "z"), node("NegativeLogLikelihoodLoss", "z i")],
            {**X, "i": Typed((2,))}, {"s": [2, 3]},
        ),
        [0, 2], [([3, 0], BEYOND)],
    ),
    "ScatterND": (
        updates(), [[-1, 0], [0, 2]],
        [
            ([[-1, 0], [0, 5]], (r"\[-3, 3\)", 5)), ([[1, 2], [2, 0]], (r"\[-2, 2\)", 2)),
            ([[-FAR, 0], [0, 0]], (r"\[-2, 2\)", -FAR)),
        ],
    ),
    "ScatterElements": (
        updated_elements(), [[-1, 1]], [([[-1, 4]], (r"\[-3, 3\)", 4)), ([[-4, 0]], BEFORE)],
    ),
    "RoiAlign": (regions(), [1], [([2], (r"\[-2, 2\)", 2)), ([-3], (r"\[-2, 2\)", -3))]),
    "ReverseSequence": (
        reversed_sequences(), [0, 3],
        [([1, 4], LONG), ([1, -4], NEGATIVE), ([1, FAR + 1], (r"\[-4, 4\)", FAR + 1))],
    ),
    "TensorScatter": (written(), [0, 2], STARTS),
    "TensorScatter of open sizes": (written(("n", "t", 2), ("n", "k", 2)), [0, 2], STARTS),
    "LSTM": (recurrent("LSTM", 4), [0, 3], [([1, 4], LONG), ([1, -4], NEGATIVE)]),
    "GRU": (recurrent("GRU", 3), [0, 3], [([4, 1], LONG), ([2, -4], NEGATIVE)]),
    "RNN": (recurrent("RNN", 1), [0, 3], [([4, 1], LONG), ([2, -4], NEGATIVE)]),
}  # fmt: skip


def given(model: ModelProto, indices: object) -> dict[str, Array]:
    names = [each.name for each in model.graph.input if each.name != "i"]
    return {"i": np.array(indices), **{name: ARRAYS[name] for name in names}}


@pytest.mark.parametrize(
    "name", deep_but([name for name in CASES if name not in ("RoiAlign", "GRU", "LSTM")], CASES)
)
def test_an_index_outside_of_its_own_axis_is_named(name: str) -> None:
    model, good, bad = CASES[name]
    compiled = satura.compile(model, threads=1)
    program = compiled.source
    assert not any(node.op.name == "host" for node in program.nodes)
    expected = interpret(program, given(model, good))
    for result, found in compiled.run(given(model, good)).items():
        assert_close(found, expected[result], 1e-6)
    for indices, (extents, wrong) in bad:
        with pytest.raises(CallError, match=rf"outside {extents}: input 'i' holds {wrong}$"):
            compiled.run(given(model, indices))
        with pytest.raises(CallError, match=rf"outside {extents}: it is {wrong}$"):
            interpret(program, given(model, indices))
    compiled.run(given(model, good))


def test_the_interpreter_of_a_model_names_the_node() -> None:
    model = updates()
    wrong = given(model, [[1, 2], [2, 0]])
    with pytest.raises(CallError, match=r"^ScatterND 'y': gather: an index .*: it is 2$"):
        satura.interpret(model, wrong)


INSIDE = {
    "clamped": [node("Max", "i zero", "j"), node("Min", "j three", "at")],
    "clamped from above first": [node("Min", "i three", "j"), node("Max", "j zero", "at")],
    "rests": [node("Mod", "i four", "at")],
    "places of the largest": [node("TopK", "x two", "v at")],
    "places of the largest, moved": [
        node("TopK", "x two", "v j"), node("Transpose", "j", "k"), node("Transpose", "k", "at"),
    ],
    "a constant": [node("Identity", "constant", "at")],
    "a ramp": [node("Expand", "ramp shape", "at")],
}  # fmt: skip
NOT_INSIDE = {
    "any": [node("Identity", "i", "at")],
    "clamped on one side": [node("Min", "i three", "at")],
    "clamped to another axis": [node("Max", "i zero", "j"), node("Min", "j four", "at")],
    "rests of another divisor": [node("Mod", "i five", "at")],
    "rests of the sign of the index": [node("Mod", "i four", "at", fmod=1)],
    "products that overflow": [node("Mul", "large two", "j"), node("Min", "j three", "at")],
    "numbers that i64 does not hold": [
        node("Cast", "larger", "j", to=7),
        node("Min", "j three", "at"),
    ],
}
NUMBERS: dict[str, object] = {
    "zero": 0, "three": 3, "four": 4, "five": 5, "two": [2], "constant": [[0, -1], [3, 2]],
    "ramp": [0, 1], "shape": [2, 2],
    "large": [[1 << 62] * 2] * 2, "larger": np.full((2, 2), (1 << 63) + 1, np.uint64),
}  # fmt: skip


@pytest.mark.parametrize("name", [*INSIDE, *NOT_INSIDE])
def test_only_indices_that_may_be_outside_are_checked(name: str) -> None:
    nodes = [*(INSIDE | NOT_INSIDE)[name], node("GatherElements", "x at", axis=1)]
    model = make_model(nodes, {"x": (2, 4), "i": Typed((2, 2))}, NUMBERS, opset=18)
    known = load(model).nodes
    tables = [known[each.operands[0]].op.name for each in known if each.op.name == "gather"]
    assert tables.count("iota") == (name in NOT_INSIDE)


def test_a_check_is_no_dispatch_of_its_own() -> None:
    for model in (elements(), elements(OPEN), tuples(), tuples(OPEN)):
        assert satura.compile(model, threads=1).statistics["dispatch-count"] == 1


def reports(program: Program) -> int:
    """How many checks there are in the kernel of a program of one dispatch."""
    schedule = one_dispatch(program)
    nests = lower(schedule, schedule.dispatches[0])
    return sum(value.op == "report" for nest in nests for value in nest.values)


def test_places_that_are_made_of_checked_indices_are_not_checked_again() -> None:
    assert reports(load(elements())) == reports(load(batches())) == 1
    assert reports(load(tuples())) == 2


def test_sums_of_sums_are_looked_at_once_each() -> None:
    build = Builder()
    x, at = build.input("x", DType.F32, (4,)), build.input("at", DType.I64, (3,))
    for _ in range(70):
        at = build.binary("add", at, at)
    program = build.program({"y": build.gather(x, at, 0)})
    assert reports(program) == 1


@pytest.mark.parametrize(
    ("f", "number", "dtype", "checks"),
    [("add", 0, DType.I64, 1), ("add", 1, DType.I64, 2), ("mul", 1, DType.I64, 1),
     ("mul", 2, DType.I64, 2), ("mul", -1, DType.I64, 2), ("sub", 0, DType.I64, 2),
     ("add", 0, DType.I32, 2)],
)  # fmt: skip
def test_places_that_may_be_outside_are_checked_again(
    f: str, number: int, dtype: DType, checks: int
) -> None:
    build = Builder()
    x, at = build.input("x", DType.F32, (4,)), build.input("at", DType.I64, (3,))
    inner = build.cast(build.gather(build.iota((4,), 0, DType.I64), at, 0), dtype)
    numbers = build.broadcast(build.constant(np.array([number], dtype.numpy)), (3,))
    program = build.program({"y": build.gather(x, build.binary(f, inner, numbers), 0)})
    assert reports(program) == checks
    compiled = satura.compile(program, threads=1, rules="none")
    values = {"x": random_input(4), "at": np.array([0, 1, 3])}
    try:
        expected = interpret(program, values)["y"]
    except CallError:
        with pytest.raises(CallError, match=r"outside \[-4, 4\)"):
            compiled.run(values)
    else:
        np.testing.assert_array_equal(compiled.run(values)["y"], expected)


@pytest.mark.parametrize("op", ["GatherElements", "ScatterElements"])
def test_indices_reach_no_further_than_the_data_along_other_axes(op: str) -> None:
    def model(rows: int | str, count: int | str) -> ModelProto:
        inputs: dict[str, Shape | Typed] = {
            "x": (2, rows, 4), "i": Typed((2, count, 1)), "u": (2, count, 1),
        }  # fmt: skip
        operands = "x i u" if op == "ScatterElements" else "x i"
        return make_model([node(op, operands, axis=2)], inputs, opset=18)

    def run(model: ModelProto, count: int) -> None:
        indices, updates = np.zeros((2, count, 1), np.int64), random_input(2, count, 1)
        satura.compile(model, threads=1).run(
            {"x": random_input(2, 3, 4), "i": indices, "u": updates}
        )

    with pytest.raises(ModelError, match="indices have 4 elements along axis 1, the data 3"):
        load(model(3, 4))
    for opened in (model("n", "k"), model("n", 3), model(3, "k")):
        run(opened, 3)
    run(model("n", "k"), 2)
    for opened, count in ((model("n", "k"), 4), (model(3, "k"), 4), (model("n", 4), 4)):
        with pytest.raises(CallError, match=r"indices have 4 .* axis 1, the data 3"):
            run(opened, count)


def test_constant_lengths_outside_are_an_error_of_the_model() -> None:
    reverse = node("ReverseSequence", "x l", time_axis=1, batch_axis=0)
    for lengths, wrong in (([4, 1], 4), ([-1, 2], -1)):
        with pytest.raises(ModelError, match=f"input 1 holds {wrong}, which is not from 0 to 3"):
            load(make_model([reverse], X, {"l": lengths}))
    program = load(make_model([reverse], {"x": (2, "n")}, {"l": [3, 1]}))
    interpret(program, {"x": random_input(2, 3)})
    with pytest.raises(CallError, match=r"ReverseSequence.*the extent n is 2"):
        interpret(program, {"x": random_input(2, 2)})


def test_of_an_index_that_no_input_holds_only_itself_is_said() -> None:
    build = Builder()
    x, at, other = (
        build.input("x", DType.F32, (4, 3)), build.input("at", DType.I64, (2,)),
        build.input("other", DType.I32, (1,)),
    )  # fmt: skip
    moved = build.binary("add", at, at)
    program = build.program({"y": build.gather(x, moved, 0), "z": other})
    compiled = satura.compile(program, threads=1)
    values = {"x": random_input(4, 3), "at": np.array([1, 3]), "other": np.array([99], np.int32)}
    with pytest.raises(CallError, match=r"outside \[-4, 4\): it is 6, and not one of an input's"):
        compiled.run(values)


def test_updates_of_a_tensor_scatter_are_as_large_as_the_tensor_beside_its_axis() -> None:
    wrong: list[tuple[Shape, str]] = [
        ((1, 2, 2), "should have the shape"), ((2, 2, 1), "should have the shape"),
        ((2, 5, 2), "an update of 5 elements does not fit 4"),
    ]  # fmt: skip
    for rows, reason in wrong:
        with pytest.raises(ModelError, match=f"TensorScatter.*{reason}"):
            load(written(rows=rows))
    program = load(written(("n", "t", 2), ("n", "k", 2)))
    given = {"cache": ARRAYS["cache"], "rows": random_input(2, 5, 2), "i": np.array([0, 0])}
    with pytest.raises(CallError, match=r"TensorScatter.*: the extent"):
        interpret(program, given)


@pytest.mark.parametrize(
    "behind",
    [
        [node("Shape", "z", "s"), node("ConstantOfShape", "s")],
        [node("Slice", "z first second")],
    ],
)
def test_an_index_of_what_no_result_has_is_none(behind: list[NodeProto]) -> None:
    nodes, numbers = [node("Gather", "x i", "z"), *behind], {"first": [0], "second": [1]}
    model = make_model(nodes, {**X, "i": Typed((2,))}, numbers)
    compiled = satura.compile(model, threads=1)
    for far in (2, -3):
        found = compiled.run(given(model, [1, far]))["y"]
        np.testing.assert_array_equal(found, compiled.run(given(model, [1, 0]))["y"])


@pytest.mark.parametrize("entry", ["interpret", "compile"])
def test_an_index_outside_names_where_it_comes_from(entry: str) -> None:
    build = Builder()
    x, at = build.input("x", DType.F32, (4, 3)), build.input("at", DType.I64, (2,))
    program = build.program({"y": build.gather(x, at, 0)})
    arguments = {"x": np.ones((4, 3), np.float32), "at": np.array([1, 9])}
    with pytest.raises(satura.errors.CallError) as failed:
        if entry == "interpret":
            satura.interpret(program, arguments)
        else:
            satura.compile(program, threads=1).run(arguments)
    expected = "%2: gather" if entry == "interpret" else "input 'at' holds 9"
    assert expected in str(failed.value)
    far = build.program({"y": build.gather(x, build.binary("add", at, at), 0)})
    with pytest.raises(satura.errors.CallError, match=r"not one of an input's: satura\.interpret"):
        satura.compile(far, threads=1).run({**arguments, "at": np.array([1, 3])})
    with pytest.raises(satura.errors.CallError, match="'x' is missing: it is None"):
        satura.compile(program, threads=1)(None, arguments["at"])
