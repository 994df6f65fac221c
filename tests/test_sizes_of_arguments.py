"""The interpreter and verification at sizes that a loaded program excludes, as a slice does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import satura
from satura.rewrite.errors import CallError
from tests.command_line import cli
from tests.onnx_models import make_model, node

MODEL = make_model(
    [node("Slice", "x starts ends axes")], {"x": ["n"]}, {"starts": [5], "ends": [100], "axes": [0]}
)


@pytest.mark.parametrize("size", [0, 3, 64, 200])
def test_a_model_is_interpreted_at_the_sizes_of_its_arguments(size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    assert np.array_equal(satura.interpret(MODEL, {"x": x})["y"], x[5:100])


def test_a_program_says_that_its_model_may_run_at_sizes_that_it_excludes() -> None:
    program = satura.load(MODEL)
    x = np.arange(200, dtype=np.float32)
    assert np.array_equal(satura.interpret(program, {"x": x})["y"], x[5:100])
    with pytest.raises(CallError, match=r"n-100 must be .* n = 64; its model may run there: sat"):
        satura.interpret(program, {"x": x[:64]})


def test_extents_that_a_program_takes_for_equal_differ_in_arguments() -> None:
    model = make_model([node("Add", "x z")], {"x": ["n", 3], "z": ["m", 3]})
    x, z = np.ones((4, 3), np.float32), np.ones((1, 3), np.float32)
    assert satura.interpret(model, {"x": x, "z": z})["y"].shape == (4, 3)
    with pytest.raises(CallError, match=r"does not run where m = 2, n = 4: .*Add"):
        satura.interpret(model, {"x": x, "z": np.ones((2, 3), np.float32)})
    with pytest.raises(CallError, match=r"input 'z' .* is missing"):
        satura.interpret(model, {"x": x})


@pytest.mark.parametrize("dims", [None, pytest.param({"n": 3}, marks=pytest.mark.deep)])
def test_what_is_verified_has_sizes_at_which_it_runs(dims: dict[str, int] | None) -> None:
    satura.compile(MODEL, threads=1, verify=True, dims=dims)


@pytest.mark.deep
def test_run_verifies_at_the_sizes_that_are_given(tmp_path: Path) -> None:
    path = tmp_path / "slice.onnx"
    onnx.save(MODEL, path)
    for options in ([], ["--size", "n=3"], ["--dim", "n=3"], ["--size", "n=200"]):
        assert cli("run", path, "--verify", "--threads", "1", *options) == 0
