"""The command line: what it prints, writes and answers, and how it fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import satura
from satura import __version__
from satura.backend.jit.cache import default_cache
from satura.rewrite.errors import CallError
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import Array, DType
from satura.rules import DEFAULT
from tests.command_line import cli
from tests.onnx_models import make_model, node
from tests.tiers import deep_but

STATISTICS = [
    "dispatch-count", "executable-count", "fill-count", "copy-count", "host-count", "moved-bytes",
    "transient-memory-size", "constant-count", "constant-size", "flops", "redundant-flops",
    "predicted-us",
]  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """T -> relu -> T back -> + 1, on [rows, 3]: without rules two transposes stay."""
    nodes = [
        node("Transpose", "x", "t"), node("Relu", "t", "r"), node("Transpose", "r", "b"),
        node("Add", "b one"),
    ]  # fmt: skip
    found = make_model(nodes, {"x": ("rows", 3)}, {"one": np.ones(1, np.float32)})
    path = tmp_path / "model.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(found), path)
    return path


@pytest.fixture
def settles_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed waits for nobody's threads."""
    monkeypatch.setattr("satura.commands.timing.SETTLING", 0.0)


@pytest.fixture
def value() -> Array:
    return np.array([[1, -2, 3], [-4, 5, np.nan]], np.float32)


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


