"""`satura show`: every stage as text and as JSON, whole and for one node."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx
import pytest

import satura
from satura.backend.cores import usable_threads
from satura.backend.plan.records import kernel_records
from satura.commands.show import STAGES
from satura.commands.terminal import measured, progress
from satura.pipeline.api import rewritten
from satura.rewrite.egraph.records import class_records
from satura.rewrite.extract.records import dispatch_records
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.parse import parse
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT
from tests.command_line import cli, runs
from tests.onnx_models import make_model, node, random_input
from tests.tiers import deep_but

Json: TypeAlias = "dict[str, list[dict[str, object]]]"
THREADS = min(2, usable_threads())  # more than there are warn, and are not used

RULE = '''
from satura.language import Law, Tensor, rewrites, rule, unary


@rule
def relu_turned(x: Tensor) -> Law:
    """relu(x) = -(-relu(x))"""
    return rewrites(unary("relu", x), unary("neg", unary("neg", unary("relu", x))))
'''


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A convolution with a pad and a relu, channels first, in a model that is channels last."""
    layers = [
        node("Transpose", "image", "t", perm=[0, 3, 1, 2]),
        node("Pad", "t pads", "p"),
        node("Conv", "p w b", "c"),
        node("Relu", "c", "r"),
        node("Transpose", "r", "y", perm=[0, 2, 3, 1]),
    ]
    constants = {
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "w": random_input(8, 3, 3, 3),
        "b": random_input(8),
    }
    path = tmp_path / "model.onnx"
    onnx.save(make_model(layers, {"image": [1, 6, 6, 3]}, constants), path)
    return path


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """A model of symbolic size with two dispatches that share a kernel, and a third."""
    build = Builder()
    x, y = (build.input(name, DType.F32, (symbol("batch size"), 5)) for name in "xy")
    sums = [build.reduce("sum", build.unary("relu", each), (0, 1)) for each in (x, y)]
    path = tmp_path / "twins.onnx"
    outputs = {"a": sums[0], "b": sums[1], "c": build.unary("exp", build.binary("add", x, y))}
    satura.save(build.program(outputs), path)
    return path


