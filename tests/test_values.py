"""`--value NAME=VALUE`: inputs that decide shapes, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import satura
from satura.rewrite.errors import CallError
from tests.command_line import cli
from tests.onnx_models import Typed, make_model, node


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """The sum of [2, 3] over axes that are an input."""
    model = make_model(
        [node("ReduceSum", "x axes", keepdims=0)], {"x": (2, 3), "axes": Typed(["k"])}
    )
    path = tmp_path / "sums.onnx"
    onnx.save(model, path)
    return path


def test_values_decide_shapes(sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for axes, shape in (("1", "[2]"), ("-2", "[3]"), ("0,1", "[]"), ("[1, 0]", "[]")):
        assert cli("show", sums, "--stage", "program", "--value", f"axes={axes}") == 0
        assert f": f32{shape}\noutput" in capsys.readouterr().out
    np.save(sums.with_name("axes.npy"), np.array([0]))
    assert cli("run", sums, "--json", "--value", f"axes={sums.with_name('axes.npy')}") == 0
    assert json.loads(capsys.readouterr().out)["y"]["shape"] == [3]


def test_a_value_takes_the_place_of_a_default(
    sums: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = onnx.load(sums)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    onnx.save(model, sums)
    for options, shape in (((), "[3]"), (("--value", "axes=1"), "[2]")):
        assert cli("show", sums, "--stage", "program", *options) == 0
        assert f": f32{shape}\noutput" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((), "give it by --value NAME=VALUE"),
        (("axes",), "a value is written NAME=NUMBERS or NAME=FILE.npy"),
        (("axes=one",), "got 'one'"),
        (("axes=0.5",), "float64 is not int64"),
        (("axes=[[0]]",), "input 'axes' must be i64[k], not int64[1, 1]"),
        (("axis=0",), "there is no input 'axis'; the inputs are ['x', 'axes']"),
        (("axes=0", "axes=1"), "input 'axes' has two values: 0 and 1"),
        (("axes=missing.npy",), "missing.npy: No such file or directory"),
    ],
)
def test_values_that_are_none(
    sums: Path, values: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [text for value in values for text in ("--value", value)]
    assert cli("show", sums, "--stage", "program", *options) == (2 if values else 1)
    assert message in capsys.readouterr().err


def test_advice_is_in_the_words_of_the_caller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model([node("Reshape", "x shape")], {"x": ("n", "m"), "shape": Typed([2])})
    onnx.save(model, path := tmp_path / "reshape.onnx")
    reason = r"of them: ask for_values\(\{...\}\), or load\(model, values=\{...\}\)$"
    with pytest.raises(CallError, match=reason):
        print(satura.compile(model, threads=1).statistics)
    assert cli("stats", path) == 2
    assert capsys.readouterr().err.endswith("of them: give --value shape=...\n")


def test_values_that_were_drawn_are_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / "reshape.onnx", tmp_path / "reshape.satura"
    model = make_model([node("Reshape", "x shape")], {"x": ("n", "m"), "shape": Typed([2])})
    onnx.save(model, path)
    assert cli("run", path) == 2
    assert "shape, which decide shapes, were drawn at random: give --value shape=" in (
        capsys.readouterr().err
    )
    assert cli("run", path, "--value", "shape=4,-1") == 0
    compiled = satura.compile(model, threads=1)
    compiled.for_values({"shape": [4, -1]})
    compiled.save(saved)
    assert cli("run", saved) == 2
    assert "drawn at random: give all inputs, as by --input shape=FILE.npy" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "command",
    [
        ("why", "--choice", "1"), ("experiment", "--rules", "none"), ("rules", "none", "--worth"),
        ("explain",), ("stats",),
    ],
)  # fmt: skip
def test_commands_that_ask_for_a_value_take_it(sums: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    arguments = [name, sums, *options] if name != "rules" else [name, *options, sums]
    assert cli(*arguments, "--value", "axes=0") == 0
    assert cli(*arguments, "--value", "nope=0") == 2
