"""Worker threads and the native code that steps through a program.

A *job* is a block of int64 words that says which rows of a program table to run. A step is cut into
as many *shares* as it may use threads. Whoever calls is thread 0 and *leads*: it publishes a step,
computes share 0 and then every other share that nobody has claimed yet, and waits for those that
others have. So it never waits for a worker that is asleep or has not got a processor, and what a
share computes does not depend on who computes it. `serve` is what workers spend their lives in:
native code without the interpreter lock, where they watch for steps, then sleep until woken.

Workers never read a job, only the pool's own words: what they read of a step is of that step if
they can claim a share of it, since no step follows before all shares are claimed and done.

Waiting is bounded spinning first (steps and calls follow one another within microseconds), then
giving up the processor, and between jobs sleep.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from enum import IntEnum
from functools import cache, partial

from satura.backend.jit.machine_code import KernelSource, kernel_address, kernel_function
from satura.rewrite.system.threads import started

_SPINS = 2000
_WORDS_PER_LINE = 8
_LINE = 8 * _WORDS_PER_LINE
_MOST_THREADS = 1024


class Job(IntEnum):
    """The words of a job. With `WAKES`, workers that sleep are woken for it."""

    TABLE = 0
    FIRST = 1
    LAST = 2
    WAKES = 3
    WORDS = 4


class _Control(IntEnum):
    """The words that a pool's threads share. What different threads write has lines of its own;
    mutex and condition have room for any platform's.

    `STEP` is the number of the last step, times the most threads, plus the threads it may use.
    `DONE` counts the shares that workers have finished. From `CLAIMS` on each share has a line
    with the number of the last step in which it was claimed.
    """

    STEP = 0
    KERNEL = 1
    ARGUMENTS = 2
    ACTIVE = 3  # how many threads the job has that runs now: those sleep only when it has ended
    STOP = 4
    DONE = 1 * _WORDS_PER_LINE
    SLEEPERS = 2 * _WORDS_PER_LINE
    MUTEX = 3 * _WORDS_PER_LINE
    CONDITION = 6 * _WORDS_PER_LINE
    CLAIMS = 9 * _WORDS_PER_LINE
    WORDS = (9 + _MOST_THREADS) * _WORDS_PER_LINE


_RUN = KernelSource("run", f"""\
def kernel(job, thread, threads):
    table = load_int64(job, {Job.TABLE})
    for step in range(load_int64(job, {Job.FIRST}), load_int64(job, {Job.LAST})):
        call_kernel(load_int64(table, 3 * step), load_int64(table, 3 * step + 1), 0, 1)
""")  # fmt: skip

_LEAD = KernelSource("lead", f"""\
def kernel(control, job, threads):
    table = load_int64(job, {Job.TABLE})
    number = atomic_load(control) // {_MOST_THREADS}
    done = atomic_load(control + {8 * _Control.DONE})
    active = 0
    for step in range(load_int64(job, {Job.FIRST}), load_int64(job, {Job.LAST})):
        code = load_int64(table, 3 * step)
        arguments = load_int64(table, 3 * step + 1)
        width = min(load_int64(table, 3 * step + 2), threads)
        if width == 1:
            call_kernel(code, arguments, 0, 1)
            continue
        number += 1
        store_int64(control, {_Control.KERNEL}, code)
        store_int64(control, {_Control.ARGUMENTS}, arguments)
        atomic_store(control, number * {_MOST_THREADS} + width)
        if active == 0:
            active = 1
            atomic_store(control + {8 * _Control.ACTIVE}, threads)
            if load_int64(job, {Job.WAKES}) != 0:
                if atomic_load(control + {8 * _Control.SLEEPERS}) > 0:
                    lock(control + {8 * _Control.MUTEX})
                    unlock(control + {8 * _Control.MUTEX})
                    wake_all(control + {8 * _Control.CONDITION})
        call_kernel(code, arguments, 0, width)
        for share in range(1, width):
            claim = control + {8 * _Control.CLAIMS} + {_LINE} * share
            if atomic_max(claim, number) < number:
                call_kernel(code, arguments, share, width)
            else:
                done += 1
        spins = 0
        while atomic_load(control + {8 * _Control.DONE}) < done:
            spins += 1
            if spins < {_SPINS}:
                relax()
            else:
                yield_processor()
    atomic_store(control + {8 * _Control.ACTIVE}, 0)
