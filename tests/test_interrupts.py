"""An interrupt (Ctrl-C) at any moment is a KeyboardInterrupt, and the next call is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import satura
from satura.rewrite.program.builder import Builder
from satura.rewrite.system.interrupts import to_the_end
from satura.rewrite.types.tensor_type import DType
from tests.interrupted import write_models
from tests.tiers import seeds

ROOT = Path(__file__).parent.parent

INTERRUPTER = """
import os, signal, sys

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupter())
"""

COMPILE = """
import ctypes
from satura.backend.jit.machine_code import KernelSource, kernel_address, kernel_function
text = "def kernel(args, thread, threads):\\n    store_int64(args, 0, 5)\\n"
for is_interrupted in (True, False):
    try:
        address = kernel_address(KernelSource("five", text))
    except KeyboardInterrupt:
        assert is_interrupted
    else:
        assert not is_interrupted
word = ctypes.c_int64()
kernel_function(address)(ctypes.addressof(word), 0, 1)
assert word.value == 5
"""

LOAD = """
import satura
for is_interrupted in (True, False):
    try:
        program = satura.load("model.onnx")
    except KeyboardInterrupt:
        assert is_interrupted
    else:
        assert not is_interrupted
assert len(program.nodes) == 2
"""


def run(script: str, module: str, folder: Path) -> None:
    environment = {**os.environ, "SATURA_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", INTERRUPTER + script, module]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=120)


@pytest.mark.parametrize(
    "module",
    [
        "satura.backend.jit.lowering",
        pytest.param("satura.backend.jit.operators", marks=pytest.mark.deep),
        pytest.param("satura.backend.helpers.scalars", marks=pytest.mark.deep),
    ],
)
def test_an_interrupt_while_the_compiler_is_imported(module: str, tmp_path: Path) -> None:
    run(COMPILE, module, tmp_path)


@pytest.mark.parametrize(
    "module",
    ["numpy._core.overrides", pytest.param("onnx.onnx_ml_pb2", marks=pytest.mark.deep)],
)
def test_an_interrupt_while_a_model_is_first_loaded(module: str, tmp_path: Path) -> None:
    build = Builder()
    output = build.unary("exp", build.input("x", DType.F32, (4,)))
    satura.save(build.program({"y": output}), tmp_path / "model.onnx")
    run(LOAD, module, tmp_path)


def test_work_goes_on_after_an_interrupt() -> None:
    interrupted, done = threading.Event(), threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.wait(60)
        done.set()

    with pytest.raises(KeyboardInterrupt):
        to_the_end(work)
    interrupted.set()
    assert done.wait(60)


def test_results_and_errors_are_the_function_s() -> None:
    assert to_the_end(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        to_the_end(lambda: 1 // 0)


def test_other_threads_need_no_further_thread() -> None:
    found: list[tuple[object, object]] = []

    def ask() -> None:
        found.append((threading.current_thread(), to_the_end(threading.current_thread)))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(60)
    assert found[0][0] is found[0][1]


def interrupt(folder: Path, seed: int, moments: int) -> None:
    write_models(folder)
    environment = {**os.environ, "SATURA_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "tests.interrupted", str(folder), str(seed), str(moments)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=600, capture_output=True, text=True
    )
    assert not done.returncode and "Exception ignored" not in done.stderr, done.stderr


@pytest.mark.deep
def test_calls_are_right_after_interrupts_at_random_moments(tmp_path: Path) -> None:
    interrupt(tmp_path, 0, 30)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(100))
def test_a_thousand_interrupts_at_random_moments(seed: int, tmp_path: Path) -> None:
    interrupt(tmp_path, seed, 10)


def test_a_fork_waits_until_work_is_done() -> None:
    """A child would have the locks that the work holds, and no thread to release them."""
    started = threading.Event()
    done: list[bool] = []

    def work() -> None:
        started.set()
        time.sleep(0.2)
        done.append(True)

    thread = threading.Thread(target=to_the_end, args=(work,))
    thread.start()
    assert started.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if done and to_the_end(lambda: 5) == 5 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join(60)


AFTER_NUMPY = """
import os, satura, time
satura.Opened
time.sleep(0.1)
tasks = [f"/proc/self/task/{task}/schedstat" for task in os.listdir("/proc/self/task")]
*others, _ = sorted(int(open(task).read().split()[0]) for task in tasks)
print(sum(others) // 10**6, "OPENBLAS_THREAD_TIMEOUT" in os.environ)
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="seconds are Linux's")
def test_threads_of_numpy_sleep_when_it_is_imported() -> None:
    variables = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", AFTER_NUMPY]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    milliseconds, is_left = run.stdout.split()
    assert int(milliseconds) < 2 and is_left == "False"
