"""The scratch memory of a contraction's thread."""

from __future__ import annotations

from satura.backend.cache_lines import whole_lines


class Layout:
    """Hands out pieces of scratch memory, each on its own cache lines."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, size: int) -> int:
        """The offset of a new piece of `size` bytes."""
        offset = self.size
        self.size += whole_lines(size)
        return offset
