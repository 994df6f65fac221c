"""Sizes of symbols by what arguments look like, looked up where they were checked before."""

from __future__ import annotations

from collections.abc import Mapping

from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.types.tensor_type import Array, TensorType

Sizes = tuple[tuple[str, int], ...]
_MOST_KNOWN = 1024


class Signatures:
    """Checks arguments of inputs of these `types`: fully once per dtypes and shapes.

    Several threads may use it at once: all that is done to the dict is atomic.
    """

    def __init__(self, types: Mapping[str, TensorType]) -> None:
        self._types = types
        self._known: dict[tuple[object, ...], Sizes] = {}

    def sizes(self, arguments: Mapping[str, Array]) -> Sizes:
        """Sizes of the symbols, in order of their names. Raises CallError as `sizes_of` does."""
        signature = tuple([(name, each.dtype, each.shape) for name, each in arguments.items()])
        found = self._known.get(signature)
        if found is None:
            found = tuple(sorted(sizes_of(self._types, arguments).items()))
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[signature] = found
        return found
