"""Memory that one call at a time works in, whatever its sizes: it grows to the largest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satura.backend.plan.buffers import ALIGNMENT

PERIOD = 64  # calls after which memory that none of them needed is given back


class Workspace:
    """An arena for intermediate tensors, and scratch memory of all threads."""

    def __init__(self) -> None:
        self.arena = _aligned_bytes(0)
        self._scratch = _aligned_bytes(0)
        self._largest = (0, 0)
        self._calls = 0
        self._set_addresses()

    def fit(self, arena: int, scratch: int) -> None:
        """Make room for a call that needs so many bytes.

        It may be smaller than before: memory of which the last calls needed less than half goes.
        """
        self._largest = max(self._largest[0], arena), max(self._largest[1], scratch)
        self._calls += 1
        if arena > self.arena.size or scratch > self._scratch.size:
            self._resize(max(arena, self.arena.size), max(scratch, self._scratch.size))
        elif self._calls >= PERIOD:
            if sum(self._largest) < self.size // 2:
                self._resize(*self._largest)
            self._largest, self._calls = (arena, scratch), 0

    @property
    def size(self) -> int:
        """Bytes of all that it holds."""
        return self.arena.size + self._scratch.size

    def _resize(self, arena: int, scratch: int) -> None:
        if arena != self.arena.size:
            self.arena = _aligned_bytes(arena)
        if scratch != self._scratch.size:
            self._scratch = _aligned_bytes(scratch)
        self._set_addresses()

    def _set_addresses(self) -> None:
        self.addresses = int(self.arena.ctypes.data), int(self._scratch.ctypes.data)


def _aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Uninitialised bytes that start at a cache line."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -int(memory.ctypes.data) % ALIGNMENT
    return memory[start : start + size]
