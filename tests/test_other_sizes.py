"""Sizes that a program is not made for: others run them, in which all other sizes stay open, or
they are refused by name, as where an extent would be negative."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper

import satura
from satura.backend.plan import plans
from satura.rewrite.errors import CallError, EqualSizesWarning, ModelError
from satura.rewrite.onnx.lower.slice_bounds import clamped_bounds, slice_bounds
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.clamps import largest, never_negative, smallest
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import Array
from tests.command_line import cli
from tests.onnx_models import F32, I64, Inputs, Shape, Typed, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but

ROWS: Shape = ("n", "m")


def of_rows(*nodes: NodeProto, **constants: object) -> ModelProto:
    """A model of x, f32[n, m], and of a tensor z of open length; `n` and `m` are sizes of x."""
    sizes = [node("Shape", "x", "n", start=0, end=1), node("Shape", "x", "m", start=1, end=2)]
    return make_model(
        [*sizes, *nodes, node("Tanh", "z", "w")], {"x": ROWS, "z": ("other",)}, constants, 18,
        ("y", "w"),
    )  # fmt: skip


SHARED = {
    "as many as there are, at most six": of_rows(
        node("Min", "m six", "k"), node("TopK", "x k", "y i", axis=1), six=[6]
    ),
    "half of a row": of_rows(
        node("Div", "m two", "k"), node("TopK", "x k", "y i", axis=1), two=[2]
    ),
    "the first columns": of_rows(
        node("Slice", "x zero eight one", "s"), node("Softmax", "s"), zero=[0], eight=[8], one=[1]
    ),
    "the last columns": of_rows(
        node("Slice", "x start far one", "s"), node("ReduceMax", "s one"),
        start=[-8], far=[2**40], one=[1],
    ),
    "overlapping parts": of_rows(  # as unfold(size 4, step 2) is exported
        node("Sub", "m four", "d"), node("Div", "d two", "q"), node("Add", "q one", "c"),
        node("Squeeze", "c", "c0"), node("Range", "zero c0 single", "r"),
        node("Mul", "r two", "at"), node("Unsqueeze", "at one", "column"),
        node("Add", "column steps", "places"), node("Gather", "x places", axis=1),
        four=[4], two=[2], one=[1], zero=np.int64(0), single=np.int64(1), steps=[[0, 1, 2, 3]],
    ),
}  # fmt: skip
"""Sizes of columns decide; calls of the same have one program for all rows and all other sizes."""
COLUMNS = {
    "as many as there are, at most six": (9, 12, 4, 5), "half of a row": (9, 8, 5),
    "the first columns": (9, 30, 4, 3), "the last columns": (9, 30, 4, 3),
    "overlapping parts": (9, 16, 4),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", deep_but(["as many as there are, at most six", "overlapping parts"], SHARED)
)
def test_what_sizes_decide_leaves_others_open(name: str, tmp_path: Path) -> None:
    model = SHARED[name]
    compiled = satura.compile(model, threads=1)
    known: dict[tuple[str, ...], int] = {}
    for columns in COLUMNS[name]:
        for rows, other in ((4, 3), (5, 7), (6, 5)):
            given = {"x": random_input(rows, columns), "z": random_input(other)}
            found = compiled.run(given)
            known |= {report.facts: report.plans for report in compiled.cache}
            for result, expected in zip(found.values(), run(model, given), strict=True):
                assert_close(result, expected, 1e-5)
    assert max(known.values()) >= 3  # rows and other sizes that are of one class
    assert len(known) <= len(COLUMNS[name]) + 1
    path = tmp_path / "program"
    compiled.save(path)
    opened = satura.open(path)
    for columns in (*COLUMNS[name], 5):
        given = {"x": random_input(3, columns), "z": random_input(11)}
        for result, expected in zip(opened.run(given).values(), run(model, given), strict=True):
            assert_close(result, expected, 1e-5)


UNEQUAL: dict[str, tuple[ModelProto, list[tuple[int, int, int]]]] = {
    "the last of what is cached": (
        make_model(
            [
                node("Concat", "old new", "all", axis=1), node("MatMul", "scores all", "y"),
                node("Slice", "all start far one", "kept"),
            ],
            {"old": (2, "n", 4), "new": (2, "m", 4), "scores": (2, 1, "k")},
            {"start": [-15], "far": [2**40], "one": [1]}, 18, ("y", "kept"),
        ),
        [(40, 1, 41), (2, 2, 4), (2, 1, 3), (0, 7, 7), (10, 1, 11)],
    ),
    "a mask that is as long as what is cached": (  # one element of it is not broadcast later
        make_model(
            [
                node("Concat", "old new", "all", axis=1), node("Add", "all mask", "y"),
                node("Slice", "all start far one", "kept"),
            ],
            {"old": (2, "n"), "new": (2, "m"), "mask": (2, "k")},
            {"start": [-15], "far": [2**40], "one": [1]}, 18, ("y", "kept"),
        ),
        [(0, 1, 1), (8, 1, 9), (2, 2, 4), (40, 1, 41), (1, 0, 1)],
    ),
    "sizes that are the same in each call": (
        make_model(
            [node("Add", "x mask", "y"), node("Slice", "x zero fifteen one", "z")],
            {"x": ("n", "m"), "mask": ("n", "k")}, {"zero": [0], "fifteen": [15], "one": [1]},
            18, ("y", "z"),
        ),
        [(1, 1, 1), (1, 7, 7), (1, 40, 40), (2, 1, 1), (2, 3, 3), (2, 3, 1), (2, 1, 4)],
    ),
    "a slice from a size on": (
        make_model(
            [
                node("Shape", "x", "n", start=0, end=1), node("Shape", "x", "m", start=1, end=2),
                node("TopK", "x m", "best places", axis=1), node("Slice", "z n end zero", "y"),
            ],
            {"x": ("n", "m"), "z": ("k",)}, {"end": [-2], "zero": [0]}, 18, ("best", "y"),
        ),
        [(4, 13, 9), (4, 13, 6), (8, 1, 13), (3, 5, 4), (13, 29, 2), (0, 16, 3)],
    ),
}  # fmt: skip
"""Models that other programs run, of which no program runs where all sizes are the same."""


@pytest.mark.parametrize("name", deep_but([*UNEQUAL][::2], UNEQUAL))
def test_other_programs_run_where_their_sizes_differ(name: str, tmp_path: Path) -> None:
    model, calls = UNEQUAL[name]
    compiled = satura.compile(model, threads=1)
    compiled.save(tmp_path / "program", [dict(zip("nmk", calls[0], strict=True))])
    for program in (compiled, satura.open(tmp_path / "program")):
        for sizes in calls:
            given = _drawn(model, dict(zip("nmk", sizes, strict=True)))
            for result, expected in zip(
                program.run(given).values(), run(model, given), strict=True
            ):
                assert_close(result, expected, 1e-5)


def test_a_program_of_sizes_that_are_taken_for_others_runs_these_alone() -> None:
    """Columns are taken for 16, so that they are no sizes of a call that has as many: the program
    that it needs, as it has fewer rows, is not for 7 columns."""
    model = of_rows(
        node("Equal", "n m", "e"), node("Where", "e m m", "end"), node("Slice", "x zero end zero"),
        zero=[0],
    )  # fmt: skip
    compiled = satura.compile(model, threads=1)
    for rows, columns in ((5, 16), (20, 7), (2, 1), (6, 16), (30, 7)):
        given = {"x": random_input(rows, columns), "z": random_input(2)}
        for result, expected in zip(compiled.run(given).values(), run(model, given), strict=True):
            assert_close(result, expected, 1e-6)


@pytest.mark.parametrize("name", ["n", "rows"])  # the shorter name is taken for both
def test_an_expansion_to_another_open_size_expands(name: str) -> None:
    nodes = [node("Shape", "w", "s"), node("Expand", "x s")]
    model = make_model(nodes, {"x": (name, 4), "w": ("m", 4)}, opset=18)
    compiled = satura.compile(model, threads=1)
    for rows, wanted in ((5, 5), (1, 5), (5, 1), (1, 0)):
        given = {"x": random_input(rows, 4), "w": random_input(wanted, 4)}
        assert compiled.run(given)["y"].shape == run(model, given)[0].shape
    with pytest.raises(CallError):
        compiled.run({"x": random_input(3, 4), "w": random_input(5, 4)})


def shape_of(*names: str) -> list[NodeProto]:
    """`r`, three less than the rows, then `names`."""
    return [node("Sub", "n three", "d"), node("Concat", " ".join(["d", *names]), "r", axis=0)]


NEGATIVE: dict[str, ModelProto] = {
    "ConstantOfShape": of_rows(*shape_of("m"), node("ConstantOfShape", "r"), three=[3]),
    "Expand": of_rows(
        *shape_of("m"), node("ReduceMax", "x zero", "t"), node("Expand", "t r"), three=[3], zero=[0]
    ),
    "OneHot": of_rows(
        node("Sub", "n three", "d"), node("OneHot", "places d values"),
        three=[3], places=[0, 1], values=np.array([0, 1], np.float32),
    ),
    "Resize": of_rows(*shape_of("m"), node("Resize", "x - - r"), three=[3]),
    "Tile": of_rows(*shape_of("one"), node("Tile", "x r"), three=[3], one=[1]),
}  # fmt: skip


def reduced(model: ModelProto) -> ModelProto:
    """The model with the sum of y in its place: what is stored has no negative extent."""
    result = ModelProto()
    result.CopyFrom(model)
    last = result.graph.node[-2]
    last.output[0] = "before"
    result.graph.node.insert(len(result.graph.node) - 1, node("ReduceSum", "before", "y"))
    return result


@pytest.mark.parametrize("name", deep_but(["ConstantOfShape", "Resize"], NEGATIVE))
@pytest.mark.parametrize("change", [lambda model: model, reduced], ids=["stored", "summed"])
def test_extents_that_would_be_negative_are_refused(
    name: str, change: Callable[[ModelProto], ModelProto], tmp_path: Path
) -> None:
    model = change(NEGATIVE[name])
    compiled = satura.compile(model, threads=1)
    given = {"x": random_input(7, 2), "z": random_input(1)}
    for result, expected in zip(compiled.run(given).values(), run(model, given), strict=True):
        assert_close(result, expected, 1e-5)
    given["x"] = random_input(1, 2)
    with pytest.raises(CallError, match=rf"{name}.*the extent n-3 is -2 where"):
        compiled.run(given)
    with pytest.raises(CallError, match=r"the extent n-3 is -2 where"):
        compiled.prepare({"n": 1, "m": 2, "other": 1})
    with pytest.raises(CallError, match=r"the extent n-3 is -2 where"):
        satura.interpret(model, given)
    compiled.save(tmp_path / "program")  # what was refused has left nothing
    given["x"] = random_input(4, 2)
    opened = satura.open(tmp_path / "program")
    for result, expected in zip(opened.run(given).values(), run(model, given), strict=True):
        assert_close(result, expected, 1e-5)


def test_rows_that_are_filled_up_leave_what_lies_behind_the_result(tmp_path: Path) -> None:
    """The softmax is stored inside the result, which ends in as many zeros as are missing."""
    nodes = [
        node("Shape", "x", "n", start=0, end=1), node("Sub", "most n", "missing"),
        node("Concat", "missing width", "r", axis=0), node("ConstantOfShape", "r", "z"),
        node("Softmax", "x", "s"), node("Concat", "s z", axis=0),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n", 8)}, {"most": [32], "width": [8]}, 18)
    compiled = satura.compile(model, threads=1)
    compiled.save(tmp_path / "program", [{"n": 20}])
    for program in (compiled, satura.open(tmp_path / "program")):
        memory = np.full((96, 8), 7, np.float32)
        out = {"y": memory[32:64]}
        program.run({"x": random_input(20, 8)}, out=out)
        (expected,) = run(model, {"x": random_input(20, 8)})
        assert_close(memory[32:64], expected, 1e-6)
        with pytest.raises(CallError, match=r"the extent -n\+32 is -8 where n = 40"):
            program.run({"x": random_input(40, 8)}, out=out)
        assert np.all(memory[:32] == 7) and np.all(memory[64:] == 7)


@pytest.mark.parametrize(
    ("op", "constants"),
    [("Tile", {"r": [-1, 1]}), ("Expand", {"r": [-2, 4]}), ("ConstantOfShape", {"r": [-1, 0]})],
)
def test_a_number_that_is_no_extent_is_refused(op: str, constants: dict[str, object]) -> None:
    inputs = {"x": (1, 4)} if op != "ConstantOfShape" else {}
    model = make_model([node(op, " ".join([*inputs, "r"]))], {"x": (1, 4)}, constants, 18)
    with pytest.raises(ModelError, match=rf"{op}.* has the negative extent -\d"):
        satura.load(model)


def test_sizes_that_others_decide_have_typical_ones() -> None:
    """They are those for which the first program is made, though its outputs have any of them."""
    model = SHARED["half of a row"]
    compiled = satura.compile(model, threads=1, dims={"m": 10, "other": (1, 9)})
    program = compiled.program
    assert program.nodes[dict(program.outputs)["y"]].type.shape[1] == 5
    assert str(compiled.outputs["y"]) == "f32[n, y_1]"
    x, z = random_input(3, 12), random_input(2)
    for result, expected in zip(compiled(x, z), run(model, {"x": x, "z": z}), strict=True):
        assert_close(result, expected, 1e-5)
    with pytest.raises(CallError, match=r"no size 'length' in the model; its sizes are \['m', 'n'"):
        satura.compile(model, threads=1, dims={"length": 3})


def test_typical_sizes_may_be_fixed_by_values() -> None:
    inputs: Inputs = {"x": ("a", "b"), "s": Typed([2])}
    split = [node("Split", "x s", "y z", axis=0)]
    model = make_model(split, inputs, opset=18, outputs=("y", "z"))
    compiled = satura.compile(model, threads=1, dims={"a": 4, "b": 9})
    y, z = compiled(random_input(4, 5), np.array([1, 3]))
    assert y.shape == (1, 5) and z.shape == (3, 5)


def test_windows_of_a_size_and_axes_computed_of_sizes() -> None:
    nodes = [node("Squeeze", "n", "q"), node("HannWindow", "q", "y")]
    compiled = satura.compile(of_rows(*nodes), threads=1)
    for rows in (4, 9, 1, 16):
        x, z = random_input(rows, 2), random_input(1)
        (expected, _) = run(of_rows(*nodes), {"x": x, "z": z})
        assert_close(compiled(x, z)[0], expected, 1e-6)
    summed = of_rows(
        node("Sub", "m m", "none"), node("Squeeze", "none", "axis"), node("CumSum", "x axis")
    )
    x, z = random_input(4, 3), random_input(1)
    assert_close(satura.compile(summed, threads=1)(x, z)[0], x.cumsum(0), 1e-6)


ROUNDED = {
    "sevenths of a size, seven times": (
        [node("Cast", "n", "f", to=F32), node("Div", "f seven", "q"), node("Mul", "q seven", "p"),
         node("Cast", "p", "k", to=I64)], (62, 16, 31),
    ),
    "a size in eight bits": (
        [node("Cast", "n", "b", to=TensorProto.UINT8), node("Cast", "b", "k", to=I64)], (300, 16),
    ),
    "a size in half precision": (
        [node("Cast", "n", "h", to=TensorProto.FLOAT16), node("Cast", "h", "k", to=I64)],
        (2049, 16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_sizes_that_types_round_decide_what_they_are_rounded_to(name: str) -> None:
    nodes, sizes = ROUNDED[name]
    constants: dict[str, object] = {"seven": np.array([7], np.float32), "zero": [0]}
    model = of_rows(*nodes, node("Slice", "x zero k zero"), **constants)
    compiled = satura.compile(model, threads=1)
    for rows in sizes:
        given = {"x": random_input(rows, 1), "z": random_input(1)}
        expected = run(model, given)[0]
        assert compiled.run(given)["y"].shape == expected.shape


@pytest.mark.deep
def test_constants_of_ever_other_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a table from the root of a size on: each root has packed weights of its own."""
    monkeypatch.setattr(plans, "MOST_MORE", 0)
    nodes = [
        node("Cast", "n", "f", to=F32), node("Sqrt", "f", "q"), node("Cast", "q", "start", to=I64),
        node("Add", "start length", "end"), node("Slice", "table start end zero", "t"),
        node("MatMul", "x t"),
    ]  # fmt: skip
    constants: dict[str, object] = {"length": [64], "zero": [0], "table": random_input(100, 16)}
    model = make_model(
        [node("Shape", "x", "n", start=0, end=1), *nodes], {"x": ("n", 64)}, constants, 18
    )
    compiled = satura.compile(model, threads=1)
    taken = []
    for root in (*range(1, 17), 2, 3):
        x = random_input(root**2, 64)
        assert_close(compiled.run({"x": x})["y"], run(model, {"x": x})[0], 1e-4)
        taken.append(compiled._whole.plans.store.size)
    assert max(taken) <= 5 * taken[0] and len(compiled.cache) > 1


