"""Compilation of kernels: errors, sharing, and many at once."""

from __future__ import annotations

import ctypes
import os
import pkgutil
import subprocess
import sys
from collections import deque
from pathlib import Path
from queue import SimpleQueue

import pytest

import satura
from satura.backend.jit import workers
from satura.backend.jit.cache import default_cache
from satura.backend.jit.machine_code import (
    KernelError,
    KernelSource,
    compile_all,
    is_compiled,
    kernel_address,
    kernel_function,
)
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "kernels"))


def number(value: int) -> KernelSource:
    return KernelSource(
        f"number {value}",
        f"def kernel(args, thread, threads):\n    store_int64(args, 0, {value})\n",
    )


def written(address: int) -> int:
    word = ctypes.c_int64()
    kernel_function(address)(ctypes.addressof(word), 0, 1)
    return word.value


@pytest.mark.parametrize(
    "command",
    [workers._COMMAND, "raise SystemExit(1)", "print('x' * 99)"],
    ids=["helpers", "helpers that die", "helpers that babble"],
)
def test_many_kernels_compile_at_once(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_COMMAND", command)
    monkeypatch.setenv("SATURA_COMPILERS", "1")
    base = 1000 * len(command)
    sources = [number(base + i) for i in range(9)]
    seen: list[tuple[int, int]] = []
    addresses = compile_all(sources, lambda done, count: seen.append((done, count)))
    assert [written(address) for address in addresses] == [base + i for i in range(9)]
    assert seen == [(done, 9) for done in range(10)]
    assert default_cache().statistics().entries == 9


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder with a module of every name there is; whatever is imported leaves `imported`."""
    folder = tmp_path / "trap"
    folder.mkdir()
    text = "open(__file__ + '.imported', 'w').close()\nraise ImportError(__name__)\n"
    for name in {module.name for module in pkgutil.iter_modules()} | sys.stdlib_module_names:
        (folder / f"{name}.py").write_text(text)
    return folder


def test_helpers_import_nothing_from_the_current_folder(
    trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trap)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as in an interactive session
    waiting = deque(map(number, range(3)))
    results: SimpleQueue[workers.Result | None] = SimpleQueue()
    helper = workers._started()
    assert helper is not None
    with helper:
        workers._drive(helper, waiting, results)
    assert list(trap.glob("*.imported")) == []
    assert not waiting
    assert results.qsize() == 3 + 1


@pytest.mark.deep
def test_commands_import_nothing_from_the_current_folder(trap: Path) -> None:
    build = Builder()
    names = ("neg", "abs", "exp", "tanh", "sigmoid", "relu", "erf", "floor")
    outputs = {
        name: build.unary(name, build.input(f"of_{name}", DType.F32, (3 + index,)))
        for index, name in enumerate(names)
    }
    satura.save(build.program(outputs), trap / "model.onnx")
    source = Path(satura.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(source), "SATURA_COMPILERS": "2"}
    subprocess.run(
        [sys.executable, "-P", "-m", "satura", "run", "model.onnx", "--verify"],
        cwd=trap, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    assert list(trap.glob("*.imported")) == []
    assert default_cache().statistics().entries >= 2 * workers._KERNELS_PER_HELPER


WITHOUT_LLVM = """
import sys
import numpy as np
import satura
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType

build = Builder()
x = build.input("x", DType.F32, (9, 70))
w = build.constant(np.eye(70, dtype=np.float32), DType.F32)
program = build.program({"y": build.unary("neg", build.matmul(x, w))})
(y,) = satura.compile(program, threads=1).run({"x": np.ones((9, 70), np.float32)}).values()
assert (y == -1).all()
assert "llvmlite.binding" not in sys.modules
"""


@pytest.mark.deep
def test_a_process_whose_helpers_compile_does_not_load_llvm() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SATURA_COMPILERS"}
    subprocess.run([sys.executable, "-c", WITHOUT_LLVM], env=environment, check=True)
    assert default_cache().statistics().entries >= 3


def test_one_wrong_kernel_among_many_is_named() -> None:
    wrong = KernelSource("odd one", "def kernel(args, thread, threads):\n    nowhere(1)\n")
    with pytest.raises(KernelError, match="kernel odd one does not compile"):
        compile_all([*map(number, range(10)), wrong])


def test_equal_texts_share_their_code() -> None:
    first = number(77)
    twin = KernelSource("twin", first.text)
    assert not is_compiled(first)
    assert kernel_address(first) == kernel_address(twin)
    assert is_compiled(twin)


def test_no_helper_is_started_where_there_is_nothing_to_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SATURA_COMPILERS", "2")
    monkeypatch.setattr(workers, "_started", lambda: pytest.fail("a helper was started"))
    with workers.Compilers() as compilers:
        assert list(compilers.compiled([])) == []


def test_a_kernel_with_an_unknown_helper_is_named() -> None:
    text = "def kernel(args, thread, threads):\n    no_such_helper(args)\n"
    with pytest.raises(KernelError, match="kernel broken does not compile"):
        kernel_address(KernelSource("broken", text))


def test_a_kernel_that_allocates_is_refused() -> None:
    text = "def kernel(args, thread, threads):\n    np.zeros(threads)[thread] += 1\n"
    with pytest.raises(KernelError, match="kernel zeros does not compile"):
        kernel_address(KernelSource("zeros", text))


def test_one_name_may_hold_integers_with_and_without_sign() -> None:
    """A type for both would be a float, which holds neither."""
    lines = (
        "def kernel(args, thread, threads):",
        "    for step in range(threads):",
        "        value = read_u64(args, 0)",
        "        write_i64(args, 1, cast_i64(value))",
        "    for step in range(threads):",
        "        value = read_i64(args, 0)",
        "        write_i64(args, 2, cast_i64(value))",
    )
    words = (ctypes.c_uint64 * 3)(2**63 + 1)
    address = kernel_address(KernelSource("two types", "\n".join([*lines, ""])))
    kernel_function(address)(ctypes.addressof(words), 0, 1)
    assert list(words) == [2**63 + 1] * 3


def test_min_and_max_of_any_kind() -> None:
    lines = (
        "def kernel(args, thread, threads):",
        "    store_int64(args, 0, max(min(load_int64(args, 0), 5), -3))",
        "    put_f32(args, 2, min(get_f32(args, 2), get_f32(args, 3)))",
    )
    address = kernel_address(KernelSource("bounds", "\n".join([*lines, ""])))
    for value, bounded in ((-9, -3), (4, 4), (9, 5)):
        words = (ctypes.c_int64 * 2)(value)
        floats = ctypes.cast(words, ctypes.POINTER(ctypes.c_float))
        floats[2], floats[3] = 0.75, 0.25
        kernel_function(address)(ctypes.addressof(words), 0, 1)
        assert (words[0], floats[2]) == (bounded, 0.25)
