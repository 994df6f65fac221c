"""A set that keeps nothing alive, and runs no Python code when something in it dies.

Python drops an interrupt that comes while a callback of a weak reference runs, as that of `WeakSet`
does: the call under way would go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar
from weakref import ref

T = TypeVar("T")

_FEWEST = 16


class Living(Generic[T]):
    """What was added, as long as it lives elsewhere."""

    def __init__(self) -> None:
        self._refs: list[ref[T]] = []
        self._most = _FEWEST

    def add(self, each: T) -> None:
        """Add one more."""
        self._refs.append(ref(each))
        if len(self._refs) > self._most:
            self._refs = [one for one in self._refs if one() is not None]
            self._most = 2 * len(self._refs) + _FEWEST

    def __iter__(self) -> Iterator[T]:
        for one in list(self._refs):
            found = one()
            if found is not None:
                yield found