class Shown:
    """Runs `satura show`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.run = runs("show", capsys)

    def text(self, *arguments: object) -> str:
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, "")
        return out

    def json(self, *arguments: object) -> Json:
        found: Json = json.loads(self.text(*arguments, "--json"))
        return found

    def error(self, *arguments: object) -> str:
        code, out, err = self.run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(capsys)


@pytest.mark.parametrize("name", deep_but(["twins"], ["model", "twins"]))
def test_programs_are_shown_as_text_that_is_read_back(
    name: str, request: pytest.FixtureRequest, shown: Shown
) -> None:
    path = request.getfixturevalue(name)
    program, optimised = satura.load(path), satura.compile(path).program
    assert parse(shown.text(path, "--stage", "program"), program.constants) == program
    assert parse(shown.text(path, "--stage", "extracted"), optimised.constants) == optimised


@pytest.mark.parametrize("stage", STAGES)
def test_stages_are_json(stage: str, model: Path, shown: Shown) -> None:
    found = shown.json(model, "--stage", stage)
    assert list(found) == ["stage", "outputs", STAGES[stage]]
    assert found[STAGES[stage]]


def test_the_schedule_is_the_default(model: Path, shown: Shown) -> None:
    text = shown.text(model)
    assert text == shown.text(model, "--stage", "schedule")
    assert text.startswith("dispatch 0: contraction, ")
    assert "  reads     %0 : f32[1, 6, 6, 3]\n" in text
    assert "  stores    %8 : f32[1, 6, 6, 8]\n" in text
    assert text.endswith('output "y" = %8\n')


def test_the_dispatches_are_those_that_run(twins: Path, shown: Shown) -> None:
    for options in ({}, {"cost": "reference"}, {"dims": {"batch size": 4000}}):
        schedule = satura.compile(twins, threads=THREADS, **options).rewritten.schedule
        said = ["--cost", "reference"] if "cost" in options else []
        said += ["--dim", "batch size=4000"] if "dims" in options else []
        dispatches = shown.json(twins, "--threads", THREADS, *said)["dispatches"]
        assert [each["seconds"] for each in dispatches] == [
            each.seconds for each in dispatch_records(schedule)
        ]


def test_every_dispatch_has_its_predicted_seconds(model: Path) -> None:
    schedule = satura.compile(model, threads=1, rules="none").rewritten.schedule
    seconds = [record.seconds for record in dispatch_records(schedule)]
    assert len(seconds) > 1 and min(seconds) > 0
    assert sum(seconds) == pytest.approx(schedule.seconds, rel=1e-3)


def test_parts_of_a_concat_say_where_they_lie(tmp_path: Path, shown: Shown) -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (4, 4)) for name in "xy")
    products = [build.matmul(x, y), build.matmul(y, x)]
    satura.save(build.program({"z": build.concat(products, 0)}), tmp_path / "parts.onnx")
    text = shown.text(tmp_path / "parts.onnx")
    assert " in %4 from [0, 0] on\n" in text and " in %4 from [4, 0] on\n" in text


def test_the_egraph_says_which_rule_made_what(model: Path, shown: Shown) -> None:
    text = shown.text(model, "--stage", "egraph")
    assert "conv(c3, c7) [3(1:1), 3(1:1)] fill f32(0.0) 1  # pad_into_conv, round 2" in text
    found = rewritten(model)
    classes = class_records(found.saturation)
    standing = [index for each in classes for index in each.program]
    assert sorted(standing) == list(range(len(found.source.nodes)))
    labels = {direction.label for rule in DEFAULT for direction in rule.directions}
    made = {node.rule for each in classes for node in each.nodes} - {None}
    assert made and made <= labels


@pytest.mark.deep
def test_rules_are_those_asked_for(model: Path, tmp_path: Path, shown: Shown) -> None:
    assert "transpose" not in shown.text(model, "--stage", "schedule")
    assert "# pad" not in shown.text(model, "--stage", "egraph", "--rules", "none")
    assert "transpose" in shown.text(model, "--stage", "extracted", "--rules", "none")
    (tmp_path / "mine.py").write_text(RULE)
    text = shown.text(model, "--stage", "egraph", "--with", tmp_path / "mine.py")
    assert "# relu_turned, round " in text


@pytest.mark.parametrize("name", deep_but(["model"], ["model", "twins"]))
def test_kernels_are_those_that_run(
    name: str, request: pytest.FixtureRequest, shown: Shown
) -> None:
    path = request.getfixturevalue(name)
    compiled = satura.compile(path, threads=THREADS)
    records = kernel_records(compiled.rewritten.schedule, THREADS)
    assert {each.name: len(each.dispatches) for each in records} == compiled.executables
    text = shown.text(path, "--stage", "kernels", "--threads", THREADS)
    for record in records:
        assert record.source.rstrip() in text and "def kernel(args, thread, threads):" in text
    kernels = shown.json(path, "--stage", "kernels", "--threads", THREADS)["kernels"]
    assert [each["source"] for each in kernels] == [record.source for record in records]


def test_assembly_is_that_of_the_kernel(twins: Path, shown: Shown) -> None:
    kernels = shown.json(twins, "--stage", "kernels", "--assembly")["kernels"]
    assert len(kernels) == 2
    for kernel in kernels:
        assert "\tret" in str(kernel["assembly"]) and "satura_" in str(kernel["assembly"])
    text = shown.text(twins, "--stage", "kernels", "--assembly")
    assert all(str(kernel["assembly"]) in text for kernel in kernels)


@pytest.mark.deep
def test_a_node_restricts_every_stage(model: Path, twins: Path, shown: Shown) -> None:
    line = shown.text(model, "--stage", "program", "--node", "%8")
    assert line == f"{str(satura.load(model)).splitlines()[8]}\n"
    assert shown.text(model, "--stage", "program", "--node", 8) == line
    (only,) = shown.json(model, "--stage", "egraph", "--node", 8)["classes"]
    assert only["program"] == [8]
    whole = shown.json(twins)["dispatches"]
    for index in (0, 1):
        numbers = [each["number"] for each in shown.json(twins, "--node", index)["dispatches"]]
        assert 0 < len(numbers) < len(whole)
    kernels = [shown.json(twins, "--stage", "kernels", "--node", n)["kernels"] for n in (0, 1)]
    assert [len(each) for each in kernels] == [2, 2]
    made = satura.optimize(satura.load(twins))
    exp = next(n for n, each in enumerate(made.nodes) if "exp" in str(each))
    assert len(shown.json(twins, "--stage", "kernels", "--node", exp)["kernels"]) == 1


def test_errors_are_one_line(model: Path, tmp_path: Path, shown: Shown) -> None:
    assert "there is no stage 'code'; choose from ['program', " in shown.error(
        model, "--stage", "code"
    )
    assert "there is no node %99; the last is %8" in shown.error(model, "--node", 99)
    assert "there is no node %-1" in shown.error(model, "--stage", "program", "--node=-1")
    assert "x is not the number of a node" in shown.error(
        model, "--stage", "program", "--node", "x"
    )
    assert "%1 = constant() #" in shown.error(model, "--node", 1)
    assert "is in none of the dispatches" in shown.error(model, "--node", 1)
    assert "--assembly is for --stage kernels" in shown.error(model, "--assembly")
    assert "there is no such file" in shown.error(tmp_path / "missing.onnx")


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A model that runs in two parts, with NonZero between them."""
    nodes = [node("Relu", "x", "r"), node("NonZero", "r", "i"), node("Abs", "i", "y")]
    onnx.save(make_model(nodes, {"x": ["n"]}), path := tmp_path / "places.onnx")
    return path


