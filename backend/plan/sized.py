"""Numbers of a plan as functions of sizes: what is left of a class of sizes when it is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from satura.backend.plan.buffers import Arena, Lifetime, Packing
from satura.backend.sizes.evaluation import facts_function, values_function
from satura.backend.sizes.size import Call, Fact
from satura.rewrite.errors import ProgramError
from satura.rewrite.types.dims import Dim

if TYPE_CHECKING:
    from numpy.typing import NDArray

Sizes = Mapping[str, int]


class Table(NamedTuple):
    """Words of the argument table: `numbers`, of which those at `places` are the values of dims
    number `which`; those at `in_arena` start where the buffers of these numbers are."""

    numbers: NDArray[np.int64]
    regions: NDArray[np.int64]
    places: NDArray[np.int64]
    which: NDArray[np.int64]
    in_arena: NDArray[np.int64]
    buffers: NDArray[np.int64]


class Numbers(NamedTuple):
    """What the sizes of a call decide: bytes of the results, work per step, the arena, what gives
    the words of the argument table, and scratch bytes per thread."""

    results: int
    works: tuple[int, ...]
    arena: Arena
    words: Callable[[], NDArray[np.int64]]
    scratch: int


@dataclass(frozen=True)
class Sized:
    """Numbers for all sizes for which `facts` hold.

    `dims` are the bytes of the results, work per step, bytes per buffer, kinds of scratch, and
    words of the table. The lifetimes of `buffers` count, and not their sizes.
    """

    facts: tuple[Fact, ...]
    calls: Mapping[str, Call]
    dims: tuple[Dim, ...]
    steps: int
    scratches: int
    buffers: tuple[Lifetime, ...]
    table: Table

    def failing(self, sizes: Sizes) -> Fact | None:
        """The first fact that does not hold; None for sizes of this class."""
        number = self._first_failing(sizes)
        return None if number < 0 else self.facts[number]

    def at(self, sizes: Sizes) -> Numbers:
        """The numbers for sizes of this class. Raises ProgramError for one beyond words."""
        results, *values = self._values(sizes)
        works, values = values[: self.steps], values[self.steps :]
        lengths, values = values[: len(self.buffers)], values[len(self.buffers) :]
        scratch, values = values[: self.scratches], values[self.scratches :]
        arena = self._packing.arena(lengths)
        offsets = as_words(arena.offsets.values())
        words = partial(_words, self.table, as_words(values), offsets)
        return Numbers(results, tuple(works), arena, words, max(scratch, default=0))

    @cached_property
    def _first_failing(self) -> Callable[[Sizes], int]:
        return facts_function(self.facts, self.calls)

    @cached_property
    def _values(self) -> Callable[[Sizes], tuple[int, ...]]:
        return values_function(self.dims, self.calls)

    @cached_property
    def _packing(self) -> Packing:
        return Packing(self.buffers)


def as_words(numbers: Iterable[int]) -> NDArray[np.int64]:
    """The numbers as kernels take them. Raises ProgramError for one that is longer."""
    try:
        return np.fromiter(numbers, np.int64)
    except OverflowError:
        raise ProgramError("an extent or a stride would be above 2**63") from None


def _words(
    table: Table, values: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The argument table: made when it is needed, as plans of many sizes are kept."""
    words = table.numbers.copy()
    words[table.places] = values[table.which]
    words[table.in_arena] += offsets[table.buffers]
    return words
