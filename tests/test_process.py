"""A call that can be stopped: whatever it does, its parent goes on, with nothing left over."""

from __future__ import annotations

import copyreg
import ctypes
import faulthandler
import gc
import io
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from satura.rewrite.egraph.bindings import bindings
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.errors import SaturaError
from satura.rewrite.isolation.process import FORKS, Doing, KilledError, call
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.constant import Constant
from satura.rules import NONE

pytestmark = pytest.mark.skipif(not FORKS, reason="there is no fork here")


@pytest.fixture(autouse=True, scope="module")
def nothing_left_by_others() -> None:
    """No file of other tests is closed while these count open files."""
    gc.collect()


@pytest.fixture(autouse=True)
def nothing_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No open file, no child and no temporary folder more than before."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = _open_files(), _children()
    yield
    if (_open_files(), _children()) != before or any(tmp_path.iterdir()):
        gc.collect()
    assert (_open_files(), _children()) == before
    assert list(tmp_path.iterdir()) == []


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _children() -> set[str]:
    """Processes that this one has started, also those that wait for it to ask for them."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                found.add(process.name)
    return found


def _loops(doing: Doing, seconds: float = 0.2) -> NoReturn:
    doing("going round", seconds)
    while True:
        pass


def test_it_gives_the_result_and_shared_objects_as_themselves() -> None:
    weights = Constant(np.ones(1000))
    other = Constant(np.zeros(3))
    first, second = call(lambda doing: (weights, other), 10, shared=[weights])
    assert first is weights
    assert second == other and second is not other


def test_a_loop_is_killed_and_says_what_it_did() -> None:
    started = time.monotonic()
    with pytest.raises(KilledError, match="going round took too long") as caught:
        call(_loops, 600)
    assert time.monotonic() - started < 60
    assert caught.value.doing == "going round"


def test_waiting_for_a_busy_cpu_takes_none_of_its_seconds() -> None:
    def slowed(doing: Doing) -> float:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for _ in range(3):
            if os.fork() == 0:
                _loops(lambda text, seconds: None)
        start, wall = time.process_time(), time.monotonic()
        while time.process_time() - start < 0.15:
            pass
        return time.monotonic() - wall

    assert call(slowed, 0.3) > 0.3


def test_what_a_hypervisor_takes_from_it_is_none_of_its_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that gets nothing of its CPU seems to sleep."""

    def sleeps(doing: Doing) -> str:
        time.sleep(0.6)
        return "awake"

    with pytest.raises(KilledError, match="took too long"):
        call(sleeps, 0.1)
    monkeypatch.setattr("satura.rewrite.isolation.process._stolen", time.monotonic)
    assert call(sleeps, 0.1) == "awake"


def test_memory_that_a_slow_call_has_taken_is_told() -> None:
    def hoard(doing: Doing) -> None:
        hoard = mmap.mmap(-1, 3 << 30)  # takes no room before it is written
        _loops(doing)
        del hoard

    with pytest.raises(KilledError, match=r"took too long .* and 3\.\d GiB of memory"):
        call(hoard, 600)


@pytest.mark.deep
def test_it_may_ask_for_more_time() -> None:
    def work(doing: Doing) -> int:
        doing("the long part", 60)
        time.sleep(2)
        return 1

    assert call(work, 1.5) == 1


def test_native_code_that_holds_the_interpreter_is_killed() -> None:
    with pytest.raises(KilledError):
        call(lambda doing: ctypes.PyDLL(None).sleep(60), 0.2)


class _Unpicklable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(first + second)


def test_exceptions_arrive_as_they_are() -> None:
    def fails(doing: Doing) -> None:
        raise SaturaError("no such thing")

    with pytest.raises(SaturaError, match=r"^no such thing$") as caught:
        call(fails, 10)
    assert "in fails" in str(caught.value.__cause__)


def test_exceptions_that_cannot_be_pickled_arrive_as_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A library that another test imports may have taught `pickle` all exceptions.
    monkeypatch.delitem(copyreg.dispatch_table, _Unpicklable, raising=False)

    def fails(doing: Doing) -> None:
        doing("adding", 10)
        raise _Unpicklable(1, 2)

    with pytest.raises(KilledError, match="adding raised _Unpicklable: 3"):
        call(fails, 10)


def test_results_that_cannot_be_pickled_are_reported() -> None:
    with pytest.raises(KilledError, match="pickle"):
        call(lambda doing: lambda: None, 10)


def fault(doing: Doing) -> None:
    faulthandler.disable()  # nobody needs to read where this one came from
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda doing: sys.exit("bye"), r"raised SystemExit\(bye\)"),
        (lambda doing: os._exit(0), "exit status 0"),
        pytest.param(lambda doing: os._exit(7), "exit status 7", marks=pytest.mark.deep),
        (fault, "signal SIGSEGV"),
    ],
)
def test_an_end_without_an_answer_is_a_crash(end: object, message: str) -> None:
    with pytest.raises(KilledError, match=message):
        call(end, 10)  # type: ignore[arg-type]


