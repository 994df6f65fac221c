"""Arithmetic on the elements of values that sizes decide: numbers, dims, and fractions of sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor, lcm, trunc

import numpy as np

from satura.rewrite.types.clamps import is_positive, largest, smallest
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


Needs = dict[SymbolicDim, None] | None
"""Dims that are taken to be at least 0, in order; None where none is."""


class Undecided(Exception):
    """The value depends on data or on sizes."""


def undecided(*_: Element) -> Element:
    raise Undecided


def at_most(a: Element, b: Element) -> Truth:
    """Whether a <= b: a dim that is 0 or 1 where that depends on sizes."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a <= b
    less, more = _ratio(a), _ratio(b)
    difference = more.above * less.below - less.above * more.below
    if known_at_least(difference, 0):
        return True
    if known_at_least(-difference, 1):
        return False
    found = is_positive(difference + 1)
    if found is None:
        raise Undecided
    return found


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


def is_not_zero(a: Element) -> Truth:
    return _not(_equal(a, 0))


def _equal(a: Element, b: Element) -> Truth:
    return True if a == b else _and(at_most(a, b), at_most(b, a))


def least_of(a: Element, b: Element) -> Element:
    is_less = at_most(a, b)
    if isinstance(is_less, SymbolicDim):
        return _decided(smallest(_dim(a), _dim(b)))
    return a if is_less else b


def greatest_of(a: Element, b: Element) -> Element:
    is_less = at_most(a, b)
    if isinstance(is_less, SymbolicDim):
        return _decided(largest(_dim(a), _dim(b)))
    return b if is_less else a


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


def _divide(a: Element, b: Element, needs: Needs = None) -> Element:
    """Integer division truncates; floor is the same where both are at least 0, or it is even."""
    numerator, denominator = _dim(a), _dim(b)
    if isinstance(numerator, int) and isinstance(denominator, int):
        if denominator == 0:
            return 0
        quotient = abs(numerator) // abs(denominator)
        return quotient if (numerator < 0) == (denominator < 0) else -quotient
    even = exact_quotient(numerator, denominator)
    if even is not None:
        return even
    if known_at_least(denominator, 0) and denominator != 0 and _is_natural(numerator, needs):
        return numerator // denominator
    raise Undecided


def _is_natural(dim: Dim, needs: Needs) -> bool:
    """Whether a dim is at least 0; or is taken to be, which is noted in `needs`."""
    if known_at_least(dim, 0):
        return True
    if needs is not None and isinstance(dim, SymbolicDim):
        needs[dim] = None
        return True
    return False


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
    return a if isinstance(a, SymbolicDim) else float(floor(a))


def _round(a: Element) -> Element:
    if isinstance(a, Ratio):
        raise Undecided
    return a if isinstance(a, SymbolicDim) else float(round(a))


def _to_integer(a: Element, needs: Needs = None) -> Element:
    if isinstance(a, Ratio):
        return _floor(a) if _is_natural(a.above, needs) else _decided(None)
    if isinstance(a, SymbolicDim):
        return a
    if isinstance(a, float) and not np.isfinite(a):
        raise Undecided
    return trunc(a)


def _to_float(a: Element) -> Element:
    return a if isinstance(a, SymbolicDim | Ratio) else float(a)


UNARY: dict[str, Callable[..., Element]] = {
    "neg": _minus,
    "abs": lambda a: greatest_of(a, _minus(a)),
    "relu": lambda a: greatest_of(a, 0),
    "floor": _floor,
    "ceil": lambda a: _minus(_floor(_minus(a))),
    "round": _round,
    "not": _not,
}
BINARY: dict[str, Callable[..., Element]] = {
    "add": plus,
    "sub": lambda a, b: plus(a, _minus(b)),
    "mul": times,
    "div": _divide,
    "mod": _modulo,
    "pow": _power,
    "max": greatest_of,
    "min": least_of,
    "eq": _equal,
    "le": at_most,
    "lt": lambda a, b: _not(at_most(b, a)),
}
LOGIC: dict[str, Callable[..., Element]] = {
    "and": _and, "or": _or, "xor": lambda a, b: _not(_equal(a, b)),
}  # fmt: skip
BINARY |= LOGIC


def binary(name: str, needs: Needs) -> Callable[..., Truth | Element]:
    """The binary function of that name on integers and truths."""
    if name == "div":
        return partial(_divide, needs=needs)
    return BINARY.get(name, undecided)


def converted(is_float: bool, needs: Needs) -> Callable[..., Element]:
    """A cast to floats, or to integers."""
    return _to_float if is_float else partial(_to_integer, needs=needs)
