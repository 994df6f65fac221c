"""Memory that one call at a time works in, whatever its sizes: it grows to the largest."""

from __future__ import annotations

from collections import deque
from sys import getrefcount
from typing import TYPE_CHECKING

import numpy as np

from satura.backend.cache_lines import CACHE_LINE, address, aligned_bytes, aligned_in, room_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satura.rewrite.types.tensor_type import Array

MOST_IDLE = 256  # calls after which memory that none of them took is given back
PERIOD = 64  # calls after which memory that none of them needed is given back
MOST_KEPT = 1 << 26  # bytes of a result whose memory is kept for others
_KEPT = 2  # of each result: a caller often holds one until it has the next
_ALONE = next(map(getrefcount, [np.empty(0)]))  # of what nothing but a list refers to


class Workspace:
    """An arena for intermediate tensors, scratch memory of all threads, and memory of results.

    A result's memory is used again when the caller has dropped the array and all views of it: they
    all refer to the memory itself.
    """

    def __init__(self) -> None:
        self.arena = aligned_bytes(0)
        self._scratch = aligned_bytes(0)
        self._largest_arena = self._largest_scratch = 0
        self._calls = 0
        self._results: dict[str, list[NDArray[np.uint8]]] = {}
        self._not_needed: dict[str, list[NDArray[np.uint8]]] = {}  # since the period began
        self._set_addresses()

    def fit(self, arena: int, scratch: int) -> None:
        """Make room for a call that needs so many bytes.

        It may be smaller than before: memory of which the last calls needed less than half goes.
        """
        if arena > self._largest_arena:
            self._largest_arena = arena
        if scratch > self._largest_scratch:
            self._largest_scratch = scratch
        self._calls += 1
        if arena > self._room[0] or scratch > self._room[1]:
            self._resize(max(arena, self._room[0]), max(scratch, self._room[1]))
        elif self._calls >= PERIOD:
            if self._largest_arena + self._largest_scratch < self.size // 2:
                self._resize(self._largest_arena, self._largest_scratch)
            self._largest_arena, self._largest_scratch, self._calls = arena, scratch, 0
            self._not_needed, self._results = self._results, {}

    @property
    def size(self) -> int:
        """Bytes of what calls work in."""
        return sum(self._room)

    def result(
        self, name: str, size: int, dtype: np.dtype[np.generic], shape: tuple[int, ...]
    ) -> Array:
        """An uninitialised array of `size` bytes."""
        kept = self._results.get(name)
        if kept is None:
            kept = self._results[name] = self._not_needed.pop(name, [])
        for number, count in enumerate(map(getrefcount, kept)):
            if count == _ALONE and size + CACHE_LINE <= kept[number].size <= 2 * size:
                return aligned_in(kept[number], shape, dtype)
        memory = room_for(size)
        if size <= MOST_KEPT:
            kept[:] = memory, *kept[: _KEPT - 1]
        return aligned_in(memory, shape, dtype)

    def _resize(self, arena: int, scratch: int) -> None:
        if arena != self.arena.size:
            self.arena = aligned_bytes(arena)
        if scratch != self._scratch.size:
            self._scratch = aligned_bytes(scratch)
        self._set_addresses()

    def _set_addresses(self) -> None:
        self._room = self.arena.size, self._scratch.size
        self.addresses = address(self.arena), address(self._scratch)


class Workspaces:
    """Memory for calls at the same time; what no call uses at the moment is kept for the next.

    Threads need no lock: all that is done to the deque is atomic.
    """

    def __init__(self) -> None:
        self._free: deque[tuple[int, Workspace]] = deque()  # with the call that gave it back
        self._calls = 0

    def take(self) -> Workspace:
        """Memory that no other call works in, that of the last call first."""
        self._calls += 1
        try:
            found = self._free.pop()[1]
        except IndexError:
            return Workspace()
        if self._free:
            self._drop_idle()
        return found

    def _drop_idle(self) -> None:
        """Give back what calls have long done without."""
        while self._free:
            try:
                oldest = self._free.popleft()
            except IndexError:
                return
            if oldest[0] >= self._calls - MOST_IDLE:
                self._free.appendleft(oldest)
                return

    def give_back(self, workspace: Workspace) -> None:
        self._free.append((self._calls, workspace))

    @property
    def idle(self) -> int:
        """How many are kept for later calls."""
        return len(self._free)

    def forget(self) -> None:
        """Give back the memory that no call uses."""
        self._free.clear()