def test_a_part_of_weights_that_sizes_choose_is_one_class() -> None:
    """Relative positions: twice as many rows of a table as there are rows of x, around its
    middle."""
    nodes = [
        node("Sub", "half n", "start"), node("Add", "half n", "end"),
        node("Slice", "table start end zero", "t"), node("Transpose", "t", "u", perm=[1, 0]),
        node("MatMul", "x u"),
    ]  # fmt: skip
    constants: dict[str, object] = {"half": [100], "zero": [0], "table": random_input(200, 16)}
    model = make_model(
        [node("Shape", "x", "n", start=0, end=1), *nodes], {"x": ("n", 16)}, constants, 18
    )
    compiled = satura.compile(model, threads=1)
    for rows in (36, 33, 64, 100, 47):
        x = random_input(rows, 16)
        (expected,) = run(model, {"x": x})
        assert_close(compiled.run({"x": x})["y"], expected, 1e-4)
    assert len(compiled.cache) <= 2


N, M = symbol("n"), symbol("m")


def more(dim: Dim, bound: int) -> Dim:
    found = largest(dim, bound)
    assert found is not None
    return found


def less(dim: Dim, bound: int) -> Dim:
    found = smallest(dim, bound)
    assert found is not None
    return found


CUT = [
    N, N - 3, more(N - 3, 0), less(N, 5), more(N - 5, 0) - more(N - 9, 0),
    more(N - 9, 0) - more(N - 5, 0), less(N, 5) - 1, 2 * N - 1, 5 - less(N, 5),
]  # fmt: skip


