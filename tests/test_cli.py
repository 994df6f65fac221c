"""The command line: what it prints, writes and answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import satura
from satura import __version__
from satura.backend.jit.cache import default_cache
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import Array, DType
from satura.rules import DEFAULT
from tests.command_files import RULES
from tests.command_files import model as model
from tests.command_files import settles_at_once as settles_at_once
from tests.command_files import value as value
from tests.command_line import cli
from tests.onnx_models import make_model, node

STATISTICS = [
    "dispatch-count", "executable-count", "fill-count", "copy-count", "host-count", "moved-bytes",
    "transient-memory-size", "constant-count", "constant-size", "flops", "redundant-flops",
    "predicted-us",
]  # fmt: skip


def in_own_process(*arguments: object) -> str:
    """What `python -m satura arguments…` prints."""
    root = Path(__file__).parent.parent
    result = subprocess.run(
        [sys.executable, "-m", "satura", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(root)}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return result.stdout


def test_the_module_of_the_command_line_runs_it() -> None:
    root = Path(__file__).parent.parent
    result = subprocess.run(
        [sys.executable, "-m", "satura.commands.cli", "check", "no_such_file.py"],
        env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 2 and "no_such_file.py" in result.stderr


def test_run_reads_and_writes_npz(model: Path, value: Array, tmp_path: Path) -> None:
    given, found = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, allow_pickle=False, x=value)
    assert cli("run", model, "--inputs", given, "--output", found) == 0
    with np.load(found) as archive:
        assert archive.files == ["y"]
        np.testing.assert_array_equal(archive["y"], np.maximum(value, 0) + 1)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (["--size", "rows=5"], 5),
        (["--dim", "rows=7"], 7),
        (["--dim", "rows=4:9"], 6),
        (["--dim", "rows=7", "--size", "rows=5"], 5),
    ],
)
def test_run_draws_inputs_of_the_sizes_asked_for(
    options: list[str], rows: int, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("run", model, *options, "--json") == 0
    assert json.loads(capsys.readouterr().out)["y"]["shape"] == [rows, 3]


def test_run_verifies_every_stage(model: Path) -> None:
    assert cli("run", model, "--verify", "--threads", "1") == 0


@pytest.mark.usefixtures("settles_at_once")
def test_optimize_writes_a_valid_model(
    model: Path, value: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import onnxruntime

    output = tmp_path / "faster.onnx"
    assert cli("optimize", model, output, "--time", "--threads", "1") == 0
    sizes, timed = capsys.readouterr().out.splitlines()[-2:]
    assert "rows=16" in sizes and "1 thread," in timed
    _, _, share = re.findall(r"([0-9.]+) (?:ms|of the time)", timed)
    low, high = map(float, re.findall(r"\(([0-9.]+) to ([0-9.]+)", timed)[0])
    assert low <= float(share) <= high
    if (low < 0.99 and high > 1.01) or low > 1.01 or high < 0.99:  # as shown, it is rounded
        assert ("not settled" in timed) is (low < 1 < high)
    optimized = onnx.load(output)
    onnx.checker.check_model(optimized)
    assert "Transpose" not in [node.op_type for node in optimized.graph.node]
    session = onnxruntime.InferenceSession(output)
    np.testing.assert_array_equal(session.run(None, {"x": value})[0], np.maximum(value, 0) + 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["faster.onnx", "model.onnx"]


def test_models_that_need_no_kernel_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    constant, empty = Builder(), Builder()
    ones = constant.constant(np.ones((2, 2), np.float32))
    nothing = empty.input("x", DType.F32, (0, 4))
    programs = [
        constant.program({"y": constant.unary("neg", ones)}),
        empty.program({"y": empty.unary("neg", nothing)}),
    ]
    for program, shape in zip(programs, ([2, 2], [0, 4]), strict=True):
        satura.save(program, tmp_path / "trivial.onnx")
        assert cli("run", tmp_path / "trivial.onnx", "--verify", "--json") == 0
        assert json.loads(capsys.readouterr().out)["y"]["shape"] == shape
        assert cli("stats", tmp_path / "trivial.onnx", "--json") == 0
        assert json.loads(capsys.readouterr().out)["executables"] == []


def test_stats_has_every_key(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    assert cli("stats", model, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["before", "after", "executables", "phases", "rules", "parts"]
    (part,) = found.pop("parts")
    assert part == {**found, "hosts": []}
    assert found["rules"]["stopped"] == "saturated"
    assert found["rules"]["dropped"] == []
    assert list(found["before"]) == list(found["after"]) == STATISTICS
    assert len(found["executables"]) == found["after"]["executable-count"]
    assert list(found["phases"]) == ["load", "recall", "saturate", "extract", "kernels"]
    assert all(seconds >= 0 for seconds in found["phases"].values())
    assert not found["rules"]["remembered"]
    assert cli("stats", model, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["phases"]) == ["load", "recall", "kernels"]
    assert found["rules"]["remembered"]
    assert found["after"]["dispatch-count"] == 1
    assert found["after"]["fill-count"] == found["after"]["copy-count"] == 0


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_stats_of_parts_are_listed_below_their_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = make_model([node("NonZero", "x", "i"), node("Neg", "i")], {"x": ["n"]})
    onnx.save(found, path := tmp_path / "model.onnx")
    assert cli("stats", path, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    parts = whole.pop("parts")
    assert [each.pop("hosts") for each in parts] == [["NonZero 'i'"], []]
    assert [list(each) for each in parts] == [list(whole)] * 2
    for when in ("before", "after"):
        sums = {key: sum(each[when][key] for each in parts) for key in STATISTICS}
        assert whole[when] == {**sums, "host-count": 1}
    counts = [each["dispatch-count"] for each in whole["executables"]]
    assert sum(counts) == whole["after"]["dispatch-count"]
    assert whole["rules"]["stopped"] == "saturated"


def test_stats_table_names_every_statistic(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("stats", model) == 0
    printed = capsys.readouterr().out
    assert re.search(r"model.onnx on \d+ threads?\s", printed)
    assert all(key in printed for key in STATISTICS)


@pytest.fixture
def rule_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(RULES)
    return path


@pytest.mark.deep
def test_rules_of_a_file_take_part(
    model: Path, value: Array, rule_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "faster.onnx"
    assert cli("optimize", model, output, "--with", rule_file) == 0
    assert "Relu" not in [node.op_type for node in onnx.load(output).graph.node]
    captured = capfd.readouterr()
    assert captured.out.startswith(str(output))
    assert f"satura: warning: rule 'break_transpose' ({rule_file.resolve()}:" in captured.err
    np.savez(tmp_path / "in.npz", x=value)
    arguments = ["--inputs", tmp_path / "in.npz", "--output", tmp_path / "out.npz"]
    assert cli("run", model, *arguments, "--with", rule_file) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], value + 1)


@pytest.mark.deep
def test_stats_list_dropped_rules(
    model: Path, rule_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the file prints is not a result."""
    rule_file.write_text(f"{RULES}\nimport os\nprint('hello')\nos.write(1, b'good day')\n")
    assert cli("stats", model, "--with", rule_file, "--json") == 0
    captured = capfd.readouterr()
    (dropped,) = json.loads(captured.out)["rules"]["dropped"]
    assert dropped["name"] == "break_transpose"
    assert "no such permutation" in dropped["reason"]
    assert "hello" in captured.err and "good day" in captured.err


