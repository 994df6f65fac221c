"""What a command does about errors, warnings and signals: one line each on stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO, TypeVar

from satura.rewrite.errors import SaturaError

T = TypeVar("T")
FAILURES = (SaturaError, MemoryError, OSError)
"""Errors that end a command with one line."""


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """Leave as Ctrl-C would have us leave: children ended, temporary files removed."""
    sys.exit(128 + number)


def fail(message: str) -> None:
    """Say what is wrong, and exit with 1."""
    complain(message)
    sys.exit(1)


def results_of(names: Sequence[str], work: Callable[[str], T]) -> list[T]:
    """What `work` gives for each name; where it fails, a line says so instead."""
    results = []
    for name in names:
        try:
            results.append(work(name))
        except FAILURES as error:
            text = error_text(error)
            complain(text if name in text else f"{name}: {text}")
    return results


def error_text(error: Exception) -> str:
    """What an error says; of a file what the system says, and what to do where its place is the
    reason."""
    if isinstance(error, MemoryError):
        return f"out of memory: {error or 'there is no more'}"
    if not isinstance(error, OSError) or not error.filename:
        return str(error)
    path, advice = Path(os.fsdecode(error.filename)), ""
    if error.errno == errno.ENOENT and not path.parent.exists():
        advice = f": there is no folder '{path.parent}'"
    elif error.errno == errno.EISDIR:
        advice = ": name a file in it"
    return f"{path}: {error.strerror}{advice}"


def complain(message: str) -> None:
    """Print a message as one line, characters that are not printable escaped."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(message.split()))
    print(f"satura: {shown}", file=sys.stderr)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Warnings as one line each, without the place in satura's own code that raised them."""
    complain(f"warning: {message}")
