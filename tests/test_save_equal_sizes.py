"""Saved models that are for equal sizes, or one number of a size, say so, and no others do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, helper

import satura
from satura.rewrite.errors import EqualSizesWarning
from tests.command_line import cli
from tests.onnx_models import F32, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but


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