@given(st.sampled_from(CUT), st.integers(0, 40))
def test_what_is_never_negative_never_is(dim: Dim, size: int) -> None:
    if never_negative(dim):
        assert evaluate(dim, {"n": size}) >= 0
    elif never_negative(dim, [N - 12]):
        assert evaluate(dim, {"n": size + 12}) >= 0


def test_sizes_that_are_cut_off_are_known_not_to_be_negative() -> None:
    found = [never_negative(dim) for dim in CUT]
    assert found.count(True) >= 5 and not never_negative(N - 3) and not never_negative(2 * N - 1)
    assert never_negative(M - N, [M - N - 2]) and never_negative(32 - N, [32 - N])


@pytest.mark.parametrize("scale", [0.7, 1.3, 1.5])  # of 1.3 no fraction says the same everywhere
def test_an_image_is_resized_to_as_many_as_f32_says(scale: float) -> None:
    """Ten by 0.7 is seven, though 0.7 in f32 is less."""
    scales = {"scales": np.array([1, scale], np.float32)}
    model = make_model([node("Resize", "x - scales", mode="linear")], {"x": ROWS}, scales, 18)
    compiled = satura.compile(model, threads=1)
    for columns in (10, 90, 7):  # where there are as many onnxruntime copies them
        x = random_input(2, columns)
        assert_close(compiled.run({"x": x})["y"], run(model, {"x": x})[0], 1e-4)
    fixed = satura.load(make_model([node("Resize", "x - scales")], {"x": (2, 10)}, scales, 18))
    assert dict(fixed.outputs) and fixed.nodes[fixed.output_nodes[0]].type.shape == (
        2, int(np.float32(10) * np.float32(scale)),
    )  # fmt: skip