def test_an_interrupt_in_the_child_does_not_end_the_parent() -> None:
    def interrupts(doing: Doing) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KilledError, match="KeyboardInterrupt"):
        call(interrupts, 10)


def test_memory_is_limited() -> None:
    with pytest.raises(KilledError, match=r"ran out of memory \(the limit is 0.25 GiB"):
        call(lambda doing: len(b"x" * (1 << 30)), 10, memory=1 << 28)


def test_an_interrupt_of_the_parent_kills_the_child() -> None:
    def interrupt() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            call(lambda doing: _loops(doing, 30), 30)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_during_the_fork_is_not_lost() -> None:
    def interrupts(doing: Doing) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            call(lambda doing: None, 60)

    call(interrupts, 60)


def test_processes_that_the_child_started_end_with_it() -> None:
    def starts(doing: Doing) -> None:
        doing(str(subprocess.Popen(["sleep", "60"]).pid), 0.5)
        _loops_quietly()

    with pytest.raises(KilledError) as caught:
        call(starts, 30)
    deadline = time.monotonic() + 60
    while _is_alive(int(caught.value.doing)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(int(caught.value.doing))


def _files_by_number() -> dict[int, str]:
    """What the numbers of this process's open files stand for."""
    found = {}
    for entry in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError):
            found[int(entry.name)] = str(entry.readlink())
    return found


def test_an_answer_that_cannot_be_read_is_none() -> None:
    known = set(_files_by_number().values())  # pipes of whoever runs the tests among them

    def garbles(doing: Doing) -> None:
        for number, target in _files_by_number().items():
            if target.startswith("pipe:") and target not in known:
                os.write(number, b"\0\0\0\x09no pickle")  # its length, first
        os._exit(0)

    with pytest.raises(KilledError, match="left no answer that can be read"):
        call(garbles, 10)


def test_a_lock_on_stderr_that_another_thread_holds_stops_no_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Locked(io.StringIO):
        def write(self, text: str) -> int:
            with lock:
                return super().write(text)

    lock = threading.Lock()
    monkeypatch.setattr(sys, "stderr", Locked())
    with lock:
        call(lambda doing: print("from the child"), 5)


def _loops_quietly() -> NoReturn:
    while True:
        pass


def _is_alive(process: int) -> bool:
    """Whether it runs; one that waits for its parent to ask does not."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False


def test_the_childs_output_stays_out_of_the_parents(capfd: pytest.CaptureFixture[str]) -> None:
    print("waiting", end="")
    call(lambda doing: print("from the child"), 10)
    sys.stdout.flush()
    captured = capfd.readouterr()
    assert captured.out == "waiting"
    assert captured.err == "from the child\n"


def test_calls_from_threads_are_independent() -> None:
    results: dict[int, object] = {}

    def work(number: int) -> None:
        try:
            results[number] = call(_loops if number % 2 else lambda doing: number, 30)
        except KilledError as error:
            results[number] = error.what[:13]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    late = "took too long"
    assert results == {0: 0, 1: late, 2: 2, 3: late, 4: 4, 5: late}


def _negation() -> Program:
    build = Builder()
    return build.program({"y": build.unary("neg", build.constant(np.ones(3, np.float32)))})


@pytest.mark.deep
def test_the_engine_works_in_a_child_of_a_process_that_has_used_it() -> None:
    program = _negation()
    here = saturate(program, NONE)

    def nested(doing: Doing) -> object:
        saturate(program, NONE)
        return call(lambda doing: saturate(program, NONE).classes, 20)

    assert call(nested, 30) == here.classes


def test_a_child_that_cannot_copy_the_engine_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = _negation()
    here = saturate(program, NONE)

    def work(doing: Doing) -> object:
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no room"):
            patch.setattr(os, "memfd_create", _fails)
            saturate(program, NONE)
        return saturate(program, NONE).classes

    assert call(work, 30) == here.classes


@pytest.mark.deep
def test_the_engine_is_copied_as_far_as_it_is_used_where_it_is_reached_by_a_link(
    tmp_path: Path,
) -> None:
    package = Path(bindings.__file__).resolve().parent
    (tmp_path / "egglog").symlink_to(package)
    show = "from satura.rewrite.egraph.fork import loaded_part; print(len(loaded_part()))"
    sizes = set()
    for first in (package.parent, tmp_path):
        paths = os.pathsep.join([str(first), *sys.path])
        environment = {**os.environ, "PYTHONPATH": paths}
        command = [sys.executable, "-c", show]
        sizes.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(sizes) == 1
    (tmp_path / "egglog").unlink()


def _fails(name: str) -> NoReturn:
    raise OSError("no room")