""")  # fmt: skip

_SERVE = KernelSource("serve", f"""\
def kernel(control, thread, seen):
    mutex = control + {8 * _Control.MUTEX}
    condition = control + {8 * _Control.CONDITION}
    spins = 0
    while True:
        step = atomic_load(control)
        if step != seen:
            seen = step
            spins = 0
            number = step // {_MOST_THREADS}
            width = step - number * {_MOST_THREADS}
            code = load_int64(control, {_Control.KERNEL})
            arguments = load_int64(control, {_Control.ARGUMENTS})
            share = thread
            for other in range(1, width):
                if share >= width:
                    share = 1
                claim = control + {8 * _Control.CLAIMS} + {_LINE} * share
                if atomic_load(claim) < number:
                    if atomic_max(claim, number) < number:
                        call_kernel(code, arguments, share, width)
                        atomic_add(control + {8 * _Control.DONE}, 1)
                share += 1
            continue
        spins += 1
        if spins < {_SPINS}:
            relax()
            continue
        if atomic_load(control + {8 * _Control.ACTIVE}) > thread:
            yield_processor()
            continue
        spins = 0
        lock(mutex)
        atomic_add(control + {8 * _Control.SLEEPERS}, 1)
        if atomic_load(control + {8 * _Control.STOP}) == 0 and atomic_load(control) == seen:
            sleep_until_woken(condition, mutex)
        atomic_add(control + {8 * _Control.SLEEPERS}, -1)
        unlock(mutex)
        if atomic_load(control + {8 * _Control.STOP}) != 0:
            break
""")  # fmt: skip

SOURCES = (_RUN, _LEAD, _SERVE)


class Pool:
    """Threads that serve one job at a time. Workers start when a job first needs them."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._busy = threading.Lock()
        self._workers: dict[int, threading.Thread] = {}  # each enters itself
        self._control = (ctypes.c_int64 * _Control.WORDS)()
        self._address = ctypes.addressof(self._control)
        self._lead = kernel_function(kernel_address(_LEAD))
        self._serve = kernel_function(kernel_address(_SERVE))
        library = ctypes.CDLL(None)
        library.pthread_mutex_init(self._at(_Control.MUTEX), None)
        library.pthread_cond_init(self._at(_Control.CONDITION), None)

    def try_run(self, job: int, threads: int) -> bool:
        """Runs the job at address `job` on `threads` threads; False if the pool is taken."""
        if self._busy.locked():
            return False
        # Not `acquire(blocking=False)`: an interrupt right after it would leave the lock taken.
        # Where another thread comes first, this one waits for one job.
        with self._busy:
            threads = min(threads, _MOST_THREADS - 1)
            if len(self._workers) < threads - 1:
                self._grow(threads - 1)
            self._lead(self._address, job, threads)
        return True

    def close(self) -> None:
        """Ends the workers; called when the interpreter exits."""
        if os.getpid() != self._process:
            return  # a fork's copy: its workers never existed here
        if not self._busy.acquire(timeout=1.0):
            return  # a call is under way in a thread that the interpreter does not wait for
        library, mutex = ctypes.CDLL(None), self._at(_Control.MUTEX)
        library.pthread_mutex_lock(mutex)
        self._control[_Control.STOP] = 1
        library.pthread_mutex_unlock(mutex)
        library.pthread_cond_broadcast(self._at(_Control.CONDITION))
        for worker in list(self._workers.values()):
            worker.join(timeout=1.0)

    def _at(self, word: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._address + 8 * word)

    def _grow(self, workers: int) -> None:
        """Starts what lacks. Where the system refuses a thread, others do its work."""
        for number in range(1, workers + 1):
            if number in self._workers:
                continue
            if started(partial(self._work, number), f"satura-{number}", daemon=True) is None:
                break

    def _work(self, number: int) -> None:
        """A worker's life. Of two with one number, as an interrupt makes them, the second ends."""
        this = threading.current_thread()
        if self._workers.setdefault(number, this) is this:
            self._serve(self._address, number, 0)


class _Singleton:
    """The process's pool; a forked child makes its own, since threads do not survive a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def get(self) -> Pool:
        if self._pool is not None:
            return self._pool
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


@cache
def run_alone() -> Callable[[int, int, int], None]:
    """What runs the job at an address on this thread only; the other arguments are 0 and 1."""
    return kernel_function(kernel_address(_RUN))
