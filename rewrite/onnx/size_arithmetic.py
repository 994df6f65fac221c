"""Arithmetic on the elements of values that sizes decide: numbers, dims, and fractions of sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm, trunc

import numpy as np

from satura.rewrite.types.clamps import is_positive, largest, never_negative, smallest
from satura.rewrite.types.dims import (
    Dim,
    SymbolicDim,
    exact_quotient,
    known_at_least,
    static,
)

_FINEST = 2**8  # parts of a whole: with more of them products of sizes are not exact in floats


@dataclass(frozen=True)
class Ratio:
    """A fraction of sizes. Floats round it unless its parts are halves, quarters and so on: not so
    far that a whole part is another one."""

    above: Dim
    below: int


Element = int | float | SymbolicDim | Ratio
Truth = bool | Dim


class Undecided(Exception):
    """The value depends on data or on sizes."""


def undecided(*_: Element) -> Element:
    raise Undecided


@dataclass(frozen=True)
class Assumed:
    """Comparisons that come out as `at` some sizes: all of `natural` are at least 0 then."""

    at: Callable[[Dim], int]
    natural: dict[SymbolicDim, None] = field(default_factory=dict)  # in order

    def is_natural(self, dim: SymbolicDim) -> bool:
        """Whether `dim` is at least 0, from now on."""
        found = self.at(dim) >= 0
        taken = dim if found else -dim - 1
        if isinstance(taken, SymbolicDim):
            self.natural[taken] = None
        return found


class Arithmetic:
    """Functions of elements. What sizes decide, and no dim expresses, is as `assumed`, if it is.

    None of the `extents` is negative: calls at which one would be are refused.
    """

    def __init__(self, assumed: Assumed | None = None, extents: Collection[Dim] = ()) -> None:
        self._assumed, self._extents = assumed, extents
        self.unary: dict[str, Callable[..., Element]] = {
            "neg": _minus,
            "abs": lambda a: self.greatest_of(a, _minus(a)),
            "relu": lambda a: self.greatest_of(a, 0),
            "floor": _floor,
            "ceil": lambda a: _minus(_floor(_minus(a))),
            "round": _round,
            "not": _not,
        }
        self.logic: dict[str, Callable[..., Truth]] = {
            "and": _and, "or": _or, "xor": lambda a, b: _not(self._equal(a, b)),
        }  # fmt: skip
        self.binary: dict[str, Callable[..., Truth | Element]] = {
            "add": plus,
            "sub": lambda a, b: plus(a, _minus(b)),
            "mul": times,
            "div": self._divide,
            "mod": _modulo,
            "fmod": self._remainder,
            "pow": _power,
            "max": self.greatest_of,
            "min": self.least_of,
            "eq": self._equal,
            "le": self._at_most,
            "lt": self._less,
            **self.logic,
        }

    def converted(self, is_float: bool) -> Callable[..., Element]:
        """A cast to floats, or to integers."""
        return _to_float if is_float else self._to_integer

    def is_not_zero(self, a: Element) -> Truth:
        return _not(self._equal(a, 0))

    def least_of(self, a: Element, b: Element) -> Element:
        is_less = self._at_most(a, b)
        if isinstance(is_less, SymbolicDim):
            return _decided(smallest(_dim(a), _dim(b)))
        return a if is_less or _is_nan(a) else b

    def greatest_of(self, a: Element, b: Element) -> Element:
        is_less = self._at_most(a, b)
        if isinstance(is_less, SymbolicDim):
            return _decided(largest(_dim(a), _dim(b)))
        return b if is_less or _is_nan(b) else a

    def _at_most(self, a: Element, b: Element) -> Truth:
        """Whether a <= b: a dim that is 0 or 1 where that depends on sizes."""
        if isinstance(a, int | float) and isinstance(b, int | float):
            return a <= b
        less, more = _ratio(a), _ratio(b)
        difference = more.above * less.below - less.above * more.below
        if known_at_least(-difference, 1):
            return False
        found = True if known_at_least(difference, 0) else is_positive(difference + 1)
        return self.is_natural(difference) if found is None else found

    def _less(self, a: Element, b: Element) -> Truth:
        """Whether a < b, which is not whether b <= a fails: NaN is neither."""
        if isinstance(a, int | float) and isinstance(b, int | float):
            return a < b
        return _not(self._at_most(b, a))

    def _equal(self, a: Element, b: Element) -> Truth:
        return True if a == b else _and(self._at_most(a, b), self._at_most(b, a))

    def is_natural(self, dim: Dim) -> bool:
        """Whether a dim is at least 0 at all sizes, or as is assumed."""
        if not isinstance(dim, SymbolicDim):
            return dim >= 0
        if never_negative(dim, [*self._extents]):
            return True
        if self._assumed is None:
            raise Undecided
        return self._assumed.is_natural(dim)

    def _divide(self, a: Element, b: Element) -> Element:
        """Integer division, which truncates: floor is the same where both are at least 0."""
        numerator, denominator = _dim(a), _dim(b)
        if isinstance(numerator, int) and isinstance(denominator, int):
            if denominator == 0:
                return 0
            quotient = abs(numerator) // abs(denominator)
            return quotient if (numerator < 0) == (denominator < 0) else -quotient
        even = exact_quotient(numerator, denominator)
        if even is not None:
            return even
        if denominator == 0 or not known_at_least(denominator, 0):
            raise Undecided
        if self.is_natural(numerator):
            return numerator // denominator
        return -(-numerator // denominator)

    def _remainder(self, a: Element, b: Element) -> Element:
        """What is left of a dividend by a positive number, with the sign of the dividend."""
        if isinstance(b, SymbolicDim | Ratio) or b <= 0 or b != trunc(b):
            raise Undecided
        return plus(a, times(self._divide(a, int(b)), -int(b)))

    def _to_integer(self, a: Element) -> Element:
        if isinstance(a, Ratio):
            return _floor(a) if self.is_natural(a.above) else _minus(_floor(_minus(a)))
        if isinstance(a, SymbolicDim):
            return a
        if isinstance(a, float) and not np.isfinite(a):
            raise Undecided
        return trunc(a)


def _is_nan(a: Element) -> bool:
    return isinstance(a, float) and a != a


def _dim(a: Element) -> Dim:
    if isinstance(a, SymbolicDim):
        return a
    if isinstance(a, Ratio) or a != trunc(a):
        raise Undecided
    return int(a)


def _ratio(a: Element) -> Ratio:
    """An element as a fraction; of a float only where its products are exact, too."""
    if isinstance(a, Ratio):
        return a
    if isinstance(a, SymbolicDim | int):
        return Ratio(a, 1)
    exact = Fraction(a) if np.isfinite(a) else Fraction(1, 2 * _FINEST)
    if exact.denominator > _FINEST:
        raise Undecided
    return Ratio(exact.numerator, exact.denominator)


def _reduced(above: Dim, below: int, is_rounded: bool = False) -> Element:
    """A fraction, or the size that it is; not where floats have `is_rounded` it before, so that it
    may be less."""
    whole = exact_quotient(above, below)
    if whole is not None and is_rounded:
        raise Undecided
    return Ratio(above, below) if whole is None else whole


def _are_rounded(*operands: Ratio) -> bool:
    """Whether floats do not hold one of these, as sevenths of a size."""
    return any(each.below & (each.below - 1) for each in operands)


def _not(a: Truth) -> Truth:
    return 1 - a if isinstance(a, SymbolicDim) else not a


def _and(a: Truth, b: Truth) -> Truth:
    return a * b if isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim) else a and b


def _or(a: Truth, b: Truth) -> Truth:
    return _not(_and(_not(a), _not(b)))


def chosen(condition: Truth, a: Element, b: Element) -> Element:
    if isinstance(condition, SymbolicDim):
        return a if a == b else plus(times(condition, a), times(1 - condition, b))
    return a if condition else b


def _decided(dim: Dim | None) -> Dim:
    if dim is None:
        raise Undecided
    return dim


def float_divide(a: Element, b: Element) -> Element:
    if isinstance(b, SymbolicDim):
        return _decided(exact_quotient(_dim(a), b))
    if b == 0 or isinstance(b, Ratio):
        raise Undecided
    if isinstance(a, int | float):
        return a / b
    above, below = _ratio(a), _ratio(abs(b))
    numerator = above.above * below.below * (1 if b > 0 else -1)
    return _reduced(numerator, above.below * static(below.above), _are_rounded(above))


def _modulo(a: Element, b: Element) -> Element:
    if isinstance(b, SymbolicDim | Ratio) or b == 0:
        raise Undecided
    return _dim(a) % int(b)


def _power(a: Element, b: Element) -> Element:
    if isinstance(b, SymbolicDim | Ratio) or not 0 <= b <= 8 or b != int(b):
        raise Undecided
    result: Element = 1
    for _ in range(int(b)):
        result = times(result, a)
    return result


def plus(a: Element, b: Element) -> Element:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a + b
    one, other = _ratio(a), _ratio(b)
    parts = lcm(one.below, other.below)
    first, second = (each.above * (parts // each.below) for each in (one, other))
    return _reduced(first + second, parts, _are_rounded(one, other))


def times(a: Element, b: Element) -> Element:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a * b
    one, other = _ratio(a), _ratio(b)
    return _reduced(one.above * other.above, one.below * other.below, _are_rounded(one, other))


def _minus(a: Element) -> Element:
    return times(a, -1)


def _floor(a: Element) -> Element:
    if isinstance(a, Ratio):
        return a.above // a.below
    return a if isinstance(a, SymbolicDim) else float(np.floor(a))


def _round(a: Element) -> Element:
    """The nearest integer, and of two as near the even one."""
    if isinstance(a, Ratio):
        if _are_rounded(a):
            raise Undecided
        parts = 2 * a.below
        up = 2 * a.above + a.below  # rounded down they are one too much where they are odd wholes
        is_odd = (up + parts) // (2 * parts) - (up + parts - 1) // (2 * parts)
        return up // parts - is_odd
    return a if isinstance(a, SymbolicDim) else float(np.rint(a))


def _to_float(a: Element) -> Element:
    return a if isinstance(a, SymbolicDim | Ratio) else float(a)
