"""Extents that would be negative at some sizes are refused; slices are cut so that none is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto

import satura
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.onnx.lower.slice_bounds import clamped_bounds, slice_bounds
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.clamps import largest, never_negative, smallest
from satura.rewrite.types.dims import Dim, symbol
from tests.onnx_models import make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.open_rows import of_rows
from tests.tiers import deep_but


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
