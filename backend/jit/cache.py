"""What took long to make, on disk: private to the user, checked when read, replaced atomically.

The cache is a folder of entries named by the hash of everything that determines their content.
Kernels, schedules and programs lie in one folder; each kind has its own limit.
It is only ever an optimisation: an entry that is damaged, truncated or not ours counts as absent,
and a folder that somebody else could write to is not used at all.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from satura.rewrite.system.files import UNFINISHED, atomic_file, is_private, open_regular

if TYPE_CHECKING:
    from logging import Logger
    from typing import BinaryIO

_VERSION = 1  # of an entry
_DIGEST_BYTES = hashlib.sha256().digest_size
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
DEFAULT_LIMIT = 256 * 1024 * 1024
_LIMITS = {"program": 2 * 1024**3}  # they hold weights
_FREE = 4  # times its size: what must be free on the disk for an entry
_COUNTS = 32
_HOUR = 3600  # seconds: no writer takes as long
# Bytes that this process stored in a cache since it counted the entries there.
_uncounted: dict[Cache, int] = {}


@dataclass(frozen=True)
class CacheStatistics:
    """What the cache holds now, `size` with what is half written. `fault` says why its folder is
    not used, and is empty where it is."""

    folder: Path
    fault: str
    entries: int
    size: int

    @property
    def usable(self) -> bool:
        """Whether the folder is used."""
        return not self.fault


@dataclass(frozen=True)
class Cache:
    """Entries of one kind, at most `limit` bytes in all; the least recently used go first.

    A writing process may exceed the limit by a 32nd: it counts entries no more often than that.
    """

    folder: Path
    limit: int = DEFAULT_LIMIT
    kind: str = "kernel"

    def load(self, key: str) -> bytes | None:
        """The payload stored under `key`, or None."""
        if not self._is_usable():
            return None
        path = self._path(key)
        try:
            data = _read_own_file(path)
        except OSError:
            return None
        payload = self._unsealed(key, data)
        if payload is None:
            self.refuse(key)
            return None
        _touch(path)
        return payload

    def store(self, key: str, payload: bytes) -> None:
        """Keeps `payload` under `key`; whoever reads meanwhile sees all of it or nothing."""
        if not self._is_usable(create=True):
            return
        self._write(key, len(payload), lambda file: file.write(self._sealed(key, payload)))

    def file(self, key: str) -> Path | None:
        """The file that was kept under `key`, to be mapped; None where there is none. It is as old
        as its last use, and whoever reads it checks it."""
        path = self._path(key)
        try:
            is_kept = self._is_usable() and path.exists()
        except OSError:
            return None
        if is_kept:
            _touch(path)
        return path if is_kept else None

    def store_file(self, key: str, size: int, write: Callable[[BinaryIO], object]) -> None:
        """Keeps a file of about `size` bytes, as `write` writes it: not where it would be most of
        what the cache may hold, or of what is free on the disk."""
        if size <= self.limit // 2 and self._is_usable(create=True):
            with suppress(OSError):
                system = os.statvfs(self.folder)
                if size * _FREE > system.f_bavail * system.f_frsize:
                    return
            self._write(key, size, write)

    def refuse(self, key: str) -> None:
        """Drops a damaged entry, and says so once."""
        _warn_once(f"{self.folder} has damaged entries; what they held is made anew")
        with suppress(OSError):  # it stays where the folder cannot be written
            self._path(key).unlink()

    def _write(self, key: str, size: int, write: Callable[[BinaryIO], object]) -> None:
        try:
            with atomic_file(self._path(key), _PRIVATE, syncs=False) as file:
                write(file)
            self._evict_when_due(size)
        except IsADirectoryError:
            _warn_once(f"{self._path(key)} is a folder: remove it, as its entry is not kept")
        except OSError as error:
            self._warn_of_loss(error)

    def _warn_of_loss(self, error: OSError) -> None:
        reason = error.strerror or error
        _warn_once(f"{self.folder} cannot be written, nothing is kept there: {reason}")

    def clear(self) -> int:
        """Removes every entry (and what killed writers left); the number of entries removed."""
        removed = len(self._entries())
        if self._is_usable():
            for path in self._files():
                path.unlink(missing_ok=True)
        return removed

    def statistics(self) -> CacheStatistics:
        """Counts and sizes of the entries."""
        entries = self._entries()
        size = sum(size for _, size, _ in self._found())
        return CacheStatistics(self.folder, self._fault(), len(entries), size)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return f".{self.kind}"

    @property
    def _magic(self) -> bytes:
        return f"satura {self.kind} {_VERSION}\n".encode()

    def _sealed(self, key: str, payload: bytes) -> bytes:
        return self._magic + _digest(key, payload) + payload

    def _unsealed(self, key: str, data: bytes) -> bytes | None:
        start = len(self._magic) + _DIGEST_BYTES
        payload = data[start:]
        expected = self._magic + _digest(key, payload)
        return payload if data[:start] == expected else None

    def _is_usable(self, create: bool = False) -> bool:
        """Whether nobody but the user can have written here, and it can be read; else a warning
        says once why not."""
        fault = self._fault()
        if fault:
            _warn_once(
                f"cache {self.folder} is not used, nothing is kept there: {fault}; remove it, or"
                " set SATURA_CACHE to a private folder"
            )
            return False
        try:
            if create:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            self._warn_of_loss(error)
            return False
        return True

    def _fault(self) -> str:
        """Why the folder is not used; empty where it is, or where there is none yet."""
        try:
            status = self.folder.stat()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            return error.strerror or str(error)
        if not stat.S_ISDIR(status.st_mode):
            return "it is not a folder"
        if not is_private(status):
            return "it belongs to somebody else or others may write to it"
        readable = os.access(self.folder, os.R_OK | os.X_OK)
        return "" if readable else "it cannot be read"

    def _files(self) -> list[Path]:
        """Entries and the leftovers of writers that were killed."""
        try:
            paths = sorted(self.folder.iterdir())
        except OSError:
            return []  # there is none, or it cannot be read
        return [path for path in paths if self._is_entry(path) or self._is_unfinished(path)]

    def _is_entry(self, path: Path) -> bool:
        return path.name.endswith(self._suffix)

    def _is_unfinished(self, path: Path) -> bool:
        return path.name.endswith(UNFINISHED) and f"{self._suffix}." in path.name

    def _entries(self) -> list[tuple[float, int, Path]]:
        """Time of last use, size and path of every entry."""
        return [each for each in self._found() if self._is_entry(each[-1])]

    def _found(self) -> list[tuple[float, int, Path]]:
        """The same of every file."""
        found = []
        for path in self._files():
            try:
                status = path.stat()
            except OSError:
                continue  # another process evicted it
            found.append((status.st_mtime, status.st_size, path))
        return found

    def _evict_when_due(self, stored: int) -> None:
        """Evict on a process's first store, then whenever it has stored a 32nd of the limit."""
        uncounted = _uncounted.get(self, self.limit) + stored
        if uncounted >= self.limit / _COUNTS:
            uncounted = 0
            self._evict()
        _uncounted[self] = uncounted

    def _evict(self) -> None:
        """Remove what writers left that were killed, and entries beyond the limit."""
        found = sorted(self._found(), key=lambda each: (self._is_entry(each[-1]), each))
        size = sum(file_size for _, file_size, _ in found)
        left = time.time() - _HOUR
        for used, file_size, path in found:
            if size > self.limit if self._is_entry(path) else used < left:
                path.unlink(missing_ok=True)
                size -= file_size