FAR = 2**63 - 1
BOUNDS: list[Dim] = [
    -M, M, -M - 1, M + 1, N - 3, -N, N, M - N, -2 * M, -9, -1, 0, 2, FAR, -FAR,
]  # fmt: skip


def taken(extent: int, start: int, end: int, step: int) -> list[int]:
    """The indices that ONNX says a slice takes."""
    start, end = (value + extent if value < 0 else value for value in (start, end))
    least, most = (0, extent) if step > 0 else (-1, extent - 1)
    return list(range(min(max(start, 0), most), min(max(end, least), most), step))


@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("extent", [N, 5], ids=["n rows", "five rows"])
def test_slices_of_open_bounds_take_what_they_say(extent: Dim, step: int) -> None:
    """Where the conditions hold that come with them; clamped ones for all sizes."""
    held = 0
    for start, end in product(BOUNDS, BOUNDS):
        first, size, natural = slice_bounds(extent, start, end, step)
        clamped = clamped_bounds(extent, start, end, step)
        for n, m in product((0, 1, 2, 3, 5, 9), (0, 1, 2, 5, 8)):
            sizes = {"n": n, "m": m}
            length, one, other = (evaluate(dim, sizes) for dim in (extent, start, end))
            expected = taken(length, one, other, step)
            found = [(first, size)] * all(evaluate(dim, sizes) >= 0 for dim in natural)
            held += len(found)
            for at, count in [*found, *([clamped] if clamped else [])]:
                begin = evaluate(at, sizes)
                got = [begin + step * number for number in range(evaluate(count, sizes))]
                assert got == expected, f"[{start}:{end}:{step}] of {extent} at {sizes}"
    assert held > 1000


