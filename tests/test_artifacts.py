"""Saved programs: they run elsewhere with what the file holds, at its sizes and at others."""

from __future__ import annotations

import contextlib
import json
import pickle
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import satura
from satura.artifact import ready
from satura.artifact import save as saving
from satura.artifact.opened import open_artifact
from satura.backend.jit import kernel
from satura.pipeline.again import search_again
from satura.pipeline.inputs import random_inputs
from satura.rewrite.errors import CallError, UnsupportedError, VerificationError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType
from tests.command_line import cli
from tests.onnx_models import Typed, make_model, node
from tests.random_programs import compare, random_program
from tests.saved_dense import dense
from tests.saved_dense import saved as saved
from tests.tiers import deep_but, seeds

HEAVY = [
    "numba", "llvmlite", "egglog", "z3", "onnx", "asyncio", "ssl", "satura.rewrite.egraph",
    "satura.backend.lower", "satura.rewrite.types.attributes",
]  # fmt: skip
ELSEWHERE = f"""
import pickle, sys
import satura
calls = pickle.load(sys.stdin.buffer)
results = [satura.open(path).run(arguments) for path, arguments in calls]
loaded = [name for name in {HEAVY} if name in sys.modules]
pickle.dump((results, loaded), sys.stdout.buffer)
"""


def test_what_is_missing_to_compile_for_other_sizes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = satura.compile(dense("n"), threads=1, rules="none")
    compiled.save(tmp_path / "open.satura", sizes=[{"n": 3}])
    opened = satura.open(tmp_path / "open.satura")
    monkeypatch.setitem(sys.modules, "satura.backend.plan.compiled", None)
    opened.prepare({"n": 3})
    with pytest.raises(CallError, match=r"'n': 0.*cannot be imported: install it, or save with"):
        opened.prepare({"n": 0})


