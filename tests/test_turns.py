"""Threads that want the same result at the same time: one searches, the others wait for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from satura.backend.jit.kernel import KernelSource
from satura.backend.jit.machine_code import compile_all
from satura.backend.jit.workers import Compilers, Result
from satura.pipeline import stages
from satura.pipeline.remembered import rewrite_once
from satura.pipeline.stages import Searched
from satura.rewrite.program.program import Program
from satura.rewrite.system import turns
from satura.rewrite.system.turns import lock_of, taking_turn
from tests.test_remembered import scaled

THREADS = 4


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs that are searched, each of which takes long enough for others to come."""
    found: list[Program] = []
    search: Callable[..., Searched] = stages.search

    def slow(program: Program, *arguments: object) -> Searched:
        found.append(program)
        sleep(0.05)
        return search(program, *arguments)

    monkeypatch.setattr(stages, "search", slow)
    return found


def test_threads_that_want_the_same_search_once(searched: list[Program]) -> None:
    start = threading.Barrier(THREADS)

    def compiled(_: int) -> tuple[str, bool]:
        start.wait()
        made = rewrite_once(scaled(2.0), "exact")
        return str(made.schedule), made.is_remembered

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(compiled, range(THREADS)))
    assert len(searched) == 1
    assert len({schedule for schedule, _ in found}) == 1
    assert sorted(is_remembered for _, is_remembered in found) == [False, True, True, True]
    assert not turns._turns.locks


def test_threads_that_lack_the_same_kernels_compile_them_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "def kernel(at, thread, threads):\n    store_int64(at, 0, {})\n"
    sources = [KernelSource("turn", text.format(661_000 + number)) for number in range(2)]
    compiled: list[KernelSource] = []
    compile_them: Callable[..., Iterator[Result]] = Compilers.compiled

    def slow(self: Compilers, missing: list[KernelSource]) -> Iterator[Result]:
        compiled.extend(missing)
        sleep(0.05)
        return compile_them(self, missing)

    monkeypatch.setattr(Compilers, "compiled", slow)
    start = threading.Barrier(THREADS)

    def addresses(_: int) -> list[int]:
        start.wait()
        return compile_all(sources)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(addresses, range(THREADS)))
    assert compiled == sources and all(each == found[0] for each in found)


def test_other_models_are_searched_meanwhile() -> None:
    with lock_of("one"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(rewrite_once, scaled(3.0), "exact").result(60)


@pytest.mark.parametrize("raised", [ZeroDivisionError, KeyboardInterrupt])
def test_a_search_that_fails_leaves_the_turn(raised: type[BaseException]) -> None:
    def progress(phase: str, fraction: float) -> None:
        if phase == "saturate":
            raise raised

    with pytest.raises(raised):
        rewrite_once(scaled(4.0), "exact", progress=progress)
    assert not turns._turns.locks
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(rewrite_once, scaled(4.0), "exact").result(60).is_remembered


def test_a_callback_may_ask_for_the_same(searched: list[Program]) -> None:
    def progress(phase: str, fraction: float) -> None:
        if phase == "saturate" and fraction == 0.0:
            rewrite_once(scaled(5.0), "exact")

    rewrite_once(scaled(5.0), "exact", progress=progress)
    assert len(searched) == 2


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    with lock_of("key"), taking_turn():
        child = os.fork()
        if child == 0:
            try:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(lock_of("key").__enter__).result(10)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
