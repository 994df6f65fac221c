"""Memory that one call at a time works in, whatever its sizes: it grows to the largest."""

from __future__ import annotations

from collections import deque

from satura.backend.cache_lines import aligned_bytes

MOST_IDLE = 256  # calls after which memory that none of them took is given back
PERIOD = 64  # calls after which memory that none of them needed is given back


class Workspace:
    """An arena for intermediate tensors, and scratch memory of all threads."""

    def __init__(self) -> None:
        self.arena = aligned_bytes(0)
        self._scratch = aligned_bytes(0)
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
            self.arena = aligned_bytes(arena)
        if scratch != self._scratch.size:
            self._scratch = aligned_bytes(scratch)
        self._set_addresses()

    def _set_addresses(self) -> None:
        self.addresses = int(self.arena.ctypes.data), int(self._scratch.ctypes.data)


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
