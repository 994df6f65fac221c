"""A system that refuses threads or processes: the work is done by those that there are."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from typing import NoReturn

import pytest

from satura.backend.jit import workers
from satura.backend.jit.kernel import KernelSource
from satura.backend.jit.machine_code import kernel_address
from satura.backend.run.pool import Job, Pool
from satura.errors import SaturaError
from satura.experiments.parallel import beside
from satura.rewrite.system.interrupts import to_the_end


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that were refused: every one from now on."""
    names: list[str] = []

    def refuse(thread: threading.Thread) -> NoReturn:
        names.append(thread.name)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    return names


def sources(count: int) -> list[KernelSource]:
    text = "def kernel(at, thread, threads):\n    store_int64(at, 0, {})\n"
    return [KernelSource("refused", text.format(778_000 + number)) for number in range(count)]


def test_work_to_the_end_is_done_by_the_caller(refused: list[str]) -> None:
    assert to_the_end(threading.current_thread) is threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        to_the_end(lambda: 1 // 0)
    assert refused == ["satura-work"] * 2


def test_this_process_compiles_what_no_helper_does(
    refused: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_helpers_for", lambda kernels, is_here: 2)
    asked = sources(3)
    with workers.Compilers() as compilers:
        assert {source for source, _ in compilers.compiled(asked)} == set(asked)
    assert "satura-compiler" in refused


def test_this_process_compiles_where_no_helper_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(workers, "_helpers_for", lambda kernels, is_here: 2)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    asked = sources(2)
    with workers.Compilers() as compilers:
        assert [source for source, _ in compilers.compiled(asked)] == asked


def test_a_step_for_many_threads_is_run_by_the_caller(refused: list[str]) -> None:
    text = "def kernel(at, thread, threads):\n    store_int64(at, thread, threads)\n"
    written = (ctypes.c_int64 * 4)()
    kernel = kernel_address(KernelSource("share", text))
    table = (ctypes.c_int64 * 3)(kernel, ctypes.addressof(written), 4)
    job = (ctypes.c_int64 * Job.WORDS)()
    job[Job.TABLE], job[Job.LAST] = ctypes.addressof(table), 1
    assert Pool().try_run(ctypes.addressof(job), 4)
    assert list(written) == [4, 4, 4, 4]
    assert "satura-1" in refused


def test_trials_say_what_to_do_without_threads(refused: list[str]) -> None:
    with pytest.raises(SaturaError, match="can't start new thread: take one job"):
        list(beside([("one", lambda: 1), ("two", lambda: 2)], 2))
