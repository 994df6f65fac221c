"""Bytes of files that are read when they are needed, and not before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO
from weakref import ref

import numpy as np

from satura.rewrite.errors import ModelError
from satura.rewrite.system.files import open_regular

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_BLOCK = 1 << 20  # bytes that stay in a cache
MOST_KEPT = 64  # files; systems let a process have some hundreds


class StoredFile:
    """A file that is read where it is needed.

    The first MOST_KEPT of a process are kept open: also where their names are given to others,
    their bytes stay. Others are opened again. What nobody reads any more is closed when the next
    file comes: a callback at its end would swallow interrupts.
    """

    def __init__(self, path: Path) -> None:
        """Raise OSError where there is no such file."""
        self.path = path
        self._place = path.absolute()  # other folders may be entered
        self._kept: BinaryIO | None = None
        with open_regular(path) as file:
            self._state = _state_of(file)
            _close_unread()
            if len(_KEPT) < MOST_KEPT:
                descriptor = os.dup(file.fileno())
                _KEPT.append((ref(self), descriptor))
                self._kept = os.fdopen(descriptor, "rb", closefd=False)

    @property
    def size(self) -> int:
        """Its bytes."""
        return self._state[0]

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file itself. Raises ModelError where it is not what it was when it was first opened,
        before it is used or after."""
        kept = self._kept
        try:
            found = open_regular(self._place) if kept is None else nullcontext(kept)
        except OSError:  # it is gone, or cannot be read any more
            raise self._changed() from None
        with found as file:
            yield file
            if _state_of(file) != self._state:
                raise self._changed()

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fill `target` with the bytes from `offset` on.

        Raises ModelError where the file is not what it was.
        """
        try:
            with self.opened() as file:
                while target:
                    done = os.preadv(file.fileno(), [target[: 1 << 30]], offset)
                    if done == 0:
                        break
                    target, offset = target[done:], offset + done
                if not target:
                    return
        except OSError:
            pass
        raise self._changed()

    def _changed(self) -> ModelError:
        return ModelError(
            f"'{self.path}' has changed since it was loaded, and what was compiled of it needs it"
            " once more: load it again, and write new models to new files"
        )


_KEPT: list[tuple[ref[StoredFile], int]] = []  # and the descriptor, which the process's end closes


def _close_unread() -> None:
    for pair in list(_KEPT):
        reader, descriptor = pair
        if reader() is None:
            with suppress(ValueError):  # another thread was first
                _KEPT.remove(pair)
                os.close(descriptor)


def _state_of(file: BinaryIO) -> tuple[int, int, int, int]:
    """What changes with the content of a file: its size, its time, and which it is."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


@dataclass(frozen=True)
class Stored:
    """A part of a file, or of bytes in memory."""

    source: StoredFile | bytes
    offset: int
    length: int

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """What it is a part of."""
        return BytesIO(self.source) if isinstance(self.source, bytes) else self.source.opened()

    def blocks(self) -> Iterator[memoryview]:
        """The content piece by piece; each is overwritten by the next."""
        end = self.offset + self.length
        if isinstance(self.source, bytes):
            yield memoryview(self.source)[self.offset : end]
            return
        block = memoryview(bytearray(min(_BLOCK, self.length)))
        for start in range(self.offset, end, _BLOCK):
            piece = block[: end - start]
            self.source.read_into(piece, start)
            yield piece

    def bytes(self) -> NDArray[np.uint8]:
        """A copy of the content."""
        result = np.empty(self.length, np.uint8)
        self.copy_to(result)
        return result

    def copy_to(self, target: NDArray[np.uint8]) -> None:
        """Write the content to `target`, which is as long."""
        if isinstance(self.source, bytes):
            end = self.offset + self.length
            target[...] = np.frombuffer(self.source, np.uint8)[self.offset : end]
        else:
            self.source.read_into(target.data, self.offset)
