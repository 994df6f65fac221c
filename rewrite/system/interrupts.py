"""What neither an interrupt (Ctrl-C) nor a fork must cut in two: imports, and calls of LLVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from threading import RLock, Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")

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
    work is done in another one. One function is at work at a time.
    """
    if current_thread() is not main_thread():
        with _working:
            return function()
    future: Future[T] = Future()

    def work() -> None:
        try:
            with _working:
                future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, name="satura-work").start()
    return future.result()


def import_whole(module: str) -> None:
    """Import `module` and what it imports, all of it also where an interrupt comes meanwhile."""
    if module not in sys.modules:
        to_the_end(lambda: import_module(module))
