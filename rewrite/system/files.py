"""Files that appear complete or not at all, and files to read that do not block or never end."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import WriteableBuffer

ARTIFACT = b"satura artifact\n"
"""What files of compiled programs begin with."""
UNFINISHED = ".tmp"
"""What the names of files end in that are still being written."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_TIMES_TO_WAIT = 500  # for a reader of a FIFO, of 10 ms each
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_PERMISSIONS = 0o777
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str | Path, flags: int = 0) -> BinaryIO:
    """The regular file at `path`, opened to read; `flags` as for `os.open`.

    Raises OSError for anything else: a FIFO would block, a device may have no end.
    """
    try:
        file = BufferedReader(_NamedFile(str(path), opener=_opener(_READ | flags)))
    except ValueError as error:
        raise _no_name(path, error) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file


class _NamedFile(FileIO):
    """A file of which errors while it is read have its name, too."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """As a file does it."""
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from error

    def readall(self) -> bytes:
        """As a file does it."""
        try:
            return super().readall()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from error


def _open_to_write(name: str, flags: int) -> int:
    """Open what stands at a name. Raises OSError for a FIFO that nobody opens to read."""
    for waited in range(_TIMES_TO_WAIT):
        try:
            descriptor = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.01 * bool(waited))
        else:
            os.set_blocking(descriptor, True)
            return descriptor
    raise OSError(errno.ENXIO, "it is a FIFO that nobody reads", name)


def _opener(flags: int, mode: int = 0o666) -> Callable[[str, int], int]:
    return lambda name, _: os.open(name, flags, mode)


def is_private(status: os.stat_result) -> bool:
    """Whether what has this status belongs to the user, and others may not write to it."""
    if not hasattr(os, "getuid"):
        return True  # no owners to check: the platform keeps user folders private by itself
    return status.st_uid == os.getuid() and not status.st_mode & _OTHERS_MAY_WRITE


@contextmanager
def output_file(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to write what a user asked for: links are followed, and a file is replaced when the
    context ends, as by `atomic_file`, by one that the same users may read.

    What is not a regular file, say a device or a FIFO, is written into. An OSError names `path`.
    """
    from pathlib import Path

    try:
        if is_special(path):
            with open(path, "wb", opener=_open_to_write) as file:
                yield file
        else:
            real = Path(os.path.realpath(path))
            with atomic_file(real, mode) as file:
                keep_mode(real, file, mode)
                yield file
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def keep_mode(path: Path, file: BinaryIO, mode: int = 0o666) -> None:
    """Give `file`, which is to replace what is at `path` or to stand beside it, its permissions.

    Others than its user may not write to it where `mode` says so, whoever could before.
    """
    if hasattr(os, "fchmod") and path.exists():
        never = _OTHERS_MAY_WRITE & ~mode
        os.fchmod(file.fileno(), path.stat().st_mode & _PERMISSIONS & ~never)


def is_special(path: Path) -> bool:
    """Whether something stands at `path`, links followed, that is not a regular file."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except ValueError as error:
        raise _no_name(path, error) from None


def _no_name(path: str | Path, error: ValueError) -> OSError:
    """The error for a name that no file can have, such as one that holds a null character."""
    return OSError(errno.EINVAL, str(error), str(path))


@contextmanager
def atomic_file(path: Path, mode: int = 0o666, syncs: bool = True) -> Iterator[BinaryIO]:
    """A file to write that becomes `path` when the context ends; `mode` is subject to the umask.

    Whatever is raised meanwhile is passed on: `path` is as it was, and nothing is left behind. It
    survives a failing machine where the context `syncs`.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}{UNFINISHED}")
    try:
        with open(temporary, "wb", opener=_opener(_NEW, mode)) as file:
            yield file
            if syncs:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let no other process be in this context for the same folder, where the system has such locks.

    What locks a file itself is gone when another one replaces it.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with ExitStack() as stack:
        with suppress(OSError):  # a folder that may not be read, and some on other machines
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