def _weights(gates: int) -> dict[str, object]:
    return {"W": random_input(1, gates * 4, 3), "R": random_input(1, gates * 4, 4)}


def _recurrent(kind: str, gates: int, **states: Shape) -> ModelProto:
    names = " ".join(["x W R - -", *states])
    return make_model(
        [node(kind, names, hidden_size=4)], {"x": ("n", "m", 3), **states}, _weights(gates), 18
    )


EXACT: dict[str, tuple[ModelProto, Callable[[int, int, int], bool]]] = {
    "the state of a GRU": (_recurrent("GRU", 3, h=(1, "k", 4)), lambda n, m, k: m == k),
    "the states of an LSTM": (
        _recurrent("LSTM", 4, h=(1, "k", 4), c=(1, "m", 4)), lambda n, m, k: m == k,
    ),
    "lengths of a recurrence": (
        make_model(
            [node("GRU", "x W R - ends", hidden_size=4)],
            {"x": ("n", "m", 3), "ends": Typed(("k",), TensorProto.INT32)}, _weights(3), 18,
        ),
        lambda n, m, k: m == k,
    ),
    "lengths of what is reversed": (
        make_model(
            [node("ReverseSequence", "x ends", time_axis=0, batch_axis=1)],
            {"x": ("n", "m", 3), "ends": Typed(("k",), I64)}, opset=18,
        ),
        lambda n, m, k: m == k,
    ),
    "parts of another size": (
        make_model(
            [
                node("Shape", "z", "n"), node("Concat", "n rest", "s", axis=0),
                node("Reshape", "x s"),
            ],
            {"x": ("m", "k"), "z": ("n",)}, {"rest": [-1]}, 18,
        ),
        lambda n, m, k: m * k % n == 0,
    ),
    "pads by reflection": (
        make_model(
            [
                node("Shape", "z", "k"), node("Concat", "k zero one zero", "p", axis=0),
                node("Pad", "x p", mode="reflect"),
            ],
            {"x": ("n", "m"), "z": ("k",)}, {"zero": [0], "one": [1]}, 18,
        ),
        lambda n, m, k: n > k and n > 1,
    ),
    "a computed 0 that copies": (
        make_model(
            [
                node("Shape", "z", "k"), node("Mul", "k rows", "r"),
                node("Concat", "rows r", "s", axis=0), node("Reshape", "x s"),
            ],
            {"x": (4, "n", "k"), "z": ("k",)}, {"rows": [4]}, 18,
        ),
        lambda n, m, k: n == 4 and k > 0,
    ),
}  # fmt: skip
"""Models with operands that ONNX does not broadcast, with pads that need as many elements, and
with a 0 that says something else than others; which sizes they run for."""


@pytest.mark.parametrize("name", EXACT)
def test_what_onnx_does_not_broadcast_has_the_same_size(name: str) -> None:
    model, runs = EXACT[name]
    compiled = satura.compile(model, threads=1)
    for sizes in product((1, 2, 4), (1, 2), (0, 1, 2, 5)):
        given = _drawn(model, dict(zip("nmk", sizes, strict=True)))
        if runs(*sizes):
            assert_close(compiled.run(given)["y"], run(model, given)[0], 1e-5)
        else:
            with pytest.raises(CallError):
                compiled.run(given)


