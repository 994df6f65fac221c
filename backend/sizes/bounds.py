"""What is known of sizes from the facts so far: between which numbers each of them lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from functools import reduce
from math import gcd, prod
from operator import and_

from satura.rewrite.types.dims import (
    Atom,
    Dim,
    Quotient,
    SymbolicDim,
    exact_quotient,
    monomials_of,
    of_atom,
)

Interval = tuple[int | None, int | None]
"""The least and the largest value; None where there is no such number."""


class Bounds:
    """Intervals of symbols and `calls`. Without facts a symbol is at least 0, a call at least 1."""

    def __init__(self, calls: Container[str]) -> None:
        self._calls = calls
        self._intervals: dict[Atom, Interval] = {}

    def decide(self, is_zero: bool, dim: SymbolicDim) -> bool:
        """Whether the bounds settle if `dim` is 0, or else if it is below 0."""
        low, high = self.interval(dim)
        if high is not None and high < 0:
            return True
        return low is not None and (low > 0 or (low == 0 and not (is_zero and high != 0)))

    def learn(self, is_zero: bool, dim: SymbolicDim, holds: bool) -> None:
        """Draw what a fact says of a symbol that stands there alone: factor · symbol + number."""
        moving = [(monomial, factor) for monomial, factor in dim.terms if monomial]
        number = sum(factor for monomial, factor in dim.terms if not monomial)
        if len(moving) != 1 or len(moving[0][0]) != 1:
            return
        (atom,), factor = moving[0]
        low, high = self._of(atom)
        if is_zero and holds:
            if number % factor == 0:
                low = high = -number // factor
        elif is_zero:
            if number % factor == 0:
                hole = -number // factor
                low = hole + 1 if low == hole else low
                high = hole - 1 if high == hole else high
        else:  # factor · symbol is below -number, or at least -number
            below = holds == (factor > 0)
            if holds:
                edge = (-number - 1) // factor if factor > 0 else -((-number - 1) // -factor)
            else:
                edge = -(number // factor) if factor > 0 else number // -factor
            if below:
                high = edge if high is None else min(high, edge)
            else:
                low = edge if low is None else max(low, edge)
        self._intervals[atom] = (low, high)

    def reduced(self, is_zero: bool, dim: SymbolicDim) -> tuple[Dim, bool]:
        """The simplest dim that is 0 or negative where `dim` is, and False; or where not, and True.

        Positive common factors are divided by, and the first factor is made positive.
        """
        common = reduce(and_, (Counter(monomial) for monomial, _ in dim.terms))
        for atom in common.elements():
            least, _ = self._of(atom)
            if least is not None and least > 0:
                divided = exact_quotient(dim, of_atom(atom))
                if not isinstance(divided, SymbolicDim):
                    return dim, False
                dim = divided
        number = sum(factor for monomial, factor in dim.terms if not monomial)
        moving = dim - number
        assert isinstance(moving, SymbolicDim)
        factor = gcd(*(factor for _, factor in moving.terms))
        if is_zero and number % factor:
            return 1, False  # never 0
        turns = moving.terms[0][1] < 0
        if turns:
            moving = -moving
            number = -number if is_zero else -number - 1  # a < 0 unless -a - 1 < 0
        terms = tuple((monomial, each // factor) for monomial, each in monomials_of(moving))
        return SymbolicDim(terms) + number // factor, turns and not is_zero

    def _of(self, atom: Atom) -> Interval:
        found = self._intervals.get(atom)
        if found is not None:
            return found
        if isinstance(atom, Quotient):
            above, below = self.interval(atom.numerator), self.interval(atom.denominator)
            if above[0] is None or above[0] < 0 or below[0] is None or below[0] <= 0:
                return None, None
            least = 0 if below[1] is None else above[0] // below[1]
            return least, None if above[1] is None else above[1] // below[0]
        return int(atom in self._calls), None

    def interval(self, dim: Dim) -> Interval:
        """Numbers that `dim` lies between."""
        low: int | None = 0
        high: int | None = 0
        for monomial, factor in monomials_of(dim):
            ranges = [self._of(atom) for atom in monomial]
            if any(least is None or least < 0 for least, _ in ranges):
                return None, None
            least = prod(each[0] or 0 for each in ranges) * factor
            largest: int | None = factor
            for _, top in ranges:
                largest = None if largest is None or top is None else largest * top
            if factor < 0:
                bottom, upper = largest, least
                low = None if low is None or bottom is None else low + bottom
                high = None if high is None else high + upper
            else:
                low = None if low is None else low + least
                high = None if high is None or largest is None else high + largest
        return low, high
