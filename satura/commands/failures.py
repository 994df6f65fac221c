"""What a command does about errors, warnings, signals and a stdout that takes no more: at most one
line each on stderr."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO, TypeVar

from satura.rewrite.errors import CallError, SaturaError, UnsupportedError, shown
from satura.rewrite.system.stopped import Stopped

T = TypeVar("T")
FAILURES = (SaturaError, MemoryError, OSError)
"""Errors that end a command with one line."""
WRONG_CALL = 2  # the exit code, as the library for command lines has it
_WRONG_NAMES = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


def leave(number: int, frame: FrameType | None = None) -> NoReturn:
    """Leave as Ctrl-C would have us leave: children ended, temporary files removed."""
    raise Stopped(128 + number)


@contextmanager
def stdout() -> Iterator[TextIO]:
    """Stdout, to be written to. Where nobody reads on, the command leaves as SIGPIPE would have it
    leave. Raises OSError, which names it, where it takes no more for another reason."""
    try:
        yield sys.stdout
    except OSError as error:
        with suppress(OSError):  # what is still to be written goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            leave(signal.SIGPIPE)
        raise OSError(error.errno, error.strerror, "stdout") from error


def fail(error: Exception) -> NoReturn:
    """Say what is wrong, and exit with 2 where the command was called wrongly, else with 1."""
    complain(error_text(error))
    is_wrong_call = isinstance(error, CallError)  # of an option, a name or inputs
    is_wrong_call &= not isinstance(error.__cause__, UnsupportedError)  # seen late
    is_wrong_call |= any(isinstance(each, _WRONG_NAMES) for each in (error, error.__cause__))
    sys.exit(WRONG_CALL if is_wrong_call else 1)


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
    """What an error and its notes say; of a file what the system says, and what to do where its
    place is the reason."""
    if isinstance(error, MemoryError):
        return f"out of memory: {error or 'there is no more'}"
    if not isinstance(error, OSError) or not error.strerror:
        return "; ".join([str(error), *getattr(error, "__notes__", ())])
    if not error.filename:
        return error.strerror
    path, advice = Path(os.fsdecode(error.filename)), ""
    if error.errno == errno.ENOENT and not path.parent.exists():
        advice = f": there is no folder '{path.parent}'"
    elif error.errno == errno.EISDIR:
        advice = ": name a file in it"
    return f"{path}: {error.strerror}{advice}"


def complain(message: str) -> None:
    """Print a message as one line, characters that are not printable escaped."""
    print(f"satura: {shown(' '.join(message.split()))}", file=sys.stderr)


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


class _Complaints(logging.Handler):
    """Records of satura's loggers as one line each, as warnings are."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def log_lines() -> Iterator[None]:
    """Print what satura logs, from warnings on, as `show_warning` prints warnings."""
    logger, handler = logging.getLogger("satura"), _Complaints(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
