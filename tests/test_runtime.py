"""The executor and its worker pool: steps in order, on any number of threads, after anything."""

from __future__ import annotations

import dis
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from satura.backend.jit.machine_code import KernelSource, kernel_address
from satura.backend.run import runtime
from satura.backend.run.pool import Pool
from satura.backend.run.runtime import Executor, Status, Step
from satura.rewrite.errors import CallError

if TYPE_CHECKING:
    from _typeshed import TraceFunction

# y[i] = 2 * y[i] + x[i]
SCALE = KernelSource(
    "scale",
    """\
def kernel(args, thread, threads):
    x = load_int64(args, 0)
    y = load_int64(args, 1)
    count = load_int64(args, 2)
    first = count * thread // threads
    for i in range(first, count * (thread + 1) // threads):
        store_f32(y, i, load_f32(y, i) * f32(2) + load_f32(x, i))
""",
)
# x[i] = y[count - 1 - i]: reads what other threads wrote a step before
REVERSE = KernelSource(
    "reverse",
    """\
def kernel(args, thread, threads):
    x = load_int64(args, 0)
    y = load_int64(args, 1)
    count = load_int64(args, 2)
    first = count * thread // threads
    for i in range(first, count * (thread + 1) // threads):
        store_f32(x, i, load_f32(y, count - 1 - i))
""",
)
COMPLAIN = KernelSource(
    "complain",
    """\
def kernel(args, thread, threads):
    store_int64(args, 1, 42)
    store_int64(args, 0, 7)
""",
)


class Case:
    """Buffers and steps of a small program, and what it computes."""

    def __init__(self, count: int, steps: int, threads: int) -> None:
        self.x = (np.arange(count) / 64).astype(np.float32)
        self.y = np.zeros(count, np.float32)
        self.args: NDArray[np.int64] = np.array(
            [self.x.ctypes.data, self.y.ctypes.data, count], np.int64
        )
        pair = [kernel_address(SCALE), kernel_address(REVERSE)]
        widths = [1 << 30, 1, 2]
        self.steps = [
            Step(pair[i % 2], int(self.args.ctypes.data), widths[i % 3]) for i in range(steps)
        ]
        self.executor = Executor(self.steps, threads)

    def expected(self) -> NDArray[np.float32]:
        x: NDArray[np.float32] = self.x.copy()
        y: NDArray[np.float32] = self.y.copy()
        for i in range(len(self.steps)):
            if i % 2:
                x = y[::-1].copy()
            else:
                y = (y * 2 + x).astype(np.float32)
        return y


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_steps_run_in_order_on_any_number_of_threads(threads: int) -> None:
    case = Case(1001, 14, threads)
    expected = case.expected()
    case.executor.run()
    np.testing.assert_array_equal(case.y, expected)


def test_segments_run_one_after_the_other() -> None:
    whole, parts = Case(100, 9, 2), Case(100, 9, 2)
    whole.executor.run()
    parts.executor.run(0, 4)
    parts.executor.run(4, 4)
    parts.executor.run(4)
    np.testing.assert_array_equal(whole.y, parts.y)


def test_no_call_waits_for_workers_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pool, "_grow", lambda pool, workers: None)
    alone = Pool()
    monkeypatch.setattr(runtime, "pool", lambda: alone)
    case = Case(1001, 14, 3)
    expected = case.expected()
    case.executor.run()
    np.testing.assert_array_equal(case.y, expected)


def test_narrow_steps_need_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(runtime, "pool")
    case = Case(100, 3, 2)
    narrow = [Step(step.kernel, step.args, 1) for step in case.steps]
    expected = case.expected()
    Executor(narrow, 2).run()
    np.testing.assert_array_equal(case.y, expected)


def test_many_python_threads_run_programs_at_once() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(100):
            case = Case(300 + number, 10, 2)
            expected = case.expected()
            case.executor.run()
            if not np.array_equal(case.y, expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_kernel_reports_an_error_once() -> None:
    status = Status(lambda code, detail, at: (f"node 'g': index {detail} (code {code})", at))
    executor = Executor([Step(kernel_address(COMPLAIN), status.address)], 2, status)
    with pytest.raises(CallError, match=r"node 'g': index 42 \(code 7\)"):
        executor.run()
    status.check()


def test_a_report_that_an_interrupt_kept_from_its_call_is_not_the_next_call_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status = Status(lambda code, detail, at: ("reported", at))
    nothing = KernelSource("nothing", "def kernel(args, thread, threads):\n    pass\n")
    steps = [Step(kernel_address(source), status.address) for source in (COMPLAIN, nothing)]
    executor = Executor(steps, 1, status)

    def interrupted(status: Status) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Status, "check", interrupted)
        executor.run(0, 1)
    executor.run(1, 2)


