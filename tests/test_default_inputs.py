"""Inputs with an initializer, their default: constants, but where a call is to give them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import satura
from satura.artifact.opened import Opened
from satura.pipeline.compiled import Compiled
from satura.rewrite.errors import CallError
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.types.tensor_type import Array
from tests.command_line import cli
from tests.onnx_models import make_model, node, random_input

X, W, OTHER = (random_input(3, seed=seed) for seed in range(3))


def the_model(ir_version: int = 8) -> ModelProto:
    """x + w + c, where w is an input with a default, and c a constant."""
    nodes = [node("Add", "x w", "a"), node("Add", "a c")]
    made = make_model(nodes, {"x": (3,), "w": (3,)}, {"w": W, "c": X})
    made.ir_version = ir_version
    return made


def given(compiled: Compiled | Opened) -> Array:
    return compiled.run({"x": X, "w": OTHER})["y"]


@pytest.mark.parametrize("ir_version", [3, 8])
def test_inputs_that_are_named_are_given_by_each_call(ir_version: int) -> None:
    model = the_model(ir_version)
    assert list(satura.compile(model, threads=1).inputs) == ["x"]
    compiled = satura.compile(model, threads=1, inputs=["w", "x"], verify=True)
    assert list(compiled.inputs) == ["x", "w"]
    assert np.array_equal(given(compiled), X + OTHER + X)
    with pytest.raises(CallError, match=r"input 'w' .* is missing"):
        compiled.run({"x": X})


def test_files_are_remembered_by_the_inputs_too(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(the_model(), path)
    for _ in range(2):
        assert list(satura.compile(path, threads=1).inputs) == ["x"]
        open_ = satura.compile(path, threads=1, inputs=["w"])
        assert np.array_equal(given(open_), X + OTHER + X)
    assert open_.is_remembered
    open_.save(tmp_path / "model.satura")
    assert np.array_equal(given(satura.open(tmp_path / "model.satura")), X + OTHER + X)


def test_other_verbs_take_them() -> None:
    model, arguments = the_model(), {"x": X, "w": OTHER}
    for program in (satura.load(model, inputs=["w"]), satura.optimize(model, inputs=["w"])):
        assert np.array_equal(satura.interpret(program, arguments)["y"], X + OTHER + X)
    assert [value.name for value in to_model(program).graph.input] == ["x", "w"]
    assert np.array_equal(satura.interpret(model, arguments)["y"], X + OTHER + X)
    assert np.array_equal(satura.interpret(model, {"x": X})["y"], X + W + X)


def test_names_that_cannot_be_inputs_are_refused() -> None:
    model = the_model()
    with pytest.raises(CallError, match=r"'c' .* list it among the graph's inputs"):
        satura.compile(model, inputs=["c"])
    with pytest.raises(CallError, match=r"'z' .* none of the inputs \['x', 'w'\]"):
        satura.compile(model, inputs=["z"])
    with pytest.raises(CallError, match=r"names in a list.* not 'w'"):
        satura.compile(model, inputs="w")
    with pytest.raises(CallError, match="name others when you load it"):
        satura.compile(satura.load(model), inputs=["w"])


def test_the_command_line_takes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "out"
    onnx.save(the_model(), path)
    for name, array in (("x", X), ("w", OTHER)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [f"--input={name}={tmp_path / name}.npy" for name in ("x", "w")]
    assert cli("run", path, *files, "--verify", "--output", out.with_suffix(".npz")) == 0
    assert np.array_equal(np.load(out.with_suffix(".npz"))["y"], X + OTHER + X)
    assert cli("compile", path, "--input", "w", "-o", out) == 0
    assert list(satura.open(out).inputs) == ["x", "w"]
    assert cli("optimize", path, out.with_suffix(".onnx"), "--input", "w") == 0
    assert len(onnx.load(out.with_suffix(".onnx")).graph.input) == 2
    assert cli("compile", path, "--input", "z", "-o", out) == 2
    assert "'z' cannot stay an input" in capsys.readouterr().err
