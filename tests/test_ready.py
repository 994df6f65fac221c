"""Compiles of files that were compiled before: they are opened, and what they do is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import satura
from satura.backend.jit.cache import Cache, default_cache
from satura.backend.plan import plans
from satura.backend.plan.size_class import size_class
from satura.commands.cli import app
from satura.pipeline import ready
from satura.pipeline.compiled import Compiled
from satura.pipeline.ready import ReadyPart
from satura.rewrite.errors import ModelError
from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import Shape, Typed, make_model, node

ROOT = Path(__file__).parent.parent
HEAVY = ["numba", "llvmlite", "egglog", "z3", "onnx", "satura.rewrite.egraph", "satura.rules"]
X = np.linspace(-1, 1, 3 * 32, dtype=np.float32).reshape(3, 32)
OTHER_PROCESS = f"""
import sys
import numpy as np
import satura
compiled = satura.compile(sys.argv[1], threads=1)
result = compiled(np.load(sys.argv[2]))
assert compiled.is_remembered and list(compiled.phases) == ['recall']
assert not [name for name in {HEAVY} if name in sys.modules]
np.save(sys.argv[3], result)
print(compiled.program, compiled.statistics, compiled.executables, compiled.report, sep="\\n")
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    return default_cache("program")


def write(path: Path, changed: float = 0.0, rows: int | str = 3) -> Path:
    """A model of a product, whose weights differ in one element."""
    w = np.random.default_rng(3).standard_normal((32, 16)).astype(np.float32)
    w[5, 6] += changed
    nodes = [node("MatMul", "x w", "m"), node("Tanh", "m")]
    onnx.save(make_model(nodes, {"x": (rows, 32)}, {"w": w}), path)
    return path


def is_ready(compiled: Compiled) -> bool:
    return isinstance(compiled._part, ReadyPart)


@pytest.mark.parametrize("rows", [3, "n"])
def test_another_process_loads_no_compiler_and_knows_all_that_the_first_did(
    rows: int | str, tmp_path: Path
) -> None:
    path = write(tmp_path / "model.onnx", rows=rows)
    compiled = satura.compile(path, threads=1)
    np.save(tmp_path / "x.npy", X)
    expected = compiled(X)
    said = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, path, tmp_path / "x.npy", tmp_path / "y.npy"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)
    told = [compiled.program, compiled.statistics, compiled.executables, compiled.report]
    assert said == "".join(f"{each}\n" for each in told)


def test_statistics_of_a_model_that_was_compiled_before_have_all_phases(tmp_path: Path) -> None:
    path = write(tmp_path / "model.onnx")
    phases = []
    for _ in range(2):
        result = CliRunner().invoke(app, ["stats", str(path), "--json"])
        assert result.exit_code == 0, result.output
        phases.append(json.loads(result.stdout)["phases"])
    assert all("load" in each for each in phases)


def test_models_that_differ_in_one_constant_or_in_how_they_are_compiled_are_told_apart(
    tmp_path: Path,
) -> None:
    models = [write(tmp_path / f"{change}.onnx", change) for change in (0.0, 1.0)]
    options: list[dict[str, object]] = [
        {}, {"threads": 1, "rules": "none"}, {"precision": "exact"}, {"executables": "none"},
        {"cost": "reference"}, {"rules": "exact"}, {"limits": satura.Limits(rounds=1)},
    ]  # fmt: skip
    for again in (False, True):
        for model in models:
            meant = satura.interpret(satura.load(model), {"x": X})["y"]
            for chosen in options:
                compiled = satura.compile(model, **chosen)  # type: ignore[arg-type]
                assert is_ready(compiled) == again
                assert np.allclose(compiled(X), meant, atol=1e-5)
    assert is_ready(satura.compile(models[0].read_bytes()))
    assert not is_ready(satura.compile(models[0], verify=True))


def changed_bytes(entry: Path, other: Path) -> None:
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 4
    entry.write_bytes(data)