@pytest.mark.deep
def test_the_worth_of_rules_of_a_file(
    model: Path, rule_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_file = ["--with", rule_file, "--json"]
    assert cli("rules", "none", "--worth", model, *with_file) == 0
    gains = {row["law"]: row for row in json.loads(capsys.readouterr().out)}
    assert gains["drop_relu"]["matched"] and gains["drop_relu"]["rules"] == "none, mine.py"
    assert cli("experiment", model, "--rules", "none", *with_file) == 0
    (trial,) = json.loads(capsys.readouterr().out)
    assert trial["rules"] == "none, mine.py"
    assert cli("explain", model, "--rules", "none", *with_file) == 0
    assert json.loads(capsys.readouterr().out)[0]["node"].startswith("%0 = input()")


def test_rules_lists_laws(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("rules", "--json") == 0
    rules = json.loads(capsys.readouterr().out)
    assert {"compose_transposes"} <= {rule["name"] for rule in rules}
    assert all(rule["law"] for rule in rules)
    assert {rule["verdict"] for rule in rules} <= {"proved", "tested"}
    assert all(rule["verdict"] == "proved" or rule["reason"] for rule in rules)
    defined = next(rule for rule in rules if rule["name"] == "compose_transposes")
    assert defined["file"] == "rules/transpose.py"
    assert defined["line"] == DEFAULT["compose_transposes"].line
    assert cli("rules") == 0
    assert f"rules/transpose.py:{defined['line']}" in capsys.readouterr().out
    assert cli("rules", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert cli("rules", "exact", "--json") == 0
    assert all(rule["exact"] for rule in json.loads(capsys.readouterr().out))


def test_ops_lists_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("ops", "--json") == 0
    assert {"conv", "transpose"} <= {op["name"] for op in json.loads(capsys.readouterr().out)}
    assert cli("ops") == 0
    listed = capsys.readouterr().out
    assert "matmul" in listed
    assert "integer to integer keeps the low bits." in listed  # whole sentences


@pytest.mark.deep
def test_cache_is_shown_and_cleared(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    in_own_process("run", model)  # this process may hold the kernels already
    assert cli("cache", "show", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["folder"] == str(tmp_path / "cache")
    assert shown["kernels"]["entries"] >= 1 and shown["kernels"]["size"] > 0
    assert shown["schedules"]["entries"] == 1 and shown["schedules"]["size"] > 0
    assert shown["rates"]["entries"] == 0
    default_cache("rates").store("0" * 64, b"rates")
    assert cli("cache", "clear", "--json") == 0
    removed = json.loads(capsys.readouterr().out)
    assert removed["folder"] == shown["folder"] and removed["schedules"] == 1
    assert cli("cache", "show", "--json") == 0
    cleared = json.loads(capsys.readouterr().out)
    assert cleared["kernels"]["entries"] == cleared["schedules"]["entries"] == 0
    assert cleared["rates"]["entries"] == 1 and cleared["rates"]["size"] > 5
    assert cli("cache", "show") == 0
    assert "\n1 set of calibrated rates, " in capsys.readouterr().out


def test_what_is_logged_is_one_line_of_the_command(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (shared := tmp_path / "shared").mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("SATURA_CACHE", str(shared))
    assert cli("stats", model) == 0
    err = capsys.readouterr().err
    assert err.startswith(f"satura: warning: cache {shared} is not used") and err.count("\n") == 1


def test_run_says_the_sizes_of_its_random_inputs(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("run", model, "--threads", "1") == 0
    assert "model.onnx at rows=16 (see --size)" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("--version") == 0
    assert capsys.readouterr().out == f"satura {__version__}\n"


@pytest.mark.parametrize(
    "command", ["demo", "run", "optimize", "stats", "bench", "check", "rules", "ops", "cache"]
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(command, "--help") == 0
    assert "Usage:" in capsys.readouterr().out


def test_light_models_are_taken_wherever_models_are(
    monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("satura.light.light", lambda name: onnx.load(model))
    output = tmp_path / "out"
    for command in (["run"], ["stats"], ["compile", "-o", output], ["show"]):
        assert cli(*command, "light_resnet50", "--threads", "1") == 0
    assert cli("optimize", "light_resnet50", tmp_path / "out.onnx") == 0
    assert "outputs of light_resnet50 at rows=16" in capsys.readouterr().out


def test_python_m_satura() -> None:
    assert in_own_process("--version") == f"satura {__version__}\n"


@pytest.mark.deep
def test_demo_agrees_with_the_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("demo", "--json", "--threads", "2") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] and 0 < found["error"] <= 1e-4
    assert found["threads"] == 2 and set(found["seconds"]) == {"before", "after"}
    assert list(found["before"]) == STATISTICS
