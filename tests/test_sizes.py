"""Typical sizes: what costs are computed for, and never what is allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import satura
from satura.experiments import CostModel, Features
from satura.pipeline.inputs import parse_sizes, random_inputs, random_inputs_of
from satura.pipeline.sizes import parse_dims, typical_sizes
from satura.rewrite.errors import CallError
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from tests.command_line import cli
from tests.onnx_models import Inputs, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run


def doubled() -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (symbol("batch"), symbol("seq")))
    return build.program({"y": build.binary("add", x, x)})


def test_ranges_count_by_their_geometric_mean() -> None:
    assert typical_sizes(doubled(), {"batch": 3, "seq": (2, 512)}) == {"batch": 3, "seq": 32}
    assert typical_sizes(doubled(), {"seq": (0, 256)}) == {"seq": 16}, "0 counts as 1"
    assert typical_sizes(doubled(), None) == {}


def test_a_size_that_others_decide_may_be_given_where_it_is_theirs() -> None:
    joined = [node("Concat", "x x", "z", axis=0), node("Add", "z bias", "y")]
    model = make_model(joined, {"x": ["past"], "bias": ["total"]})
    program = satura.load(model)
    assert program.symbols == {"past"}
    found, full = random_inputs_of(model, program.input_types, {"total": 14, "past": 7})
    assert {name: each.shape for name, each in found.items()} == {"x": (7,), "bias": (14,)}
    assert full == {"past": 7}
    found, _ = random_inputs_of(model, program.input_types, {"total": 8, "past": 7})
    with pytest.raises(CallError, match=r"'bias': axis 0 must be .*past.*, which is 14 .*, not 8"):
        satura.compile(model, threads=1).run(found)
    with pytest.raises(CallError, match="there is no size 'n' in the model; its sizes are"):
        random_inputs_of(model, program.input_types, {"n": 8})


@pytest.mark.parametrize(
    ("sizes", "extents"),
    [
        ({}, (16, 16)), ({"n": 3}, (3, 3)), ({"m": 3}, (3, 3)), ({"n": 3, "m": 3}, (3, 3)),
        ({"n": 3, "m": 1}, (3, 1)), ({"n": 1, "m": 3}, (1, 3)),
    ],
)  # fmt: skip
def test_sizes_that_the_usual_program_excludes_run_on_the_command_line(
    sizes: dict[str, int], extents: tuple[int, int], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    model = make_model([node("Add", "a b", "y")], {"a": ["n"], "b": ["m"]})
    found, _ = random_inputs_of(model, satura.load(model).input_types, sizes)
    assert (found["a"].size, found["b"].size) == extents
    onnx.save(model, path := tmp_path / "two.onnx")
    given = (f"--size={name}={size}" for name, size in sizes.items())
    assert cli("run", path, "--threads=1", "--json", *given) == 0
    assert json.loads(capsys.readouterr().out)["y"]["shape"] == [max(extents)]


def test_a_number_that_sizes_decide_is_no_fixed_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    split = [node("SplitToSequence", "x", "s", axis=0)]
    model = make_model([*split, node("ConcatFromSequence", "s", "y", axis=1)], {"x": ["n", 4]})
    onnx.save(model, path := tmp_path / "split.onnx")
    assert cli("run", path, "--threads=1", "--size=n=2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["y"]["shape"] == [1, 8]


def test_a_program_for_a_file_is_chosen_at_typical_sizes() -> None:
    model = make_model([node("Relu", "x", "r"), node("Exp", "r", "y")], {"x": ["n", 64]})
    most: dict[int, float] = {}

    class Bytes(CostModel):
        def seconds(self, features: Features) -> float:
            moved = features.near + features.far
            most[rows] = max(most.get(rows, 0.0), moved)
            return moved / 1e9

    for rows in (1, 4096):
        assert satura.optimize(model, dims={"n": rows}, cost=Bytes())
    assert most[4096] > 1000 * most[1] > 0
    with pytest.raises(CallError, match="there is no size 'm' in the model; its sizes are"):
        satura.optimize(model, dims={"m": 1})


def test_a_size_of_a_model_without_sizes_is_said_to_be_fixed() -> None:
    program = satura.load(make_model([node("Relu")], {"x": (2, 3)}))
    reason = "no size 'n' in the model: all of its sizes are fixed$"
    with pytest.raises(CallError, match=reason):
        random_inputs(program, {"n": 8})
    with pytest.raises(CallError, match=reason):
        satura.compile(program, threads=1, dims={"n": 8})


def test_an_axis_that_others_decide_is_refused_with_its_value() -> None:
    build = Builder()
    mask = build.input("mask", DType.F32, (symbol("past") + symbol("new"),))
    given = [build.input(name, DType.F32, (symbol(name),)) for name in ("past", "new")]
    program = build.program({"y": mask, "z": given[0], "u": given[1]})
    sizes = {"mask": 47, "past": 16, "new": 32}
    arrays = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
    meant = r"'mask': axis 0 must be new\+past, which is 48 \(new=32, past=16\), not 47$"
    with pytest.raises(CallError, match=meant):
        satura.interpret(program, arrays)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"length": 3}, r"no size 'length' in the model; its sizes are \['batch', 'seq'\]"),
        ({"seq": 0}, r"size of 'seq' is 0; such sizes are from 1 to 2\*\*48$"),
        (
            {"seq": (5, 2)},
            r"is \(5, 2\); such sizes are from 1 to 2\*\*48, ranges from 0, the lower",
        ),
        ({"seq": (0, 0)}, r"is \(0, 0\); such sizes are from 1 to 2\*\*48"),
        ({"seq": (-1, 4)}, r"is \(-1, 4\); such sizes are from 1 to 2\*\*48"),
        ({"seq": (1, 2, 3)}, "must be a size or a range"),
        ({"seq": "12"}, "must be a size or a range"),
        ({"seq": True}, "must be a size or a range"),
        ({"seq": (1, 2.5)}, "must be a size or a range"),
    ],
)
def test_what_is_no_size_is_one_clear_error(dims: dict[str, int], message: str) -> None:
    with pytest.raises(CallError, match=message):
        satura.compile(doubled(), dims=dims)


def test_texts_are_read() -> None:
    assert parse_dims(["batch=1,seq=2:512"]) == {"batch": 1, "seq": (2, 512)}
    assert parse_sizes(["batch=1,seq=2", "n=3"]) == {"batch": 1, "seq": 2, "n": 3}
    assert parse_dims(["batch=1", "seq=2:512"]) == {"batch": 1, "seq": (2, 512)}
    for wrong in ("seq", "seq=", "=3", "seq=a", "seq=1:", "seq=:2", "seq=1:b", "seq=-1"):
        with pytest.raises(CallError, match="a size is NAME=N or NAME=LOW:HIGH"):
            parse_dims([wrong])


def test_sizes_are_remembered_apart_and_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    first = satura.compile(doubled(), dims={"seq": (10, 1000)})
    assert not satura.compile(doubled(), dims={"seq": 7}).is_remembered
    assert satura.compile(doubled(), dims={"seq": 100}).is_remembered  # the mean of the first
    for shape in ((1, 5), (3, 2000), (2, 100)):
        x = np.ones(shape, np.float32)
        np.testing.assert_array_equal(first(x), 2 * x)


def waveform() -> ModelProto:
    """Strided convolutions, which 64 samples are too few for."""
    nodes = [node("Conv", "x w", "a", strides=[5]), node("Conv", "a v", "b", strides=[4])]
    nodes += [node("Conv", "b v", "c", strides=[4]), node("Conv", "c v", strides=[4])]
    weights = {"w": np.ones((2, 1, 10), np.float32), "v": np.ones((2, 2, 3), np.float32)}
    return make_model(nodes, {"x": ["batch", 1, "samples"]}, weights)


def batch_in_groups() -> ModelProto:
    """Weights for each element of a batch, as StyleGAN has them: their number is that of groups."""
    nodes = [node("Reshape", "x flat", "a"), node("Reshape", "w many", "v")]
    nodes += [node("Conv", "a v", "c", group=2), node("Reshape", "c apart")]
    shapes = {"flat": [1, -1, 8, 8], "many": [-1, 4, 3, 3], "apart": [2, 4, 6, 6]}
    inputs: Inputs = {"x": ["batch", 4, 8, 8], "w": ["batch", 4, 4, 3, 3]}
    return make_model(nodes, inputs, {name: np.array(dims) for name, dims in shapes.items()})


@pytest.mark.parametrize(
    ("model", "dims", "expected"),
    [
        (waveform(), None, {"batch": 64, "samples": 256}),
        (waveform(), {"batch": 1}, {"batch": 1, "samples": 256}),
        (waveform(), {"samples": 16_000}, {"batch": 64, "samples": 16_000}),
        (batch_in_groups(), None, {}),
    ],
)
def test_typical_sizes_are_such_that_the_model_runs(
    model: ModelProto, dims: Mapping[str, int] | None, expected: dict[str, int]
) -> None:
    """Costs and statistics are for the same ones."""
    compiled = satura.compile(model, threads=1, dims=dims)
    assert compiled.rewritten.typical == expected
    others = {name: size for name, size in expected.items() if size != 64}
    assert typical_sizes(compiled.source, dims) == others
    assert compiled.statistics["flops"] > 0


def test_what_runs_at_no_typical_size_says_so() -> None:
    compiled = satura.compile(waveform(), threads=1, dims={"samples": 100, "batch": 1})
    with pytest.raises(
        CallError, match=r"where batch = 1, samples = 100, .* give typical ones, as"
    ):
        _ = compiled.statistics
    assert compiled.run({"x": np.ones((1, 1, 600), np.float32)})["y"].shape[:2] == (1, 2)


def test_saved_groups_are_for_the_batch_that_they_are_for(tmp_path: Path) -> None:
    model, path = batch_in_groups(), tmp_path / "out.onnx"
    satura.save(satura.optimize(model), path)
    given = {"x": random_input(2, 4, 8, 8), "w": random_input(2, 4, 4, 3, 3)}
    assert_close(run(onnx.load(path), given)[0], run(model, given)[0], 1e-5)
