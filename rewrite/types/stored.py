"""Bytes of files that are read when they are needed, and not before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.errors import ModelError
from satura.rewrite.system.files import open_regular

_BLOCK = 1 << 20  # bytes that stay in a cache


class StoredFile:
    """A file that is kept open: also where its name is given to another, its bytes stay."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where there is no such file."""
        self.path = path
        with open_regular(path) as file:
            self._descriptor = os.dup(file.fileno())
        finalize(self, os.close, self._descriptor)
        self._state = self._found_state()

    @property
    def size(self) -> int:
        """Its bytes."""
        return self._state[0]

    def _found_state(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def mapped(self) -> memoryview:
        """The content where the system has it; only to be read while the file is new."""
        return memoryview(mmap(self._descriptor, 0, access=ACCESS_READ) if self.size else b"")

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fill `target` with the bytes from `offset` on.

        Raises ModelError where the file is not what it was when it was opened.
        """
        while target:
            done = os.preadv(self._descriptor, [target[: 1 << 30]], offset)
            if done == 0:
                break
            target, offset = target[done:], offset + done
        if not target and self._found_state() == self._state:
            return
        raise ModelError(
            f"'{self.path}' has changed since it was loaded, and what was compiled of it needs it"
            " once more: load it again, and write new models to new files"
        )


@dataclass(frozen=True)
class Stored:
    """A part of a file, or of bytes in memory."""

    source: StoredFile | bytes
    offset: int
    length: int

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
