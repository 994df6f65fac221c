"""What an interrupt (Ctrl-C) must not cut in two."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from threading import Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")


def to_the_end(function: Callable[[], T]) -> T:
    """`function()`, which an interrupt does not stop: it is raised at once, the work goes on.

    So it is with imports of large packages, where half of one breaks the next. Python interrupts
    the main thread alone, so the work is done in another one.
    """
    if current_thread() is not main_thread():
        return function()
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, name="satura-work").start()
    return future.result()


def import_whole(module: str) -> None:
    """Import `module` and what it imports, all of it also where an interrupt comes meanwhile."""
    if module not in sys.modules:
        to_the_end(lambda: import_module(module))
