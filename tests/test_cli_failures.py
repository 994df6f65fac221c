"""The command line where it fails or is called wrongly: it says so, and loses no file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import satura
from satura.rewrite.errors import CallError
from satura.rewrite.types.tensor_type import Array
from tests.command_files import RULES
from tests.command_files import model as model
from tests.command_files import value as value
from tests.command_line import cli
from tests.tiers import deep_but


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
        f"no model to {command[0]}": ([*command, "missing.onnx"], "missing.onnx: there is no such")
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
    "a model that is a folder": (["run", ".."], ".. is a folder: name a file in it"),
    "no light model": (["run", "light_squeeze"], "is neither an ONNX file nor one of light_"),
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