RULES = """
from satura.rewrite.types.attributes import Perm, UnaryFn
from satura.rewrite.language.dsl import Law, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import transpose, unary


@rule
def drop_relu(x: Tensor) -> Law:
    \"\"\"relu(x) = x, which is wrong\"\"\"
    return rewrites(unary("relu", x), x)


@attribute_function
def broken(p: Perm) -> Perm:
    \"\"\"prints, and raises\"\"\"
    print("{")
    raise ValueError("no such permutation")


@rule
def break_transpose(x: Tensor, p: Perm) -> Law:
    \"\"\"a computation that fails\"\"\"
    return rewrites(transpose(x, p), transpose(x, broken(p)))
"""


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


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import threading, time; threading.Thread(target=time.sleep, args=[9]).start()", "thread"),
        ("import os, time; os.fork() or time.sleep(9)", "process"),
        ("import sys; sys.stdout.close()", "closes stdout"),
    ],
)
def test_a_file_of_rules_leaves_nothing_behind(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, reason: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{RULES}\n{code}\n")
    assert cli("optimize", model, tmp_path / "faster.onnx", "--with", path) == 1
    message = capsys.readouterr().err
    assert "this file of rules" in message and reason in message


@pytest.mark.deep
def test_an_end_from_outside_removes_what_was_begun(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("while True:\n    pass\n")
    command = [sys.executable, "-m", "satura", "optimize"]
    process = subprocess.Popen(
        [*command, str(model), "out.onnx", "--with", str(path)],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("satura-call-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("satura-call-*"))


def test_a_file_of_rules_that_ends_the_process_is_an_error(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import os; os._exit(3)")
    assert cli("optimize", model, tmp_path / "faster.onnx", "--with", path) == 1
    assert "mine.py: running this file of rules ended its process" in capsys.readouterr().err


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


@pytest.mark.deep
def test_bench_compares_with_onnxruntime(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("bench", model, "--rounds", "1", "--threads", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["threads"] == 1
    (row,) = found["models"]
    assert row["model"] == "model"
    assert row["ratio"] == pytest.approx(row["satura-ms"] / row["onnxruntime-ms"])
    assert row["error"] == 0
    assert row["sizes"] == "rows=16"


@pytest.mark.usefixtures("settles_at_once")
@pytest.mark.parametrize("peer", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("is_late", [False, True])
def test_bench_leaves_out_a_runtime_that_refuses_a_model(
    model: Path, peer: str, is_late: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def refusing(*given: object) -> Callable[[], dict[str, Array]]:
        def run() -> dict[str, Array]:
            raise RuntimeError("Exception from core.cpp:105:\nno such op")

        return run if is_late else run()  # type: ignore[return-value]

    import satura.commands.bench as bench

    monkeypatch.setattr(bench, "PEERS", {**dict.fromkeys(bench.PEERS, refusing)})
    monkeypatch.setattr(bench, "find_spec", lambda name: name in (peer, "onnxruntime") or None)
    assert cli("bench", model, "--rounds", "1", "--threads", "1", "--json") == 0
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["models"]
    assert row["satura-ms"] > 0 and row[f"{peer}-ms"] is None
    assert row["ratio"] is None and row["error"] is None
    assert f"satura: warning: model: {peer} is not timed: Exception from core.cpp:105: no" in err
    assert err.count("\n") == len({peer, "onnxruntime"})
    assert cli("bench", model, "--rounds", "1", "--threads", "1") == 0
    assert "-" in capsys.readouterr().out


@pytest.mark.usefixtures("settles_at_once")
@pytest.mark.parametrize("json_too", [False, True])
def test_bench_tells_of_a_model_that_fails_and_times_the_others(
    model: Path, json_too: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = model.with_name("broken.onnx")
    broken.write_bytes(model.read_bytes()[:-20])
    flags = ["--json"] if json_too else []
    assert cli("bench", broken, model, "--rounds", "1", "--threads", "1", *flags) == 1
    out, err = capsys.readouterr()
    assert err.startswith("satura: ") and err.count("\n") == 1 and "broken.onnx" in err
    assert "rows=16" in out and "broken" not in out
    assert json_too or ("sizes (--size)" in out and "on 1 thread " in out)


@pytest.mark.usefixtures("settles_at_once")
@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_bench_times_models_that_run_in_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = make_model([node("NonZero", "x", "i"), node("Neg", "i")], {"x": ["n"]})
    onnx.save(found, path := tmp_path / "model.onnx")
    assert cli("bench", path, "--rounds", "1", "--threads", "1", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["models"]
    assert row["ratio"] > 0 and row["error"] == 0 and row["sizes"] == "n=16"


def test_run_says_the_sizes_of_its_random_inputs(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("run", model, "--threads", "1") == 0
    assert "model.onnx at rows=16 (see --size)" in capsys.readouterr().out


@pytest.mark.parametrize("entry", ["interpret", "compile"])
def test_an_index_outside_names_where_it_comes_from(entry: str) -> None:
    build = Builder()
    x, at = build.input("x", DType.F32, (4, 3)), build.input("at", DType.I64, (2,))
    program = build.program({"y": build.gather(x, at, 0)})
    arguments = {"x": np.ones((4, 3), np.float32), "at": np.array([1, 9])}
    with pytest.raises(satura.errors.CallError) as failed:
        if entry == "interpret":
            satura.interpret(program, arguments)
        else:
            satura.compile(program, threads=1).run(arguments)
    expected = "%2: gather" if entry == "interpret" else "input 'at' holds 9"
    assert expected in str(failed.value)
    far = build.program({"y": build.gather(x, build.binary("add", at, at), 0)})
    with pytest.raises(satura.errors.CallError, match=r"not one of an input's: satura\.interpret"):
        satura.compile(far, threads=1).run({**arguments, "at": np.array([1, 3])})
    with pytest.raises(satura.errors.CallError, match="'x' is missing: it is None"):
        satura.compile(program, threads=1)(None, arguments["at"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("--version") == 0
    assert capsys.readouterr().out == f"satura {__version__}\n"


@pytest.mark.parametrize(
    "command", ["demo", "run", "optimize", "stats", "bench", "check", "rules", "ops", "cache"]
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(command, "--help") == 0
    assert "Usage:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run"],
        ["run", "missing.onnx"],
        ["stats", "x", "--threads", "0"],
        ["optimize"],
        ["rules", "--markdown", "--json"],
        ["ops", "--markdown", "--json"],
        ["check", "--json", "--json-lines"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert cli(*arguments) == 2


@pytest.mark.parametrize("name", ["model.onnx", "folder/../model.onnx", "link.onnx", "hard.onnx"])
def test_a_model_is_not_replaced_by_what_is_made_of_it(
    name: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.onnx").symlink_to(model)
    (tmp_path / "hard.onnx").hardlink_to(model)
    content, output = model.read_bytes(), tmp_path / name
    for command in (["compile", model, "-o", output], ["run", model, "--output", output]):
        assert cli(*command) == 2
        assert "is read by this command" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(CallError, match=r"is not a saved program.*name another file"):
        satura.compile(model, threads=1).save(output)
    assert model.read_bytes() == content


def test_what_else_a_command_reads_is_not_replaced(model: Path, tmp_path: Path) -> None:
    given, weights, outside = (tmp_path / name for name in ("x.npz", "w.bin", "outside.onnx"))
    np.savez(given, allow_pickle=False, x=np.zeros((1, 3), np.float32))
    proto = onnx.load(model)
    onnx.save(proto, outside, save_as_external_data=True, location="w.bin", size_threshold=0)
    rules = tmp_path / "mine.py"
    rules.write_text(RULES)
    before = {path: path.read_bytes() for path in (given, weights, outside, rules)}
    assert cli("run", model, "--inputs", given, "--output", given) == 2
    for command in (["compile", "-o"], ["optimize"], ["run", "--output"]):
        assert cli(command[0], outside, *command[1:], weights) == 2
        assert cli(command[0], model, "--with", rules, *command[1:], rules) == 2
    with pytest.raises(CallError, match="is not a saved program"):
        satura.compile(outside, threads=1).save(weights)
    for program in (satura.load(outside), satura.optimize(outside)):
        with pytest.raises(CallError, match=r"is not an ONNX model.*name another file"):
            satura.save(program, weights)
    assert before == {path: path.read_bytes() for path in before}


def test_files_of_another_kind_are_not_replaced(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, results, text = (tmp_path / name for name in ("a.satura", "a.npz", "a.txt"))
    satura.compile(model, threads=1).save(saved)
    assert cli("run", model, "--output", results) == 0
    text.write_text("text")
    other = tmp_path / "other.onnx"
    other.write_bytes(model.read_bytes())
    files = {path: path.read_bytes() for path in (saved, results, text, other)}
    kinds = {"compile -o": saved, "optimize": other, "run --output": results}
    for command, own in kinds.items():
        name, *option = command.split()
        for path in files.keys() - {own}:
            assert cli(name, model, *option, path) == 2
            assert "is there, and is not a" in capsys.readouterr().err
        assert files == {path: path.read_bytes() for path in files}
    for command, own in kinds.items():
        name, *option = command.split()
        assert cli(name, model, *option, own) == 0


def test_an_optimised_model_may_replace_its_source(
    model: Path, value: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("optimize", model, tmp_path / "other.onnx") == 0
    said = capsys.readouterr().out.partition(": ")[2]
    expected = satura.interpret(satura.load(model), {"x": value})["y"]
    assert cli("optimize", model, model) == 0
    assert capsys.readouterr().out.partition(": ")[2] == said
    satura.save(satura.optimize(model), model)
    assert np.array_equal(satura.interpret(model, {"x": value})["y"], expected, equal_nan=True)


@pytest.mark.parametrize("command", ["compile -o", "run --output", "optimize"])
@pytest.mark.parametrize("place", ["no/out", ".", "shut/out"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "shut").mkdir()
    (broken := tmp_path / "broken.onnx").write_bytes(b"no model, as the work would say")
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, how: Path(path).name != "shut" and access(path, how)
    )  # as it is for those who are not root
    name, *option = command.split()
    assert cli(name, broken, *option, tmp_path / place) == 2
    assert " cannot be written: " in capsys.readouterr().err


BROKEN = ("truncated model",)
FAILURES = {
    "truncated model": (["run", "{broken}"], "broken.onnx"),
    "unknown stage": (["show", "{model}", "--stage", "foo"], "'foo'"),
    "unknown cost": (["run", "{model}", "--cost", "best"], "'best'"),
    "unknown executables": (["stats", "{model}", "--executables", "many"], "'many'"),
    "unknown extractor": (["experiment", "{model}", "--extractor", "foo"], "'foo'"),
    "unknown limit": (["stats", "{model}", "--limits", "foo=1"], "'foo'"),
    "negative limit": (
        ["stats", "{model}", "--limits", "nodes=-4"],
        "the limit nodes is -4, but must not be negative",
    ),
    "a range the wrong way round": (["run", "{model}", "--dim", "rows=5:1"], "the lower first"),
    "no such node": (["explain", "{model}", "999"], "%999"),
    "no such rule to check": (["check", "--rule", "no_rule"], "'no_rule'"),
    "no such value": (["run", "{model}", "--value", "x={folder}/no.npy"], "no.npy: No such file"),
    **{
        f"no model to {command[0]}": ([*command, "missing.onnx"], "missing.onnx is neither")
        for command in (
            ["run"],
            ["stats"],
            ["show"],
            ["explain"],
            ["why", "relu"],
            ["experiment"],
            ["compile", "-o", "out"],
            ["bench"],
            ["bench", "--profile"],
            ["rules", "--worth"],
        )
    },
    "unknown rules": (["stats", "{model}", "--rules", "fast"], "'fast'"),
    "unknown precision": (["run", "{model}", "--precision", "fast"], "'fast'"),
    "unknown size": (["run", "{model}", "--size", "columns=2"], "'columns'"),
    "malformed size": (["run", "{model}", "--size", "rows"], "NAME=N"),
    "inputs that are not npz": (
        ["run", "{model}", "--inputs", "{broken}"],
        "broken.onnx is not an .npz file of plain arrays; write one with numpy.savez",
    ),
    "inputs that are one array": (
        ["run", "{model}", "--inputs", "{array}"],
        "array.npy is an .npy file of one array",
    ),
    "an input that is several arrays": (
        ["run", "{model}", "--input", "x={wrong}"],
        "wrong.npz is not an .npy file",
    ),
    "a size to explain that no axis has": (
        ["explain", "{model}", "--sizes", "rows=1:99999999999999999999"],
        "sizes are from 1 to 2**48",
    ),
    "a size to explain that there is not": (
        ["explain", "{model}", "--size", "columns=1:2000000"],
        "there is no size 'columns' in the model; its sizes are ['rows']",
    ),
    "a size to explain that is no memory's": (
        ["explain", "{model}", "--sizes", "rows=99999999999999"],
        "memory has",
    ),
    "a result that is a folder": (
        ["optimize", "{model}", "{folder}"],
        "it is a folder: name a file",
    ),
    "a rule that there is not": (["why", "no_rule", "{model}"], "'no_rule'; `satura rules` lists"),
    "inputs of a wrong name": (["run", "{model}", "--inputs", "{wrong}"], "'z'"),
    "sizes beside inputs": (
        ["run", "{model}", "--inputs", "{wrong}", "--size", "rows=2"],
        "--size",
    ),
    **{
        f"{command[0]} to no folder": (
            [*command, "{folder}/no/out"],
            "no/out cannot be written: there is no folder '",
        )
        for command in (
            ["compile", "{model}", "-o"],
            ["run", "{model}", "--output"],
            ["optimize", "{model}"],
            ["experiment", "{model}", "--csv"],
            ["experiment", "{model}", "--plot"],
            ["rules", "--worth", "{model}", "--csv"],
        )
    },
    "inputs that are a device": (["run", "{model}", "--inputs", "/dev/zero"], "not a regular"),
    "an input that is a device": (["run", "{model}", "--input", "x=/dev/null"], "not a regular"),
    "a model without a name": (["run", ""], "'' is neither an ONNX file"),
    "a size twice": (["run", "{model}", "--size", "rows=1,rows=2"], "size 'rows' is given twice"),
    "a typical size twice": (
        ["stats", "{model}", "--dim", "rows=1", "--dim", "rows=2:3"],
        "size 'rows' is given twice",
    ),
    "a size to explain twice": (
        ["explain", "{model}", "--sizes", "rows=1", "--sizes", "rows=2"],
        "size 'rows' is given twice",
    ),
    "a limit twice": (["stats", "{model}", "--limits", "nodes=1,nodes=2"], "'nodes' is given"),
    "an input twice": (
        ["run", "{model}", "--input", "x={array}", "--input", "x={array}"],
        "input 'x' is given twice",
    ),
    "bench of no model": (["bench", "nonsense"], "nonsense"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_errors_are_one_line_and_exit_with_1_or_where_the_call_is_wrong_with_2(
    case: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, wrong = tmp_path / "broken.onnx", tmp_path / "wrong.npz"
    broken.write_bytes(model.read_bytes()[:-20])
    np.savez(wrong, allow_pickle=False, z=np.zeros(1, np.float32))
    np.save(array := tmp_path / "array.npy", np.zeros(1, np.float32))
    before = sorted(tmp_path.rglob("*"))
    places = {"array": array, "model": model, "broken": broken, "wrong": wrong, "folder": tmp_path}
    arguments, expected = FAILURES[case]
    assert cli(*(argument.format(**places) for argument in arguments)) == (
        1 if case in BROKEN else 2
    )
    message = capsys.readouterr().err
    assert message.startswith("satura: ") and message.count("\n") == 1
    assert expected in message
    assert sorted(tmp_path.rglob("*")) == before, "something half done was left behind"


@pytest.mark.parametrize(
    "arguments",
    deep_but([["ops"], ["--version"]], [["rules"], ["ops"], ["rules", "--json"], ["--version"]]),
    ids=" ".join,
)
def test_a_stdout_that_takes_no_more_ends_a_command(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "satura", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed, Path("/dev/full").open("wb") as full:
        for stream, code, said in (
            (closed, 128 + signal.SIGPIPE, b""),
            (full, 1, b"satura: stdout: No space left on device\n"),
        ):
            result = subprocess.run(command, env=environment, stdout=stream, stderr=subprocess.PIPE)
            assert (result.returncode, result.stderr) == (code, said)


def test_a_file_that_fails_while_it_is_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("run", "/proc/self/mem") == 1
    assert capsys.readouterr().err == "satura: /proc/self/mem: Input/output error\n"


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