def test_the_pool_survives_a_fork() -> None:
    case = Case(1000, 8, 2)
    expected = case.expected()
    case.executor.run()
    child = os.fork()
    if child == 0:
        again = Case(1000, 8, 2)
        again.executor.run()
        os._exit(0 if np.array_equal(again.y, expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(case.y, expected)


SCRIPT = """
import threading, time
from satura.backend.jit.machine_code import KernelSource, kernel_address
from satura.backend.run.pool import Pool
from satura.backend.run.runtime import Executor, Step
nothing = KernelSource("nothing", "def kernel(args, thread, threads):\\n    pass\\n")
executor = Executor([Step(kernel_address(nothing), 0)] * 3, 3)
executor.run()
"""


INTERRUPTED = """
import threading
import numpy as np
from tests.test_runtime import Case
start = threading.Thread.start
def interrupted(thread):
    if thread.name == "satura-work":  # not one of the pool's
        return start(thread)
    {0}
    raise KeyboardInterrupt
threading.Thread.start = interrupted
case = Case(1000, 8, 3)
try:
    case.executor.run()
    raise SystemExit("no worker started")
except KeyboardInterrupt:
    threading.Thread.start = start
for _ in range(300):
    case = Case(1000, 8, 3)
    expected = case.expected()
    case.executor.run()
    np.testing.assert_array_equal(case.y, expected)
"""


@pytest.mark.parametrize(
    "before",
    ["start(thread)", pytest.param("pass", marks=pytest.mark.deep)],
    ids=["started", "not yet started"],
)
def test_calls_go_on_after_an_interrupt_of_a_worker_s_start(before: str) -> None:
    run = [sys.executable, "-c", INTERRUPTED.format(before)]
    subprocess.run(run, cwd=Path(__file__).parent.parent, check=True, timeout=60)


def interrupt_after(number: int) -> TraceFunction:
    """A trace function that interrupts `Pool.try_run` where signals do: after one of its calls."""
    calls, has_called = 0, False

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        nonlocal calls, has_called
        if frame.f_code is not Pool.try_run.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            calls += has_called
            if has_called and calls == number:
                raise KeyboardInterrupt
            has_called = dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")
        return trace

    return trace


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_pool_is_free_after_an_interrupt(number: int) -> None:
    case, pool = Case(100, 3, 2), Pool()
    case.executor.run()
    job = case.executor._address
    before = sys.gettrace()
    sys.settrace(interrupt_after(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.try_run(job, 2)
    finally:
        sys.settrace(before)
    assert pool.try_run(job, 2)
    pool.close()


def test_an_idle_pool_sleeps() -> None:
    """Its workers come to rest, and then nothing wakes them."""
    script = SCRIPT + textwrap.dedent(
        """
        from pathlib import Path

        def workers():
            tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(pid)]
            lines = [line for task in tasks for line in (task / "status").open()]
            return [line for line in lines if line.startswith(("State", "voluntary"))]

        def rest():
            return all("sleeping" in line for line in workers() if line.startswith("State"))

        pid = int(Path("/proc/self").resolve().name)
        while not rest():
            time.sleep(0.01)
        before = workers()
        time.sleep(0.3)
        assert workers() == before and len(before) >= 4, (before, workers())
        """
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("", marks=pytest.mark.deep),
        pytest.param("raise SystemExit(0)", marks=pytest.mark.deep),
        "threading.Thread(target=lambda: [executor.run() for _ in range(10**9)], daemon=True)"
        ".start(); time.sleep(0.05)",
    ],
)
def test_the_interpreter_exits_cleanly(ending: str) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT + ending], check=True, timeout=60)


def test_jobs_of_different_widths_follow_one_another() -> None:
    """A worker that wakes late, for a job that it has no part in, must not take the next one."""
    cases = [Case(100 + threads, 9, threads) for threads in (2, 5, 3, 2, 4)]
    for _ in range(100):
        for case in cases:
            for first, last in ((0, 4), (4, 4), (4, 9)):
                case.executor.run(first, last)
        fresh = Case(200, 9, 2)
        expected = fresh.expected()
        fresh.executor.run()
        np.testing.assert_array_equal(fresh.y, expected)