@pytest.mark.parametrize("stage", deep_but(["program", "schedule"], STAGES))
def test_each_part_of_a_model_is_shown(
    stage: str, places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs("show", capsys)
    code, out, err = run(places, "--stage", stage)
    assert code == 0 and "the extent of axis 1 depends on data" in err
    heads = ["# part 1 of 2", "# then NonZero 'i' runs in Python", "# part 2 of 2"]
    assert [line for line in out.splitlines() if line.startswith("#")] == heads
    code, out, err = run(places, "--stage", stage, "--json")
    first, second = json.loads(out)["parts"]
    assert [*first["outputs"], *second["outputs"]] == ["r", "y"]
    assert (first["hosts"], second["hosts"]) == (["NonZero 'i'"], [])
    assert first[STAGES[stage]] and second[STAGES[stage]]
    code, _, err = run(places, "--stage", stage, "--node", "0")
    assert code == 2 and "--node is for one program, and" in err and "runs in 2 parts" in err


@pytest.mark.parametrize("command", ["explain", "experiment"])
def test_commands_for_one_program_refuse_parts_in_a_sentence(
    command: str, places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = runs(command, capsys)(places)
    assert code == 1 and len(err.partition("; in the trials")[0].split()) < 30
    assert "depends on data; satura.compile and `satura run` run such a model in parts" in err


def test_kernels_are_shown_at_a_level_of_sharing(twins: Path, shown: Shown) -> None:
    counts = [
        len(shown.json(twins, "--stage", "kernels", "--executables", level)["kernels"])
        for level in ("none", "exact")
    ]
    assert counts == [3, 2]
    assert "executables is 'all'; choose from" in shown.error(twins, "--executables", "all")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.0012345, "0.00123"), (0.25, "0.250"), (14.94, "14.9"), (46.0, "46.0"),
     (1234.6, "1235"), (-0.5, "-0.500"), (float("inf"), "inf")],
)  # fmt: skip
def test_measures_have_three_digits_that_count(value: float, shown: str) -> None:
    assert measured(value) == shown


def test_what_takes_long_says_where_it_is_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for is_long, lines in ((True, ["calibrating: one", "calibrating: two"]), (False, [])):
        with progress("calibrating", is_long) as phase:
            for name, share in (("one", 0.1), ("one", 0.2), ("two", 0.3)):
                phase(name, share)
        assert capsys.readouterr().err.splitlines() == lines


def test_a_model_is_a_regular_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for command in (["run"], ["stats"]):
        assert cli(*command, tmp_path / "pipe") == 2
        assert "pipe is not a regular file: save the model in one" in capsys.readouterr().err