def cut(entry: Path, other: Path) -> None:
    os.truncate(entry, entry.stat().st_size // 2)


def another_model(entry: Path, other: Path) -> None:
    entry.write_bytes(other.read_bytes())


def writable_by_others(entry: Path, other: Path) -> None:
    entry.chmod(0o666)


@pytest.mark.parametrize(
    ("spoil", "rows"),
    [
        (changed_bytes, 3),
        (changed_bytes, "n"),
        (cut, 3),
        (another_model, 3),
        (writable_by_others, 3),
    ],
)
def test_an_entry_that_cannot_be_trusted_is_made_anew(
    spoil: Callable[[Path, Path], None], rows: int | str, tmp_path: Path, cache: Cache,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    models = [write(tmp_path / f"{change}.onnx", change, rows) for change in (0.0, 1.0)]
    compiled = [satura.compile(model, threads=1) for model in models]
    expected = compiled[0](X), compiled[1](X)
    entries = sorted(cache.folder.glob("*.program"), key=lambda each: each.stat().st_mtime_ns)
    spoil(entries[0], entries[1])
    loaded: list[object] = []
    with monkeypatch.context() as patch:
        if rows == 3:  # of classes the tables are looked at last
            patch.setattr("satura.artifact.ready.load_all", loaded.append)
        again = satura.compile(models[0], threads=1)
    assert not is_ready(again) and not loaded
    assert np.array_equal(again(X), expected[0])
    assert is_ready(satura.compile(models[0], threads=1))


def test_a_file_that_is_written_meanwhile_is_not_taken_for_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Cache
) -> None:
    path = write(tmp_path / "model.onnx")

    def key_of_before(*arguments: object) -> object:
        key = key_of(*arguments)  # type: ignore[arg-type]
        write(path, changed=1.0)
        return key

    key_of = ready.key_of
    monkeypatch.setattr(ready, "key_of", key_of_before)
    with pytest.raises(ModelError, match="has changed"):
        satura.compile(path, threads=1)
    assert cache.statistics().entries == 0


def test_a_program_is_of_the_file_that_was_compiled_wherever_its_name_leads_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Cache
) -> None:
    monkeypatch.chdir(tmp_path)
    path, one = write(Path("model.onnx"), rows="n"), X[:1]
    first, second = satura.compile(path, threads=1), satura.compile(path, threads=1)
    path.unlink()
    path.mkdir()
    expected = first(X)  # and is kept, though there is no such file any more
    assert cache.statistics().entries == 1 and not is_ready(second)
    path.rmdir()
    third = satura.compile(write(path, rows="n"), threads=1)
    write(Path("new.onnx"), 1.0, "n").replace(path)
    monkeypatch.chdir("/")
    assert is_ready(third)
    assert np.array_equal(third(X), expected) and np.array_equal(third(one), first(one))
    third.save(tmp_path / "saved", {"n": 3})
    assert np.array_equal(satura.open(tmp_path / "saved")(X), expected)


def products(path: Path) -> list[list[Array]]:
    """A model of four products with open columns; arguments of nine classes of sizes."""
    names = [f"w{at}" for at in range(4)]
    inputs: dict[str, Shape | Typed] = {name: (8, name[1:] + "n") for name in names}
    inputs = {"x": (3, 8), **inputs}
    nodes = [node("MatMul", f"x {name}", f"y{name}") for name in names]
    outputs = tuple(f"y{name}" for name in names)
    onnx.save(make_model(nodes, inputs, {}, outputs=outputs), path)
    columns = list(product((1, 400), repeat=4))[:9]
    x = np.ones((3, 8), np.float32)
    return [[x, *(np.ones((8, n), np.float32) for n in each)] for each in columns]


@pytest.mark.parametrize(
    ("most", "lowered"), [pytest.param(None, 0, marks=pytest.mark.deep), (8, 1)]
)
def test_a_class_of_sizes_is_lowered_in_one_process_and_where_too_many_are_kept_alone(
    most: int | None, lowered: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, met = tmp_path / "model.onnx", list[object]()
    monkeypatch.setattr(ready, "MOST_CLASSES", most or ready.MOST_CLASSES)
    every = products(path)
    first = satura.compile(path, threads=1)
    expected = [first.run(each) for each in every]
    assert len(first.cache) == len(every) == 9

    def counted(*arguments: object) -> object:
        met.append(arguments[1])
        return size_class(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(plans, "size_class", counted)
    for _ in range(2):
        met.clear()
        second = satura.compile(path, threads=1)
        assert is_ready(second)
        found = second.run(every[-1])
        assert all(np.array_equal(found[name], expected[-1][name]) for name in found)
        assert len(met) == lowered


def test_keeping_fails_no_call(tmp_path: Path, cache: Cache) -> None:
    path, x = tmp_path / "model.onnx", np.ones((2, 3), np.float32)
    onnx.save(make_model([node("Tanh", "x")], {"x": ("n", 3)}, {}), path)
    compiled = satura.compile(path, threads=1)
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert np.allclose(compiled(x), np.tanh(x))
    assert cache.statistics().entries == 0


def test_data_in_other_files_count(tmp_path: Path, cache: Cache) -> None:
    path, results = tmp_path / "model.onnx", list[Array]()
    for change in (0.0, 1.0):
        model = onnx.load(write(tmp_path / "whole.onnx", change))
        onnx.save(
            model, path, save_as_external_data=True, location="data", size_threshold=0,
        )  # fmt: skip
        results.append(satura.compile(path, threads=1).run({"x": X})["y"])
    assert not np.array_equal(results[0], results[1])
    assert cache.statistics().entries == 0


FIRST_USE = """
import sys
import threading
from importlib.machinery import PathFinder
import satura

started, may_go = threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, path, target=None):
        if name != "satura.rewrite.ops.registry":
            return None
        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def work(module):
            started.set()
            may_go.wait(20)
            execute(module)

        spec.loader.exec_module = work
        return spec

sys.meta_path.insert(0, Slow())
other = threading.Thread(target=satura.compile, args=(sys.argv[1],))
other.start()
started.wait(20)
threading.Timer(0.1, may_go.set).start()
satura.compile(sys.argv[1])
other.join()
"""


def test_a_compile_waits_for_what_another_thread_imports(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIRST_USE, str(write(tmp_path / "model.onnx"))]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
