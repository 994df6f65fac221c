"""What neither an interrupt (Ctrl-C) nor a fork must cut in two: imports, and calls of LLVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import RLock, current_thread, main_thread
from types import ModuleType
from typing import TypeVar

from satura.rewrite.system.garbage import without_collections
from satura.rewrite.system.threads import started

T = TypeVar("T")

_SLEEP = "OPENBLAS_THREAD_TIMEOUT"

# A fork waits for it: the child would have the locks that another thread holds, and not the thread.
_working = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_working.acquire, after_in_parent=_working.release, after_in_child=_working.release
    )


def to_the_end(function: Callable[[], T]) -> T:
    """`function()`, which an interrupt does not stop: it is raised at once, the work goes on.

    Half an import of a large package would break the next one, and locks of LLVM stay locked where
    an interrupt comes right after they are taken. Python interrupts the main thread alone, so the
    work is done in another one; where the system refuses that, in the caller's, which an interrupt
    stops. One function is at work at a time.
    """
    if current_thread() is not main_thread():
        with _working:
            return function()
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with _working:
                results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = started(work, "satura-work", daemon=False)
    if thread is None:
        with _working:
            return function()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def import_whole(module: str) -> None:
    """Import `module` and what it imports, all of it also where an interrupt comes meanwhile.

    Collections would look through what stays anyway: an eighth of the time.
    """
    if module not in sys.modules:
        with without_collections(), _threads_that_sleep():
            to_the_end(lambda: import_module(module))


def imported(module: str) -> ModuleType | None:
    """The module where it was imported, all of it: a thread that is about it is waited for."""
    return import_module(module) if module in sys.modules else None


@contextmanager
def _threads_that_sleep() -> Iterator[None]:
    """Where NumPy is imported, the threads that its OpenBLAS starts sleep when they have nothing to
    do for a third of a millisecond: by default each core is busy for 20 then."""
    if "numpy" in sys.modules or _SLEEP in os.environ:
        yield
        return
    os.environ[_SLEEP] = "20"  # the logarithm of the cycles; it is read once
    try:
        yield
    finally:
        os.environ.pop(_SLEEP, None)
