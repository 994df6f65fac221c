"""Running a compiled program: a table of kernels and arguments, stepped through in native code.

Kernels have the ABI `void(int64 args, int64 thread, int64 threads)`. Host ops cut a program into
segments: `Executor.run(first, last)` runs the steps between two of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from satura.backend.run.pool import Job, pool, run_alone
from satura.rewrite.errors import CallError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALL_THREADS = 1 << 30
STATUS_WORDS = 3
_FIRST, _LAST, _WAKES = int(Job.FIRST), int(Job.LAST), int(Job.WAKES)
# Nanoseconds of a call that sleeping workers are woken for: a shorter one is over before they have
# begun, but where the next call follows at once, they are awake for that one.
WORTH_WAKING, WORTH_WAKING_IN_A_ROW = 60_000, 15_000
AT_ONCE = 30_000  # nanoseconds between calls, less than workers take to fall asleep

Describe = Callable[[int, int, int], tuple[str, int]]
"""From the status words to what is said of them, and the index that is meant."""

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Step(NamedTuple):
    """One launch: the addresses of a kernel and of its arguments, and how many threads it may use.

    A step of width 1 runs on thread 0 alone, which is right for kernels of a few microseconds.
    """

    kernel: int
    args: int
    width: int = ALL_THREADS


class Reported(CallError):
    """What a kernel has reported in the status words."""

    def __init__(self, text: str, index: int) -> None:
        super().__init__(text)
        self.index = index


class Status:
    """Words through which kernels report an error: a code (0 for none), a detail and an index.

    A kernel that finds an error stores the others, then the code, and goes on as if nothing had
    happened (it must still stay inside its buffers). The first call that looks reports it.
    """

    def __init__(self, describe: Describe) -> None:
        self.words = (ctypes.c_int64 * STATUS_WORDS)()
        self._describe = describe

    @property
    def address(self) -> int:
        """Where kernels store code, detail and index, as three int64."""
        return ctypes.addressof(self.words)

    def check(self) -> None:
        """Reported if a kernel has reported something since the last check."""
        code, detail, index = self.words
        if code:
            self.words[0] = 0
            raise Reported(*self._describe(code, detail, index))


class Executor:
    """Runs the steps of one program over one set of buffers; one call at a time may use it.

    Executors over different buffers may run at the same time: one of them has the worker pool,
    the others run on their own threads, with identical results.
    """

    def __init__(self, steps: Sequence[Step], threads: int, status: Status | None = None) -> None:
        rows = [(step.kernel, step.args, step.width) for step in steps]
        self._table: NDArray[np.int64] = np.array(rows, np.int64).reshape(len(rows), 3)
        self._threads = threads if any(step.width > 1 for step in steps) else 1
        self._duration = WORTH_WAKING  # of the last call
        self._ended = 0
        self._status = status
        self._job = (ctypes.c_int64 * Job.WORDS)()
        self._job[Job.TABLE] = int(self._table.ctypes.data)
        self._address = ctypes.addressof(self._job)
        self._count = len(steps)
        self._run_alone = run_alone()
        self.launched = 0  # steps run so far

    def run_nothing(self) -> None:
        """Go all the way to native code and back, for measurements to subtract."""
        self._job[_FIRST], self._job[_LAST] = 0, 0
        self._run_alone(self._address, 0, 1)

    def __len__(self) -> int:
        return self._count

    def width(self, step: int) -> int:
        """How many threads a step may use."""
        return int(self._table[step, 2])

    def run_share(self, step: int, share: int, shares: int) -> None:
        """One share of a step that is cut into `shares`, on this thread: for measurements."""
        kernel, arguments, _ = self._table[step].tolist()
        _KERNEL(kernel)(arguments, share, shares)

    def run(self, first: int = 0, last: int | None = None) -> None:
        """Runs steps first … last-1 (all without arguments). CallError if a kernel reports one."""
        end = self._count if last is None else last
        if first >= end:
            return
        status = self._status
        if status is not None:
            status.words[0] = 0  # of a call that an interrupt ended before it looked
        self.launched += end - first
        self._job[_FIRST], self._job[_LAST] = first, end
        if self._threads == 1 or not self._run_together():
            self._run_alone(self._address, 0, 1)
        if status is not None and status.words[0]:
            status.check()

    def _run_together(self) -> bool:
        """Runs the job with workers; False if the pool is taken."""
        start = perf_counter_ns()
        is_next = start - self._ended < AT_ONCE
        least = WORTH_WAKING_IN_A_ROW if is_next else WORTH_WAKING
        self._job[_WAKES] = self._duration >= least
        has_run = pool().try_run(self._address, self._threads)
        if has_run:
            self._ended = perf_counter_ns()
            self._duration = self._ended - start
        return has_run
