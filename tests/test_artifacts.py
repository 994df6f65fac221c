"""Saved programs: they run elsewhere with what the file holds, and a file that is not as it was
written is refused before anything of it runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import satura
from satura.artifact import opened, ready
from satura.artifact import save as saving
from satura.artifact.container import _HEAD, _START, VERSION, Container
from satura.artifact.sums import SUMS, WORDS, by_kernel, by_numpy
from satura.backend.jit import kernel
from satura.backend.jit.machine_code import objects_of
from satura.pipeline.inputs import random_inputs
from satura.rewrite.errors import ArtifactError, CallError, UnsupportedError, VerificationError
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array, DType
from tests.command_line import cli
from tests.onnx_models import Typed, make_model, node
from tests.random_programs import compare, random_program
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


def dense(rows: object = 3) -> Program:
    """tanh(x · w + b), with a constant, an input and a result that has two names for outputs."""
    draw = np.random.default_rng(5).standard_normal
    build = Builder()
    extent = symbol(rows) if isinstance(rows, str) else 3
    x = build.input("x", DType.F32, (extent, 70))
    w = build.constant(draw((70, 24)).astype(np.float32), DType.F32)
    bias = build.constant(draw((1, 24)).astype(np.float32), DType.F32)
    shaped = build.broadcast(bias, (extent, 24))
    y = build.unary("tanh", build.binary("add", build.matmul(x, w), shaped))
    return build.program({"y": y, "again": y, "bias": bias, "x again": x})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "dense.satura"
    satura.compile(dense(), threads=1, rules="none").save(path)
    return path


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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", [[0, 1 << 40]]),
        ("outputs", [99] * 4),
        ("computed", 1 << 61),
        ("facts", [["3", "==", True]]),
        ("calls", [["f", "os system", []]]),
        ("dims", ["n"]),
    ],
)
def test_a_class_of_sizes_that_is_not_as_it_was_written_is_refused(
    key: str, value: object, tmp_path: Path
) -> None:  # fmt: skip
    program, path = dense("n"), tmp_path / "sized.satura"
    satura.compile(program, threads=1, rules="none").save(path, {"n": 2})
    change = rewritten(lambda header: header["programs"][0]["classes"][0].update({key: value}))  # type: ignore[index]
    path.write_bytes(change(path.read_bytes()))
    program_there = satura.open(path)
    with pytest.raises(ArtifactError, match=r"sized\.satura is damaged: .*; save it again"):
        program_there.run(random_inputs(program, {"n": 7}))


def no_code(kernels: object) -> list[int]:
    raise AssertionError("code was loaded")


def rewritten(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    """A file whose header is changed, and whose digest is right."""

    def changed(data: bytes) -> bytes:
        magic, version, length, size = _HEAD.unpack(data[: _HEAD.size])
        header = json.loads(data[_START : _START + length])
        change(header)
        text = json.dumps(header, separators=(",", ":")).encode().ljust(length)
        assert len(text) <= length
        head = _HEAD.pack(magic, version, length, size)
        return head + hashlib.sha256(head + text).digest() + text + data[_START + length :]

    return changed


def routine_with(key: str, value: object) -> Callable[[bytes], bytes]:
    return rewritten(lambda header: header["programs"][0]["routines"][0].update({key: value}))  # type: ignore[index]


def kernel_with(entry: int | None) -> Callable[[bytes], bytes]:
    """A file whose first kernel starts elsewhere."""

    def change(header: dict[str, object]) -> None:
        header["kernels"][0][2] = entry  # type: ignore[index]

    return rewritten(change)


def launched_again() -> Callable[[bytes], bytes]:
    """A file with a launch that reads the arguments of the one before."""

    def change(header: dict[str, object]) -> None:
        launches = header["programs"][0]["routines"][0]["launches"]  # type: ignore[index]
        launches.append(launches[-1])

    return rewritten(change)


def output_with(region: int, dtype: str) -> Callable[[bytes], bytes]:
    """A file whose output y is in another region, or of another element type."""

    def change(header: dict[str, object]) -> None:
        outputs = header["programs"][0]["routines"][0]["outputs"]  # type: ignore[index]
        outputs["y"] = [region, [dtype, outputs["y"][1][1]]]

    return rewritten(change)


def decided_by_none() -> Callable[[bytes], bytes]:
    """A file whose program is for the value of an input that there is not."""

    def change(header: dict[str, object]) -> None:
        header["deciding"] = ["z"]
        header["programs"][0]["values"] = [["z", "<f4", [0], ""]]  # type: ignore[index]

    return rewritten(change)


def decided_by_more() -> Callable[[bytes], bytes]:
    """A file whose program is for all values of an input that decides."""

    def change(header: dict[str, object]) -> None:
        header["deciding"] = ["x"]

    return rewritten(change)


def large_output(extent: int) -> Callable[[bytes], bytes]:
    """A file whose output y is longer."""

    def change(header: dict[str, object]) -> None:
        header["programs"][0]["routines"][0]["outputs"]["y"][1][1][1] = extent  # type: ignore[index]

    return rewritten(change)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda data: b"", "is not a program"),
    "another file": (lambda data: b"\x08\x07" + data, "is not a program"),
    "its first bytes": (lambda data: data[:40], "ends in its first bytes"),
    "its first half": (lambda data: data[: len(data) // 2], r"has \d+ bytes, not \d+"),
    "more": (lambda data: data + b"\0", r"has \d+ bytes, not \d+"),
    "a newer version": (
        lambda data: data[:16] + bytes([VERSION + 1]) + data[17:],
        r"version \d of the format",
    ),
    "another digest": (lambda data: flipped(data, _HEAD.size + 3), "its header is not"),
    "another header": (lambda data: flipped(data, _START + 9), "its header is not"),
    "no sections": (rewritten(lambda header: header.pop("sections")), "header is not"),
    "huge sizes": (rewritten(lambda h: h.update(sections=[[1 << 70, ""]])), "header is not"),
    "a size below 0": (rewritten(lambda h: h.update(sections=[[-1, ""]])), "header is not"),
    "no sections but a head": (rewritten(lambda h: h.update(sections=[])), "table of sections"),
    "too many threads": (rewritten(lambda h: h.update(threads=1 << 40)), "out of range"),
    "a wrong type": (rewritten(lambda h: h.update(inputs=[1])), "should be a dict"),
    "a kernel that is not there": (routine_with("launches", [[99, 0, 1]]), "leaves its tables"),
    "a kernel that waits for others": (routine_with("launches", [[0, 0, 1]]), "leaves its tables"),
    "too many results": (routine_with("computed", 1 << 61), "leaves its tables"),
    "an arena beyond memory": (routine_with("arena", 1 << 61), "more memory than"),
    "an entry behind the code": (kernel_with(1 << 30), "no code where it starts"),
    "machine code for LLVM": (kernel_with(None), "no code where it starts"),
    "arguments again": (launched_again(), "leaves its tables"),
    "arguments outside": (routine_with("launches", [[0, 1 << 40, 1]]), "leaves its tables"),
    "too few regions": (routine_with("computed", 0), "leaves its tables"),
    "a section that is not there": (routine_with("numbers", 1 << 20), "table of sections"),
    "an output outside": (output_with(99, "f32"), "leaves its tables"),
    "an output of another type": (output_with(4, "f64"), "other outputs"),
    "no schedule": (rewritten(lambda h: h["programs"][0].pop("schedule")), "schedule"),  # type: ignore[index]
    "no classes": (rewritten(lambda h: h["programs"][0].pop("classes")), "classes"),  # type: ignore[index]
    "values of no input": (decided_by_none(), "values of what is no input"),
    "no values": (decided_by_more(), "for values of other inputs than it says"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_error_and_nothing_is_executed(
    damage: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "load_all", no_code)
    change, message = DAMAGE[damage]
    saved.write_bytes(change(saved.read_bytes()))
    with pytest.raises(ArtifactError, match=message) as caught:
        satura.open(saved)
    assert str(saved) in str(caught.value)


@pytest.mark.parametrize("rows", [0, 1, 5, 2_051])
def test_the_kernel_sums_what_numpy_sums(rows: int) -> None:
    words = np.random.default_rng(rows).integers(1 << 64, size=(rows, WORDS), dtype=np.uint64)
    (*_, kernel) = objects_of([SUMS])
    for found, expected in zip(by_kernel(kernel)(words), by_numpy(words), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, axis in zip(by_numpy(words), (1, 0), strict=True):
        np.testing.assert_array_equal(found, words.sum(axis=axis))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (large_output(1 << 44), r"output 'y' of type f32\[3, 17592186044416\] takes .*memory has"),
        (large_output(1 << 61), "output 'y' of type .* is too large for an array"),
        (routine_with("arena", 1 << 45), "at a time take 35,184,372,0.*memory has"),
        (routine_with("scratch", 1 << 45), "at a time take 35,184,372,0.*memory has"),
    ],
)
def test_what_memory_cannot_hold_is_refused_by_calls(
    change: Callable[[bytes], bytes], message: str, saved: Path
) -> None:
    """Not when the file is opened: it may be of a larger machine."""
    saved.write_bytes(change(saved.read_bytes()))
    opened = satura.open(saved)
    with pytest.raises(CallError, match=message):
        opened.run(random_inputs(dense()))


def test_each_section_is_checked_before_it_is_used(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "load_all", no_code)
    data = saved.read_bytes()
    whole = Container(saved)
    base = whole._bytes.ctypes.data
    (program,) = whole.header["programs"]
    used = {row[-1] for row in (*whole.header["kernels"], *program["constants"])}
    used |= {program["routines"][0][key] for key in ("numbers", "regions")}
    assert len(used) > 5
    for number in used:
        content = whole.section(number)
        at = int(content.ctypes.data) - base + content.size * number // (len(used) + 20)
        changed = saved.with_name("changed")
        changed.write_bytes(flipped(data, at))
        with pytest.raises(ArtifactError, match=f"section {number} is not as it was written"):
            satura.open(changed)


def test_code_of_others_is_not_run_without_trust(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = random_inputs(dense())
    expected = satura.open(saved).run(arguments)
    saved.chmod(0o666)
    assert satura.open(saved, trust=True).run(arguments).keys() == expected.keys()
    monkeypatch.setattr(ready, "load_all", no_code)
    with pytest.warns(UserWarning, match=r"somebody else .*compiled again"):
        again = satura.open(saved)
    for name, array in again.run(arguments).items():
        np.testing.assert_array_equal(array, expected[name])
    saved.chmod(0o600)
    monkeypatch.setattr(opened, "running", lambda: "another CPU")
    with pytest.warns(UserWarning, match=r"another CPU .*compiled again"):
        again = satura.open(saved)
    for name, array in again.run(arguments).items():
        np.testing.assert_array_equal(array, expected[name])


def test_what_is_compiled_again_is_checked(saved: Path) -> None:
    whole = Container(saved)
    data = saved.read_bytes()
    for section in (whole.header["programs"][0]["schedule"], whole.header["sources"][0][-1]):
        at = int(whole.section(section).ctypes.data) - whole._bytes.ctypes.data + 5
        changed = saved.with_name("changed")
        changed.write_bytes(flipped(data, at))
        changed.chmod(0o666)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = satura.open(changed)
        with pytest.raises(ArtifactError, match=f"section {section} is not as it was written"):
            again.run(random_inputs(dense()))


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


def test_a_file_without_the_model_refuses_sizes_that_take_another_search(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    n, m = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes = [onnx.helper.make_node("Add", ["x", "z"], ["y"])]
    infos = [n("x", m, ["n"]), n("z", m, ["m"])]
    onnx.save(onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", infos, [n("y", m, None)]),
        opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8,
    ), path)  # fmt: skip
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


@pytest.mark.long
def test_mutants_are_refused_or_right(saved: Path) -> None:
    data = saved.read_bytes()
    arguments = random_inputs(dense())
    expected = satura.open(saved).run(arguments)
    refused = 0
    for seed in seeds(1000):
        random = np.random.default_rng(seed)
        mutant = bytearray(data)
        for at in random.integers(0, len(data), random.integers(1, 4)):
            mutant[at] ^= 1 << int(random.integers(8))
        if random.random() < 0.2:
            del mutant[int(random.integers(len(data))) :]
        saved.write_bytes(mutant)
        try:
            got = satura.open(saved).run(arguments)
        except ArtifactError:
            refused += 1
            continue
        for name, array in expected.items():  # what was hit is not read here, or padding
            np.testing.assert_array_equal(got[name], array)
    assert refused > 500
