"""Turns: of the threads that want the same, one makes it, and the others wait and then find it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from weakref import WeakValueDictionary


class _Turns:
    """The locks of keys; one that no thread has or waits for is gone."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()


class _Taken(threading.local):
    """Whether this thread has a turn."""

    is_so = False


_turns = _Turns()
_taken = _Taken()


def _forget() -> None:
    """Let no forked child wait for threads that it does not have."""
    global _turns
    _turns = _Turns()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def lock_of(key: str | None) -> AbstractContextManager[object]:
    """What one thread at a time is in for a key; entered by `with` itself, which no interrupt
    leaves locked.

    A thread that is `taking_turn` waits for no other one, which could wait for it.
    """
    if key is None or _taken.is_so:
        return nullcontext()
    turns = _turns
    with turns.guard:
        lock = turns.locks.get(key)
        if lock is None:
            lock = turns.locks[key] = threading.Lock()
        return lock


@contextmanager
def taking_turn() -> Iterator[None]:
    """What this thread asks for inside, as a user's callback may, is made at once."""
    before, _taken.is_so = _taken.is_so, True
    try:
        yield
    finally:
        _taken.is_so = before
