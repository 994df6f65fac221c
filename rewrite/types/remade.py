"""Arrays that are made again when they are asked for: what is kept is how."""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

from satura.rewrite.types.tensor_type import Array

SMALLEST_REMADE = 1 << 16
"""Bytes of an array that is worth it; smaller ones are kept."""


class Remade:
    """Gives an array that lives as long as somebody holds it, and is made anew after that."""

    __slots__ = ("_last", "_make")

    def __init__(self, make: Callable[[], Array]) -> None:
        self._make = make
        self._last: ref[Array] | None = None

    def __call__(self) -> Array:
        found = None if self._last is None else self._last()
        if found is None:
            found = self._make()
            found.flags.writeable = False
            self._last = ref(found)
        return found
