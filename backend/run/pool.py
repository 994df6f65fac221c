"""Worker threads and the native code that steps through a program.

A *job* is a block of int64 words that says which rows of a program table to run with how many
threads. `run` executes one thread's share of a job, with a barrier after each step. `serve` is
what workers spend their lives in: parked in native code without the interpreter lock, woken by
thread 0, which posts a job, takes part in it, and returns when all have passed the last barrier.

Waiting is bounded spinning first (steps and calls follow one another within microseconds), then
giving up the processor.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from enum import IntEnum
from functools import cache

from satura.backend.jit.machine_code import KernelSource, kernel_address, kernel_function

_SPINS = 2000
_WORDS_PER_LINE = 8


class Job(IntEnum):
    """The words of a job; those that threads write meanwhile have cache lines of their own."""

    TABLE = 0
    FIRST = 1
    LAST = 2
    THREADS = 3
    ARRIVED = 1 * _WORDS_PER_LINE
    PASSED = 2 * _WORDS_PER_LINE
    WORDS = 3 * _WORDS_PER_LINE


class _Control(IntEnum):
    """The words that a pool's threads share. Mutex and condition have room for any platform's."""

    GENERATION = 0
    JOB = 1
    STOP = 2
    RUN = 3
    POSTED = 4
    MUTEX = 1 * _WORDS_PER_LINE
    CONDITION = 4 * _WORDS_PER_LINE
    WORDS = 7 * _WORDS_PER_LINE


_RUN = KernelSource("run", f"""\
def kernel(job, thread, threads):
    table = load_int64(job, {Job.TABLE})
    last = load_int64(job, {Job.LAST})
    for step in range(load_int64(job, {Job.FIRST}), last):
        width = min(load_int64(table, 3 * step + 2), threads)
        if thread < width:
            call_kernel(load_int64(table, 3 * step), load_int64(table, 3 * step + 1), thread, width)
        if threads == 1:
            continue
        if width == 1 and step + 1 < last and load_int64(table, 3 * step + 5) == 1:
            continue  # thread 0 goes on alone
        passed = atomic_load(job + {8 * Job.PASSED})
        if atomic_add(job + {8 * Job.ARRIVED}, 1) == threads - 1:
            atomic_store(job + {8 * Job.ARRIVED}, 0)
            atomic_store(job + {8 * Job.PASSED}, passed + 1)
        else:
            spins = 0
            while atomic_load(job + {8 * Job.PASSED}) == passed:
                spins += 1
                if spins < {_SPINS}:
                    relax()
                else:
                    yield_processor()
""")  # fmt: skip

_SERVE = KernelSource("serve", f"""\
def kernel(control, thread, seen):
    mutex = control + {8 * _Control.MUTEX}
    condition = control + {8 * _Control.CONDITION}
    while True:
        spins = 0
        while thread > 0 and spins < {_SPINS} and atomic_load(control) == seen:
            spins += 1
            relax()
        lock(mutex)
        if thread == 0:
            posted = load_int64(control, {_Control.POSTED})
            block = load_int64(control, {_Control.JOB})
            for word in range({Job.THREADS + 1}):
                store_int64(block, word, load_int64(posted, word))
            atomic_store(control, seen + 1)
            wake_all(condition)
        while atomic_load(control) == seen:
            sleep_until_woken(condition, mutex)
        seen = atomic_load(control)
        job = load_int64(control, {_Control.JOB})
        stop = load_int64(control, {_Control.STOP})
        threads = 0
        if stop == 0:
            threads = load_int64(job, {Job.THREADS})
        unlock(mutex)
        if thread < threads:
            call_kernel(load_int64(control, {_Control.RUN}), job, thread, threads)
        if thread == 0 or stop != 0:
            break
""")  # fmt: skip

SOURCES = (_RUN, _SERVE)


class Pool:
    """Threads that serve one job at a time. Workers start when a job first needs them."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._busy = threading.Lock()
        self._workers: dict[int, threading.Thread] = {}  # each enters itself
        self._control = (ctypes.c_int64 * _Control.WORDS)()
        self._address = ctypes.addressof(self._control)
        # Workers may still look at the last barrier of a job whose caller has gone on, so all
        # jobs run in the pool's own block, whose counters never start again. What is posted is
        # copied there under the mutex, together with the new generation: a worker that wakes late
        # must never see the words of one job under the generation of another.
        self._job = (ctypes.c_int64 * Job.WORDS)()
        self._control[_Control.JOB] = ctypes.addressof(self._job)
        self._control[_Control.POSTED] = ctypes.addressof(self._job)
        self._serve = kernel_function(kernel_address(_SERVE))
        self._control[_Control.RUN] = kernel_address(_RUN)
        library = ctypes.CDLL(None)
        library.pthread_mutex_init(ctypes.c_void_p(self._at(_Control.MUTEX)), None)
        library.pthread_cond_init(ctypes.c_void_p(self._at(_Control.CONDITION)), None)

    def try_run(self, job: int, threads: int) -> bool:
        """Runs the job at address `job` on `threads` threads; False if the pool is taken.

        The job must have a step: at its barrier thread 0 waits until all have begun.
        """
        if self._busy.locked():
            return False
        # Not `acquire(blocking=False)`: an interrupt right after it would leave the lock taken.
        # Where another thread comes first, this one waits for one job.
        with self._busy:
            self._grow(threads - 1)
            self._control[_Control.POSTED] = job
            self._serve(self._address, 0, self._control[_Control.GENERATION])
        return True

    def close(self) -> None:
        """Ends the workers; called when the interpreter exits."""
        if os.getpid() != self._process:
            return  # a fork's copy: its workers never existed here
        if not self._busy.acquire(timeout=1.0):
            return  # a call is under way in a thread that the interpreter does not wait for
        self._control[_Control.STOP] = 1
        self._control[_Control.POSTED] = self._control[_Control.JOB]
        self._serve(self._address, 0, self._control[_Control.GENERATION])
        for worker in list(self._workers.values()):
            worker.join(timeout=1.0)

    def _at(self, word: int) -> int:
        return self._address + 8 * word

    def _grow(self, workers: int) -> None:
        generation = self._control[_Control.GENERATION]
        for number in range(1, workers + 1):
            if number not in self._workers:
                threading.Thread(
                    target=self._work,
                    args=(number, generation),
                    name=f"satura-{number}",
                    daemon=True,
                ).start()

    def _work(self, number: int, generation: int) -> None:
        """A worker's life. Of two with one number, as an interrupt makes them, the second ends."""
        this = threading.current_thread()
        if self._workers.setdefault(number, this) is this:
            self._serve(self._address, number, generation)


class _Singleton:
    """The process's pool; a forked child makes its own, since threads do not survive a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def get(self) -> Pool:
        with self._lock:
            if self._pool is None:
                made = Pool()
                atexit.register(made.close)
                self._pool = made
            return self._pool

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._pool = None


pool = _Singleton().get


def run_alone(job: int) -> None:
    """Runs the job at address `job` on this thread only, whatever its number of threads."""
    _runner()(job, 0, 1)


@cache
def _runner() -> Callable[[int, int, int], None]:
    return kernel_function(kernel_address(_RUN))
