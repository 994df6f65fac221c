"""Shares: what is done for some elements of a class, or in some loops over it.

Parts of a fragment that compute the same class meet in one loop (`in_one_loop`), or each has a loop
of its own (`in_loops_apart`). Through a slice fewer elements are seen, through a broadcast more.
"""

from __future__ import annotations

from satura.rewrite.extract.features import Amount
from satura.rewrite.types.attributes import Attribute

NOTHING: Amount = ("cheap.f32", 0.0)

Path = tuple[Attribute, ...]
"""Slices behind one another, the first of them first."""


class SlicedAmount(tuple[str, float]):
    """What is done for some elements of a class alone, those in slices of slices of it."""

    paths: frozenset[Path]

    def __new__(cls, amount: Amount, paths: frozenset[Path]) -> SlicedAmount:
        """This amount, done for the elements that any of the paths leads to."""
        made = super().__new__(cls, amount)
        made.paths = paths
        return made


class CutAmount(tuple[str, float]):
    """The runs that a loop is cut into, as by a pad. Where they end within rows, all but plain
    loops tell each of so many `elements` from its neighbours."""

    elements: float

    def __new__(cls, runs: float, elements: float) -> CutAmount:
        made = super().__new__(cls, ("run", runs))
        made.elements = elements
        return made


def times(amount: Amount, scale: float) -> Amount:
    """What is done for so many times as many elements."""
    name, number = amount
    if isinstance(amount, CutAmount):
        return CutAmount(number * scale, amount.elements * scale)
    if isinstance(amount, SlicedAmount):
        return SlicedAmount((name, number * scale), amount.paths)
    return name, number * scale


def sliced(amount: Amount, slices: Attribute, scale: float) -> Amount:
    """What is done for the elements in a slice, `scale` of all; a loop is cut as often for them."""
    if isinstance(amount, CutAmount):
        return amount
    before = amount.paths if isinstance(amount, SlicedAmount) else ((),)
    return SlicedAmount(
        (amount[0], amount[1] * scale), frozenset((*path, slices) for path in before)
    )


def in_loops_apart(first: Amount, second: Amount) -> Amount:
    """What is done for the elements of one class in two loops apart."""
    name, number = first
    if isinstance(first, CutAmount) and isinstance(second, CutAmount):
        return CutAmount(number + second[1], first.elements + second.elements)
    return name, number + second[1]


def in_one_loop(first: Amount, second: Amount) -> Amount:
    """What is done for the elements of one class that two parts of a fragment see: the more, where
    one may see what the other does, and the sum where they see other slices."""
    larger, smaller = (first, second) if first[1] >= second[1] else (second, first)
    if not (isinstance(larger, SlicedAmount) and isinstance(smaller, SlicedAmount)):
        return larger
    if not larger.paths.isdisjoint(smaller.paths):
        return larger
    return SlicedAmount((larger[0], larger[1] + smaller[1]), larger.paths | smaller.paths)
