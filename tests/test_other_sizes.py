"""Sizes that a program is not made for: others run them, in which all other sizes stay open."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import satura
from satura.rewrite.errors import CallError
from tests.onnx_models import F32, I64, Inputs, Shape, Typed, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.open_rows import _drawn, of_rows
from tests.tiers import deep_but

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