COMPUTED: dict[str, tuple[ModelProto, int]] = {
    name: (of_rows(*nodes, **constants), most)
    for name, most, nodes, constants in (
        (
            "between two limits", 2,
            [node("Clip", "m low high", "k"), node("TopK", "x k", "y i", axis=1)],
            {"low": [1], "high": [6]},
        ),
        (
            "the larger of two", 3,
            [
                node("Max", "m n", "k"), node("Sub", "k m", "p"),
                node("Concat", "zero zero zero p", "pads", axis=0), node("Pad", "x pads"),
            ],
            {"zero": [0]},
        ),
        (
            "the nearest even half", 1,
            [
                node("Cast", "m", "f", to=TensorProto.FLOAT), node("Mul", "f half", "h"),
                node("Round", "h", "g"), node("Cast", "g", "k", to=I64),
                node("Slice", "x zero k one"),
            ],
            {"half": np.float32(0.5), "zero": [0], "one": [1]},
        ),
        (
            "what is left of sevens", 3,
            [node("Mod", "m seven", "k", fmod=1), node("Slice", "x zero k one")],
            {"seven": [7], "zero": [0], "one": [1]},
        ),
        (
            "a negative quotient", 5,  # -2 of -8 to -11, which floor would round down
            [
                node("Sub", "m twelve", "d"), node("Div", "d four", "k"),
                node("Slice", "x zero k one"),
            ],
            {"twelve": [12], "four": [4], "zero": [0], "one": [1]},
        ),
        (
            "a border that cuts", 9,
            [
                node("Sub", "n three", "d"), node("Concat", "zero d zero m", "pads", axis=0),
                node("Pad", "x pads", mode="wrap"),
            ],
            {"zero": [0], "three": [3]},
        ),
        (
            "products that floats round", 9,
            [
                node("Cast", "m", "f", to=TensorProto.FLOAT), node("Mul", "f f", "g"),
                node("Mul", "g large", "h"), node("Add", "h third", "i"),
                node("Sub", "i h", "j"), node("Cast", "j", "k", to=I64),
                node("Slice", "x zero k one"),
            ],
            {"large": np.array([2**20], np.float32), "third": np.array([3], np.float32),
             "zero": [0], "one": [1]},
        ),
        (
            "as many as there are", 9,  # k is a number, and at most that
            [
                node("Concat", "zero zero zero n", "pads", axis=0), node("Pad", "x pads", "wide"),
                node("Shape", "wide", "k", start=1), node("TopK", "wide k", "y i", axis=1),
            ],
            {"zero": [0]},
        ),
        (
            "32 bits that wrap", 9,
            [
                node("Cast", "m", "f", to=TensorProto.INT32), node("Mul", "f large", "g"),
                node("Div", "g large", "h"), node("Cast", "h", "k", to=I64),
                node("Slice", "x zero k one"),
            ],
            {"large": np.array([2**28], np.int32), "zero": [0], "one": [1]},
        ),
    )
}  # fmt: skip
"""Sizes that are computed of others, and how many classes there are at most."""


@pytest.mark.parametrize("name", deep_but([*COMPUTED][:6], COMPUTED))
def test_comparisons_of_sizes_are_taken_as_in_the_call(name: str) -> None:
    model, most = COMPUTED[name]
    compiled = satura.compile(model, threads=1)
    for rows, columns in ((2, 5), (7, 30), (3, 9), (40, 100), (33, 12), (12, 33), (8, 10), (8, 7)):
        given = {"x": random_input(rows, columns), "z": random_input(2)}
        for result, expected in zip(compiled.run(given).values(), run(model, given), strict=True):
            assert_close(result, expected, 1e-6)
    assert len(compiled.cache) <= most


