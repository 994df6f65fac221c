"""What the tensors of instances cover: dtypes, ranks, and kinds of dims."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import gcd

from satura.rewrite.types.tensor_type import COMPUTED, DType, TensorType

KINDS = ("0", "1", "equal", "coprime", "symbolic")


def kinds_of_dims(type_: TensorType) -> set[str]:
    """The `KINDS` that a shape has; two dims above 1 can be equal or coprime."""
    extents = [dim for dim in type_.shape if isinstance(dim, int)]
    pairs = list(combinations([extent for extent in extents if extent > 1], 2))
    present = {
        "0": 0 in extents,
        "1": 1 in extents,
        "equal": any(first == second for first, second in pairs),
        "coprime": any(gcd(first, second) == 1 for first, second in pairs),
        "symbolic": len(extents) < type_.rank,
    }
    return {kind for kind in KINDS if present[kind]}


class Coverage:
    """Counts over the instances that were added."""

    def __init__(self) -> None:
        self._dtypes: set[DType] = set()
        self._ranks: set[int] = set()
        self.dims = dict.fromkeys(KINDS, 0)

    def add(self, types: Iterable[TensorType]) -> None:
        """Count one instance with tensors of these types."""
        found: set[str] = set()
        for type_ in types:
            self._dtypes.add(type_.dtype)
            self._ranks.add(type_.rank)
            found |= kinds_of_dims(type_)
        for kind in found:
            self.dims[kind] += 1

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dtype.value for dtype in COMPUTED if dtype in self._dtypes)

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted(self._ranks))