def default_cache(kind: str = "kernel") -> Cache:
    """The user's cache: $SATURA_CACHE, or a folder where the platform keeps such things."""
    override, limit = os.environ.get("SATURA_CACHE"), _LIMITS.get(kind, DEFAULT_LIMIT)
    if override:
        return Cache(_absolute(override), limit, kind)
    from platformdirs import user_cache_path

    return Cache(user_cache_path("satura") / "kernels", limit, kind)


@cache
def _absolute(folder: str) -> Path:
    """The folder of that name from where the process was when it first asked for it."""
    return Path(folder).absolute()


def logger(name: str) -> Logger:
    """The logger `satura.NAME`; the package of loggers is slow to import, and seldom needed."""
    import logging

    return logging.getLogger(f"satura.{name}")


@cache
def _warn_once(message: str) -> None:
    logger("cache").warning("%s", message)


def _read_own_file(path: Path) -> bytes:
    """The content of a regular file that only the user can have written; OSError otherwise."""
    with open_regular(path, getattr(os, "O_NOFOLLOW", 0)) as file:
        if not is_private(os.fstat(file.fileno())):
            raise PermissionError(f"{path} is not ours")
        return file.read()


def _digest(key: str, payload: bytes) -> bytes:
    """Covers the key too, so that an entry renamed to another key is refused."""
    return hashlib.sha256(key.encode() + b"\0" + payload).digest()


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        logger("cache").debug("%s cannot be touched", path)
