"""What arguments look like: sizes of symbols, looked up where they were checked before; values."""

from __future__ import annotations

from collections.abc import Mapping, Set

from satura.rewrite.errors import CallError
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.program.memory import refuse_copy_beyond_memory
from satura.rewrite.types.tensor_type import Array, TensorType

Sizes = tuple[tuple[str, int], ...]
Values = tuple[tuple[str, str, tuple[int, ...], bytes], ...]
"""Arrays by name: their dtypes, shapes and elements."""
_MOST_KNOWN = 1024


def values_of(arguments: Mapping[str, Array], names: Set[str]) -> Values:
    """The values of the arguments that are named. Raises CallError where one is missing."""
    for name in sorted(names - arguments.keys()):
        among = f" among {sorted(arguments)}" if arguments else ""
        raise CallError(f"input {name!r}, which decides shapes, is missing{among}")
    for name in names:
        refuse_copy_beyond_memory(name, arguments[name])
    chosen = ((name, arguments[name]) for name in sorted(names))
    return tuple([(name, x.dtype.str, x.shape, x.tobytes()) for name, x in chosen])


class Signatures:
    """Checks arguments of inputs of these `types`: fully once per dtypes and shapes.

    What does not fit them may fit `declared`, types with more sizes. Several threads may use it at
    once: all that is done to the dict is atomic.
    """

    def __init__(
        self, types: Mapping[str, TensorType], declared: Mapping[str, TensorType] | None = None
    ) -> None:
        self._types = types
        self._declared = declared
        self._known: dict[tuple[object, ...], Sizes] = {}

    def sizes(self, arguments: Mapping[str, Array]) -> Sizes:
        """Sizes of the symbols, in order of their names. Raises CallError as `sizes_of` does."""
        signature = tuple([(name, each.dtype, each.shape) for name, each in arguments.items()])
        found = self._known.get(signature)
        if found is None:
            found = tuple(sorted(self._checked(arguments).items()))
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[signature] = found
        return found

    def _checked(self, arguments: Mapping[str, Array]) -> dict[str, int]:
        try:
            return sizes_of(self._types, arguments)
        except CallError:
            if self._declared is None:
                raise
            return sizes_of(self._declared, arguments)
