"""What an op means in a proof: its shape, its dtype, and where each element comes from.

The element at an index is a z3 term: an element of a variable at some index, or a function of such
terms that z3 knows nothing about. An index is a tuple of polynomials. What an op demands of its
operands goes to a `Judge`: of a left side it is assumed, of a right side it has to be proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import z3

from satura.rewrite.prove.paths import Fact, Path
from satura.rewrite.types.dims import Dim

Index = tuple[Dim, ...]


@dataclass(frozen=True)
class Elements:
    """A tensor: `at` gives the element at an index, and anything for one outside the shape."""

    shape: tuple[Dim, ...]
    dtype: z3.ArithRef
    at: Callable[[Index], z3.ExprRef]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def moved(self, shape: Sequence[Dim], at: Callable[[Index], z3.ExprRef]) -> Elements:
        return Elements(tuple(shape), self.dtype, at)


class Judge(Protocol):
    """What becomes of an op's demands."""

    path: Path

    def always(self, fact: Fact, reason: str) -> None:
        """A demand that is checked when a program is built, for all sizes."""

    def same(self, left: Dim, right: Dim, reason: str) -> None:
        """A demand, checked when a program is built, that two dims are equal for all sizes."""

    def natural(self, dim: Dim, reason: str) -> None:
        """A demand that a size is not negative."""

    def at_run_time(self, fact: Fact, dims: Sequence[Dim], reason: str) -> None:
        """A demand on actual sizes, which is checked earlier only where all of `dims` are ints."""

    def fail(self, reason: str) -> None:
        """A demand that does not hold. It never returns."""

    def hint(self, lemma: Callable[[], object]) -> None:
        """Keep `lemma`, which tells the solver what helps a proof."""


def demand(judge: Judge, holds: bool, reason: str) -> None:
    """Demand what is known already to hold or not."""
    if not holds:
        judge.fail(reason)


def demand_one_shape(
    judge: Judge, x: Elements, y: Elements, reason: str = "the operands' shapes differ"
) -> None:
    """Demand that both have one shape."""
    demand(judge, x.rank == y.rank, "the ranks differ")
    for mine, theirs in zip(x.shape, y.shape, strict=True):
        judge.same(mine, theirs, reason)
