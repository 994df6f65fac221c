"""Profiles: what is launched is counted where it runs, and compared with the schedule."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import satura
from benchmarks.models import build
from satura.backend.plan.measure import traffic
from satura.commands.cli import app
from satura.experiments.profile import DispatchProfile, Profile, Roofline, profile
from satura.pipeline.inputs import random_inputs
from satura.rewrite.extract.extract import extract
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType
from tests.random_programs import random_program
from tests.test_extract import unrewritten
from tests.tiers import deep_but


def counted(build: Builder, results: dict[str, int]) -> tuple[int, int, int]:
    compiled = satura.compile(build.program(results), 1, rules="none")
    found = compiled.measure(random_inputs(compiled.source), 1)
    counts = compiled.statistics
    expected = tuple(counts[f"{key}-count"] for key in ("dispatch", "fill", "copy"))
    assert (found.launches, found.fills, found.copies) == expected
    assert len(found.seconds) == found.launches and min(found.seconds.values()) > 0
    return expected[0], expected[1], expected[2]


def test_copies_and_fills_are_counted() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (8, 8))
    filled = build.binary("add", build.iota((4,), 0, DType.F32), build.iota((4,), 0, DType.F32))
    results = {"y": build.transpose(x, (1, 0)), "z": build.unary("neg", x), "w": filled}
    launches, _, copies = counted(build, results)
    assert launches >= 2 and copies == 1


def test_choosing_between_data_is_work_and_padding_is_not() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (8, 8))
    y = build.input("y", DType.F32, (8, 8))
    chosen = build.select(build.binary("lt", x, y), x, y)
    (work,) = extract(unrewritten(build.program({"y": chosen}))).dispatches
    schedule = extract(unrewritten(build.program({"y": chosen})))
    assert traffic(schedule, work) == "work"
    padded = extract(unrewritten(build.program({"y": build.pad(x, (1, 1), (1, 1), 0.0)})))
    assert traffic(padded, padded.dispatches[0]) == "copy"
    gathered = build.gather(x, build.constant(np.array([3, 1, 6])), 1)
    known = extract(unrewritten(build.program({"y": gathered})))
    assert traffic(known, known.dispatches[0]) == "work" and not known.is_copy(known.dispatches[0])


@pytest.mark.parametrize("seed", deep_but((), range(6)))
def test_random_programs_launch_what_was_counted(seed: int) -> None:
    program, arguments, _ = random_program(seed)
    compiled = satura.compile(program, 1, rules="none")
    found = profile(compiled, arguments, 1)
    copies, expected = (each["copy-count"] for each in (found.counted, found.expected))
    assert copies >= expected  # a gather at places that are known turns out to be one
    assert found.counted == {**found.expected, "copy-count": copies}


@pytest.mark.deep
def test_a_profile_says_what_was_predicted() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (64, 64))
    program = build.program({"y": build.unary("exp", x)})
    found = profile(satura.compile(program, 1), {"x": np.ones((64, 64), np.float32)}, 2)
    (dispatch,) = found.dispatches
    assert dispatch.flops == 64 * 64 * 10 and dispatch.bytes == 64 * 64 * 8
    assert found.counted == found.expected


def rows(*pairs: tuple[float, float]) -> Profile:
    made = tuple(
        DispatchProfile(i, "loop", "", predicted, seconds, 0, 0, 0)
        for i, (predicted, seconds) in enumerate(pairs)
    )
    return Profile(made, {}, {}, Roofline(1, 1, 1))


def test_what_stores_no_elements_is_expected_not_to_run() -> None:
    build = Builder()
    x, none = build.input("x", DType.F32, (8, 8)), build.input("none", DType.F32, (0, 8))
    results = {"y": build.unary("exp", x), "z": build.unary("neg", none)}
    compiled = satura.compile(build.program(results), 1)
    found = profile(compiled, random_inputs(compiled.source), 1)
    assert found.counted == found.expected and found.counted["dispatch-count"] == 1


def test_errors_and_ranks() -> None:
    found = rows((1, 2), (3, 4), (9, 6))
    assert found.errors == {"loop": 0.5}
    assert found.spearman == pytest.approx(1)
    assert rows((1, 2), (2, 1)).spearman == pytest.approx(-1)
    assert rows((1, 2)).spearman == rows((1, 2), (1, 3)).spearman == 1


def test_dispatches_that_are_predicted_alike_have_one_rank() -> None:
    """In whatever order they are; a noise of the times among them costs little."""
    found = [rows((1, a), (1, b), (2, c)).spearman for a, b, c in ((1, 2, 3), (2, 1, 3), (1, 3, 2))]
    assert found == pytest.approx([0.75**0.5, 0.75**0.5, 0])


def test_the_share_is_that_of_the_tighter_limit() -> None:
    limits = Roofline(peak=100.0, bandwidth=10.0, cached=50.0)
    large = 1e9
    assert limits.share(0, large, large / 10) == pytest.approx(1)
    assert limits.share(200, 50, 4) == pytest.approx(0.5)


@pytest.mark.deep
def test_the_command_prints_a_profile(tmp_path: Path) -> None:
    path = str(tmp_path / "model.onnx")
    onnx.save(build("tiny_rope"), path)
    options = ["bench", path, "--profile", "--rounds", "1", "--threads", "1"]
    done = CliRunner().invoke(app, [*options, "--json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["models"]
    assert found["counted"] == found["expected"]
    assert len(found["dispatches"]) == found["counted"]["dispatch-count"]
    done = CliRunner().invoke(app, options)
    assert "GFLOP/s" in done.stdout and "rank correlation" in done.stdout
