"""What was used last, by its key: as much of it as has room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Values of at most so many bytes in all, or a single one: the longest not used go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 0
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of the key, used now; None where there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Give the key this value of `size` bytes, used now."""
        _, before = self._entries.pop(key, (None, 0))
        self._entries[key] = value, size
        self.size += size - before
        while self.size > self._most and len(self._entries) > 1:
            _, (_, gone) = self._entries.popitem(last=False)
            self.size -= gone

    def items(self) -> list[tuple[Key, Value]]:
        """Keys and values, the last used at the end."""
        return [(key, value) for key, (value, _) in self._entries.items()]

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self.size = 0