def test_a_file_is_opened_and_run_where_no_compiler_is_installed(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = random_inputs(dense())
    expected = satura.open(saved).run(arguments)

    def not_installed() -> str:
        raise PackageNotFoundError("numba")

    monkeypatch.setattr(kernel, "environment", not_installed)
    for name, array in satura.open(saved).run(arguments).items():
        np.testing.assert_array_equal(array, expected[name])


def test_a_file_whose_kernels_llvm_loads_asks_for_it(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(kernels: object) -> None:
        raise ModuleNotFoundError("no", name="llvmlite")

    monkeypatch.setattr(ready, "load_all", not_installed)
    with pytest.raises(CallError, match=r"kernels that 'llvmlite' loads, which .*: install it"):
        satura.open(saved)


def elsewhere(
    calls: list[tuple[str, dict[str, Array]]],
) -> tuple[list[dict[str, Array]], list[str]]:
    """What a fresh process gets of saved programs, and which heavy modules it has loaded."""
    answer = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        input=pickle.dumps(calls),
        capture_output=True,
        check=True,
    )
    assert not answer.stderr
    results, loaded = pickle.loads(answer.stdout)
    return results, loaded


@pytest.mark.parametrize("count", deep_but([], [1, 8]))
def test_saved_programs_run_in_a_process_that_loads_no_compiler(count: int, tmp_path: Path) -> None:
    inexact = dict.fromkeys(["y", "again"], False)
    fixed, sized = dense(), dense("n")
    cases = [(fixed, random_inputs(fixed), inexact), (sized, random_inputs(sized), inexact)]
    cases += [random_program(seed) for seed in seeds(count, 31)]
    calls = []
    for number, (program, arguments, _) in enumerate(cases):
        path = tmp_path / f"{number}.satura"
        compiled = satura.compile(program, threads=2, rules="none")
        compiled.run(arguments)  # so that the file is ready for these sizes
        compiled.save(path)
        calls.append((str(path), arguments))
    results, loaded = elsewhere(calls)
    assert loaded == []
    for (program, arguments, exact), got in zip(cases, results, strict=True):
        for name, expected in interpret(program, arguments).items():
            assert compare(expected, got[name], exact.get(name, True)) is None


MAPPED = """
import re, sys, satura
opened = satura.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
_, _, region = open("/proc/self/smaps").read().partition(sys.argv[1])
print(*re.findall("^[RP]ss: *([0-9]+) kB", region, re.MULTILINE)[:2])
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="shares are told by Linux")
def test_two_processes_share_the_pages_of_weights(tmp_path: Path) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 1024))
    weights = np.random.default_rng(0).standard_normal((1024, 1024))
    product = build.matmul(x, build.constant(weights, DType.F32))
    path = tmp_path / "large.satura"
    satura.compile(build.program({"y": product}), threads=1, rules="none").save(path)
    command = [sys.executable, "-c", MAPPED, str(path)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    ready = [process.stdout and process.stdout.readline() for process in processes]
    assert ready == ["open\n"] * 2
    told = [process.communicate("\n")[0].split() for process in processes]
    resident, share = map(int, told[0])  # while both have it mapped
    assert resident > 0.9 * weights.size * 4 // 1024 and share <= 0.6 * resident
    assert [process.wait() for process in processes] == [0, 0]


def test_sizes_that_the_file_is_not_ready_for_are_compiled(tmp_path: Path) -> None:
    program, path = dense("n"), tmp_path / "sized.satura"
    satura.compile(program, threads=1).save(path, {"n": 2})
    program_there = satura.open(path)
    program_there.prepare([{"n": 2}, {"n": 7}])
    for size in (2, 7, 0):
        program_there.release()
        arguments = random_inputs(program, {"n": size})
        got = program_there.run(arguments)
        for name, expected in interpret(program, arguments).items():
            assert compare(expected, got[name], False) is None
    with pytest.raises(CallError, match=r"input 'x' must be f32\[n, 70\]"):
        program_there(np.zeros((2, 70)))
    with pytest.raises(CallError, match=r"no size 'm' in the model; its sizes are \['n'\]"):
        satura.compile(program).save(path, {"m": 2})
    with pytest.raises(CallError, match=r"no size 'm' in the model; its sizes are \['n'\]"):
        program_there.prepare({"m": 2})


def test_what_runs_in_python_is_not_saved(tmp_path: Path) -> None:
    model = make_model([node("Det")], {"x": [4, 4]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = satura.compile(model)
    with pytest.raises(UnsupportedError, match=r"node %1 \('Det'\) runs in Python"):
        compiled.save(tmp_path / "none.satura")
    assert list(tmp_path.iterdir()) == []


def test_a_saved_program_runs_at_its_sizes_and_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sized.satura"
    compiled = satura.compile(dense("n"), threads=1)
    compiled.save(path, [{"n": 0}, {"n": 5}])
    opened = satura.open(path, verify=True)
    assert opened.first_sizes == {"n": 0}
    opened.prepare([{"n": 0}, {"n": 9}])
    assert [each.missed for each in opened.cache] == ["n == 0"]  # of n = 5, as it was compiled
    path.unlink()
    satura.compile(dense("n"), threads=1).save(path, {"n": 5})
    assert not cli("run", path, "--verify", "--json")
    assert json.loads(capsys.readouterr().out)["y"]["shape"] == [5, 24]
    text = saving._text
    monkeypatch.setattr(saving, "_text", lambda *of: text(*of).replace("tanh", "relu"))
    compiled.save(path)
    with pytest.raises(VerificationError, match="'y' is wrong after it was saved"):
        satura.open(path, verify=True)


CALLED: dict[str, tuple[ModelProto, list[dict[str, Array]]]] = {
    "another program": (
        make_model([node("Relu", "x", "r"), node("Slice", "r start end")], {
            "x": ("n",), "start": Typed([1]), "end": Typed([1]),
        }),
        [
            {"x": np.ones(n, np.float32), "start": np.array([0]), "end": np.array([2])}
            for n in (3, 0)
        ],
    ),
    "more sizes": (
        make_model([node("Add", "x z")], {"x": ("n",), "z": ("m",)}),
        [{"x": np.ones(n, np.float32), "z": np.ones(3, np.float32)} for n in (3, 1)],
    ),
    "a refused call": (
        make_model([node("Relu", "x", "r"), node("Reshape", "r shape")], {
            "x": ("n", "m"), "shape": Typed([2]),
        }),
        [{"x": np.ones((2, 3), np.float32), "shape": np.array([4, 4])}],
    ),
    "an index": (
        make_model([node("Gather", "x at")], {"x": ("n",), "at": Typed(["m", "m"])}),
        [{"x": np.ones(1, np.float32), "at": np.zeros((2, 2), np.int64)}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("model, calls", CALLED.values(), ids=CALLED)
def test_what_a_saved_program_excludes_is_verified_with_the_model(
    model: ModelProto, calls: list[dict[str, Array]], tmp_path: Path
) -> None:
    path = tmp_path / "called.satura"
    compiled = satura.compile(model, threads=1)
    for arguments in calls:
        with contextlib.suppress(CallError):
            compiled.run(arguments)
    for with_model in (True, False):
        compiled.save(path, with_model=with_model)
        satura.open(path, verify=True)


SUM = make_model([node("Add", "x z")], {"x": ("n",), "z": ("m",)})


@pytest.mark.parametrize("precision", ["exact", "fp32"])
def test_sizes_that_take_another_search_have_kernels_of_the_same_precision(
    precision: str, tmp_path: Path
) -> None:
    path, asked = tmp_path / "sum.satura", []
    satura.compile(SUM, threads=1, precision=precision).save(path)

    def search(
        program: Program, names: Sequence[str], is_exact: bool, threads: int,
        sizes: Mapping[str, int],
    ) -> Schedule:  # fmt: skip
        asked.append(is_exact)
        return search_again(program, names, is_exact, threads, sizes)

    opened = open_artifact(path, False, search)
    given = {"x": np.ones(1, np.float32), "z": np.ones(3, np.float32)}
    assert opened.run(given)["y"].tolist() == [2, 2, 2]
    assert asked == [precision == "exact"]


def test_a_file_without_the_model_refuses_sizes_that_take_another_search(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(SUM, path)
    compiled = satura.compile(path, threads=1)
    whole, without = tmp_path / "whole.satura", tmp_path / "without.satura"
    compiled.save(whole)
    compiled.save(without, with_model=False)
    ones = np.ones(1, np.float32), np.ones(3, np.float32)
    assert satura.open(whole).run(ones)["y"].tolist() == [2, 2, 2]
    with pytest.raises(CallError, match=r"no model to make them of: save it with the model, or"):
        satura.open(without)(*ones)
    with pytest.raises(CallError, match=r"a satura.Opened cannot .*: satura.open\('.*without"):
        pickle.dumps(satura.open(without))
    assert satura.open(without).run((ones[1], ones[1]))["y"].tolist() == [2, 2, 2]
    assert not cli("compile", path, "-o", whole, "--without-model")
    with pytest.raises(CallError):
        satura.open(whole)(*ones)


def test_commands_compile_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, file, outputs = (tmp_path / name for name in ("model.onnx", "model.satura", "y.npz"))
    satura.save(dense("n"), model)
    arguments = random_inputs(dense("n"), {"n": 4})
    np.save(tmp_path / "x.npy", arguments["x"])
    commands = [
        ["compile", model, "-o", file, "--size", "n=4", "--threads", 1, "--json"],
        ["run", file, "--input", f"x={tmp_path / 'x.npy'}", "--output", outputs, "--json"],
        ["run", file, "--precision", "exact"],
        ["run", file, "--threads", 2],
        ["run", file, "--input", "x.npy"],
        ["run", model.with_suffix(".none")],
    ]
    codes = []
    for command in commands:
        codes.append(cli(*command))
        if command[0] == "compile":
            assert json.loads(capsys.readouterr().out)["bytes"] == file.stat().st_size
    assert codes == [0, 0, 2, 2, 2, 2]
    printed = capsys.readouterr()
    assert json.loads(printed.out)["y"]["shape"] == [4, 24]
    assert "--precision is for models" in printed.err
    assert "is compiled for --threads 1; compile it again for 2" in printed.err
    assert "an input is written NAME=FILE.npy" in printed.err
    results = np.load(outputs)
    for name, expected in interpret(dense("n"), arguments).items():
        assert compare(expected, results[name], False) is None
