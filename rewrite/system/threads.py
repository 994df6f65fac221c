"""Threads that the system may refuse: it has a limit of them, and each needs room for a stack."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


def started(work: Callable[[], object], name: str, *, daemon: bool) -> Thread | None:
    """A new thread that does `work`; None where the system has no more of them."""
    thread = Thread(target=work, name=name, daemon=daemon)
    try:
        thread.start()
    except (RuntimeError, MemoryError):
        return None
    return thread