BROADCAST: dict[str, ModelProto] = {
    "two of an axis each": make_model(
        [node("Add", "x v", "y")], {"x": ("n", "m"), "v": ("k", "l")}
    ),
    "three": make_model(
        [node("Add", "x v", "s"), node("Mul", "s w", "y")],
        {"x": ("n", "m"), "v": ("k", "l"), "w": ("i", "j")},
    ),
    "beside a slice": make_model(
        [node("Add", "x v", "s"), node("Slice", "x zero three zero", "z"),
         node("Concat", "s z", axis=0)],
        {"x": ("n", "m"), "v": ("k", "l")}, {"zero": [0], "three": [3]}, 18,
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", deep_but([0], range(20)))
@pytest.mark.parametrize("name", deep_but(["two of an axis each", "beside a slice"], BROADCAST))
def test_programs_of_other_sizes_serve_these_in_any_order(name: str, seed: int) -> None:
    """What a program takes for equal, or for 1, is as in the call that it was made for."""
    model, random = BROADCAST[name], np.random.default_rng(seed)
    compiled = satura.compile(model, threads=1)
    for _ in range(25):
        first, second = (int(random.choice(some)) for some in ((1, 2, 3, 5), (1, 2, 7, 33)))
        sizes = {"n": first, "m": second}
        for names, size in (("ki", first), ("lj", second)):
            sizes |= {each: int(random.choice([size, size, 1])) for each in names}
        given = _drawn(model, sizes)
        assert_close(compiled.run(given)["y"], run(model, given)[0], 1e-6)


IMAGES: Inputs = {"x": ("n", 3, "m", "k")}
SIGNALS: Inputs = {"x": ("n", "m", 1)}
FIXED: dict[str, tuple[ModelProto, Sequence[tuple[int, ...]]]] = {
    name: (make_model(nodes, inputs, constants, opset, outputs), calls)
    for name, nodes, inputs, constants, opset, outputs, calls in (
        (
            "places of the largest", [node("MaxPool", "x", "y i", kernel_shape=[3, 2],
            strides=[2, 2], pads=[1, 0, 1, 1])], IMAGES, {}, 18, ("y", "i"),
            [(1, 4, 5), (2, 7, 9), (3, 4, 5)],
        ),
        (
            "an image of given size", [node("ConvTranspose", "x w", output_shape=[10, 12],
            strides=[2, 2])], IMAGES, {"w": random_input(3, 2, 3, 3)}, 18, ("y",),
            [(1, 4, 5), (2, 5, 5), (3, 4, 5)],
        ),
        (
            "an image in a frame", [node("Resize", "x - - s", axes=[2, 3], mode="linear",
            keep_aspect_ratio_policy="not_larger")], IMAGES, {"s": [10, 12]}, 18, ("y",),
            [(1, 4, 5), (2, 5, 5), (3, 4, 5)],
        ),
        (
            "an image that is made smaller", [node("Resize", "x - s", mode="linear", antialias=1)],
            IMAGES, {"s": np.array([1, 1, 0.5, 0.75], np.float32)}, 18, ("y",),
            [(1, 4, 5), (2, 7, 9), (3, 4, 5)],
        ),
        (
            "a spectrum", [node("DFT", "x", axis=1)], SIGNALS, {}, 17, ("y",),
            [(1, 64), (2, 15), (3, 64)],
        ),
        (
            "a spectrum of numbers or of pairs", [node("DFT", "x", axis=1)],
            {"x": ("n", 8, "m")}, {}, 17, ("y",), [(3, 1), (2, 2), (1, 1)],
        ),
        (
            "spectra of frames", [node("STFT", "x step w")], SIGNALS,
            {"step": np.int64(4), "w": np.hanning(16).astype(np.float32)}, 17, ("y",),
            [(2, 64), (1, 101), (3, 16)],
        ),
    )
}  # fmt: skip
"""Sizes of images and signals decide how these are lowered, and not those of batches."""
DEAR = {
    "an image of given size", "an image in a frame", "an image that is made smaller", "a spectrum",
}  # fmt: skip


@pytest.mark.parametrize("name", deep_but([name for name in FIXED if name not in DEAR], FIXED))
def test_what_a_size_decides_is_lowered_for_it(name: str) -> None:
    model, calls = FIXED[name]
    compiled = satura.compile(model, threads=1)
    for sizes in (*calls, *calls):
        given = _drawn(model, dict(zip("nmk", sizes, strict=False)))
        for result, expected in zip(compiled.run(given).values(), run(model, given), strict=True):
            assert_close(result, expected, 1e-4)
    assert len(compiled.cache) <= (3 if name == "spectra of frames" else 2)


def _drawn(model: ModelProto, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Arguments of these sizes; each integer is 1."""
    given = {}
    for value in model.graph.input:
        type_ = value.type.tensor_type
        shape = [
            sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in type_.shape.dim
        ]
        is_number = type_.elem_type == F32
        dtype = helper.tensor_dtype_to_np_dtype(type_.elem_type)
        given[value.name] = random_input(*shape) if is_number else np.ones(shape, dtype)
    return given


GIVEN_WEIGHTS: dict[str, tuple[list[NodeProto], Shape, Shape, list[tuple[int, ...]]]] = {
    "a convolution": (
        [node("Conv", "x w")], ("n", "m", 5, 6), ("k", "m", 3, 3), [(2, 4, 3), (1, 1, 1)],
    ),
    "in groups": (
        [node("Conv", "x w", group=2)], ("n", 6, 5, 6), ("k", "m", 3, 3), [(2, 3, 4), (1, 3, 2)],
    ),
    "by channel": (
        [node("Conv", "x w", group=5)], ("n", "m", 7), ("m", 1, 3), [(2, 5, 1), (1, 5, 1)],
    ),
    "transposed": (
        [node("ConvTranspose", "x w")], ("n", "m", 5), ("m", "k", 3), [(2, 4, 3), (1, 1, 1)],
    ),
    "a recurrence": (
        [node("GRU", "x r w", hidden_size=4)], ("n", 2, 3), (1, "k", "m"),
        [(5, 4, 12), (1, 4, 12)],
    ),
}  # fmt: skip
"""Weights that calls give, and the extents of the image or sequence."""


@pytest.mark.parametrize("name", deep_but(["in groups", "a recurrence"], GIVEN_WEIGHTS))
def test_weights_that_are_given_may_have_open_channels(name: str) -> None:
    nodes, x, w, calls = GIVEN_WEIGHTS[name]
    model = make_model(nodes, {"x": x, "w": w}, {"r": random_input(1, 12, 3)})
    compiled = satura.compile(model, threads=1)
    for sizes in (*calls, *calls):
        given = _drawn(model, dict(zip("nmk", sizes, strict=True)))
        assert_close(compiled.run(given)["y"], run(model, given)[0], 1e-5)


@pytest.mark.parametrize("declared", [None, ("n", "m")])
def test_a_squeeze_without_axes_drops_what_is_1_in_the_call(
    declared: Shape | None, tmp_path: Path
) -> None:
    """The rank that is declared is that of most sizes."""
    model = make_model([node("Squeeze", "x", "s"), node("Relu", "s")], {"x": ("n", 1, "m")})
    if declared:
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", F32, declared))
    compiled = satura.compile(model, threads=1)
    compiled.save(tmp_path / "program")
    for program in (compiled, satura.open(tmp_path / "program")):
        for n, m in [(2, 7), (1, 7), (3, 1), (1, 1), (0, 3), (0, 1), (1, 9)]:
            given = {"x": random_input(n, 1, m)}
            assert_close(program.run(given)["y"], run(model, given)[0])
    assert len(compiled.cache) <= 6  # lengths of a single row share one


def shapes_of_sum() -> ModelProto:
    """x + z of open sizes of different names, and the shapes of both."""
    nodes = [node("Add", "x z"), node("Shape", "x", "s"), node("Shape", "z", "t")]
    return make_model(nodes, {"x": ["n"], "z": ["m"]}, outputs=["y", "s", "t"])


TAKEN = {
    "a sum": (shapes_of_sum(), r"\(Add\) .*: the sizes m and n are taken for equal"),
    "a sum of many": (
        make_model(
            [node("Concat", "x x", "xx", axis=0), node("Concat", "z z z", "zzz", axis=0),
             node("Mul", "xx zzz")],
            {"x": ["n"], "z": ["m"]},
        ),
        r"\(Mul\) .*: the sizes .*\b2\*n",
    ),
    "a batch of matrices": (
        make_model([node("MatMul", "x z")], {"x": ["a", "n", "k"], "z": ["b", "k", 3]}),
        r"\(MatMul\) .*: the sizes b and a are taken for equal",
    ),
    "a size and a number": (
        make_model([node("Add", "x z")], {"x": ["n"], "z": [4]}), "the sizes n and 4 are taken"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", deep_but(["a sum", "a size and a number"], TAKEN))
def test_what_is_written_for_equal_sizes_says_so(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, reason = TAKEN[name]
    source, output = tmp_path / "model.onnx", tmp_path / "out.onnx"
    with pytest.warns(EqualSizesWarning, match=reason):
        program = satura.optimize(model)
    for each in (program, satura.load(model), satura.compile(model, threads=1).program):
        with pytest.warns(EqualSizesWarning, match=f"{reason}.*the saved model is for equal sizes"):
            satura.save(each, output)
    with pytest.warns(EqualSizesWarning, match=reason):
        satura.optimize(satura.load(model))
    source.write_bytes(model.SerializeToString())
    assert cli("optimize", source, output) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(f"warning: .*{reason}.*for equal sizes only", line)


def if_size(axis: int, number: int, then: NodeProto, other: NodeProto) -> ModelProto:
    """A model with one of two nodes that read x, f32[b, k], as one extent is a number or not."""
    branches = {}
    for name, each in (("then_branch", then), ("else_branch", other)):
        result = helper.make_tensor_value_info(each.output[0], F32, None)
        branches[name] = helper.make_graph([each], name, [], [result])
    nodes = [
        node("Shape", "x", "s", start=axis, end=axis + 1), node("Equal", "s number", "c"),
        node("If", "c", "z", **branches), node("ReduceSum", "z", keepdims=0),
    ]  # fmt: skip
    weights = {f"w{rows}": np.ones((rows, 3), np.float32) for rows in (4, 8)}
    constants = {"number": [number], "first": [0], **weights}
    return make_model(nodes, {"x": ["b", "k"]}, constants)


ONE_NUMBER = {
    "one row": (
        if_size(0, 1, node("Squeeze", "x first", "p"), node("Identity", "x", "q")), "b"
    ),
    "four columns": (
        if_size(1, 4, node("MatMul", "x w4", "p"), node("MatMul", "x w8", "q")), "k"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_what_runs_at_one_number_of_a_size_is_written_for_all(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, size = ONE_NUMBER[name]
    source, output = tmp_path / "model.onnx", tmp_path / "out.onnx"
    source.write_bytes(model.SerializeToString())
    assert cli("optimize", source, output, "--dim", f"{size}=9") == 0
    assert not capsys.readouterr().err
    compiled, saved = satura.compile(model, threads=1), onnx.load(output)
    for b, k in ((1, 4), (3, 4), (3, 8)):
        x = random_input(b, k, seed=b)
        (expected,) = run(model, {"x": x})
        assert_close(compiled.run({"x": x})["y"], expected, 1e-5)
        assert_close(run(saved, {"x": x})[0], expected, 1e-5)


def test_a_loaded_program_that_is_written_for_some_sizes_says_so(tmp_path: Path) -> None:
    """It has one of the branches."""
    reason = r"\(If\) .*: the size .* is fixed at 0, and the saved model is for this size only"
    with pytest.warns(EqualSizesWarning, match=reason):
        satura.save(satura.load(ONE_NUMBER["one row"][0]), tmp_path / "out.onnx")


@pytest.mark.filterwarnings("error")
def test_what_runs_at_all_sizes_of_its_model_says_nothing(tmp_path: Path) -> None:
    """Compiled models, and nodes that no runtime runs at other sizes."""
    compiled = satura.compile(shapes_of_sum(), threads=1)
    x, z = np.ones(4, np.float32), np.ones(1, np.float32)
    assert [each.tolist() for each in compiled(x, z)] == [[2, 2, 2, 2], [4], [1]]
    strict = [
        make_model([node("MatMul", "x z")], {"x": ["n", "k"], "z": ["l", 3]}),
        make_model([node("Concat", "x z", axis=1)], {"x": ["n", 2], "z": ["m", 3]}),
        make_model([node("Reshape", "x six")], {"x": ["n", "m"]}, {"six": [2, 3]}),
        make_model([node("Add", "x z")], {"x": ["n", "m"], "z": ["m"]}),
    ]
    for model in strict:
        satura.save(satura.optimize(model), tmp_path / "out.onnx")


@pytest.mark.deep
def test_what_divides_by_zero_at_large_sizes_runs_at_small_ones() -> None:
    """Loops are put in the order that is best at sizes of 2**20, which no call has to have."""
    grid = np.full((3, 3, 4, 2), 0.25, np.float32)
    nodes = [node("GridSample", "x grid", "t"), node("Reshape", "t shape")]
    shape = np.array([54, 1, -1, 2])
    model = make_model(nodes, {"x": [3, "m", 2, 2]}, {"grid": grid, "shape": shape})
    compiled = satura.compile(model, threads=1)
    for m in (3, 6):
        x = random_input(3, m, 2, 2, seed=m)
        assert_close(compiled.run({"x": x})["y"], run(model, {"x": x})[0], 1e-5)
