"""Sizes: stand-ins for dims while a rule's own functions run in a proof.

A size is a polynomial over unknown numbers. It stands for an int and for a symbolic dim alike: a
comparison asks the path, which takes every answer that is possible. `a == b` tells that both are
equal; that it is false tells that they differ only where both are ints, for symbolic dims differ
as soon as they are not equal for all sizes. Whether a size is an int is decided when the function
asks (`isinstance`).

A size is not an int. What Python would do with the number itself (`range`, indexing, hashing, text,
fractions, bits) ends the proof, so that none rests on a number that was made up. What asks for the
class or the text of a size is found in the text of the function, see `allowed_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, cast

import z3

from satura.rewrite.prove.paths import Path, Undecided
from satura.rewrite.prove.stand_in import StandIn, unknown
from satura.rewrite.prove.z3_terms import (
    at_least,
    equal,
    formula,
    generic,
    is_nonzero,
    is_static,
    is_zero,
)
from satura.rewrite.types.dims import Dim, SymbolicDim

OTHERS = (type(None), str, bytes, tuple, list, dict, set, frozenset)  # equal to no number


class Size(StandIn):
    """An unknown number in an attribute."""

    __slots__ = ("path", "term")

    def __init__(self, path: Path, term: SymbolicDim) -> None:
        self.path, self.term = path, term

    # Arithmetic

    def __add__(self, other: object) -> Dim:
        return self._result(self.term + self._term(other))

    def __mul__(self, other: object) -> Dim:
        return self._result(self.term * self._term(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Dim:
        return self._result(-self.term)

    def __abs__(self) -> Dim:
        return cast(Dim, self) if self._is_at_least(0) else -self

    def __sub__(self, other: object) -> Dim:
        return self._result(self.term - self._term(other))

    def __rsub__(self, other: object) -> Dim:
        return self._result(self._term(other) - self.term)

    def __floordiv__(self, other: object) -> Dim:
        return self._floor_quotient(self.term, self._term(other))

    def __rfloordiv__(self, other: object) -> Dim:
        return self._floor_quotient(self._term(other), self.term)

    def __mod__(self, other: object) -> Dim:
        divisor = self._term(other)
        whole = self._floor_quotient(self.term, divisor)
        return self._result(self.term - term_of(whole) * divisor)

    def _result(self, term: Dim) -> Dim:
        return dim_of(self.path, term)

    def _floor_quotient(self, numerator: Dim, denominator: Dim) -> Dim:
        if dim_of(self.path, denominator) == 0:
            raise ZeroDivisionError("a size is divided by one that may be 0")
        if isinstance(denominator, int) and isinstance(numerator, int):
            return numerator // denominator
        return dim_of(self.path, named_quotient(self.path, numerator, denominator))

    # Comparisons

    def __eq__(self, other: object) -> bool:
        if type(other) in OTHERS:
            return False
        plain = self.term - self._term(other)
        difference = self.path.remember(lambda: self.path.equalities.reduce(plain))
        if isinstance(difference, int):
            return difference == 0
        key = min(str(difference), str(-difference))
        same = self.path.decide(f"{key} = 0", is_zero(difference), is_nonzero(difference))
        if same:
            self.path.zeros.append(difference)
        elif len(difference.terms) == 1:
            self.path.nonzero += sorted(difference.symbols)
        return same

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        return not self._is_at_least(other)

    def __ge__(self, other: object) -> bool:
        return self._is_at_least(other)

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __le__(self, other: object) -> bool:
        difference = self._term(other) - self.term
        if isinstance(difference, int):
            return difference >= 0
        return Size(self.path, difference)._is_at_least(0)

    def __bool__(self) -> bool:
        return self != 0

    def _is_at_least(self, other: object) -> bool:
        difference = self.term - self._term(other)
        if isinstance(difference, int):
            return difference >= 0
        if not self._is_static(difference):
            self.path.refuse("it puts symbolic sizes in an order")
        holds = formula(difference) >= 0
        return self.path.decide(f"{difference} >= 0", holds, z3.Not(holds))

    # What code asks of a dim

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int if self._is_static(self.term) else SymbolicDim

    def _is_static(self, term: SymbolicDim) -> bool:
        # Symbolic dims may cancel: so an int may have symbolic parts.
        static = z3.Bool(f"static {term}")
        self.path.assume(z3.Implies(is_static(term), static))
        return self.path.decide(f"{term} is static", static, z3.Not(static))

    def known_at_least(self, bound: int) -> bool:
        dim = self.term - bound
        if isinstance(dim, int):
            return dim >= 0
        holds = at_least(dim, 0)
        return self.path.decide(
            f"{dim} known >= 0", holds, z3.Implies(is_static(dim), z3.Not(holds))
        )

    def exact_quotient(self, numerator: Dim, denominator: Dim) -> Dim | None:
        above, below = self._term(numerator), self._term(denominator)
        key = f"({above})/({below})"
        whole = unknown(key)
        static = z3.Implies(is_static(above, below), z3.And(formula(below) != 0, is_static(whole)))
        even = z3.And(equal(whole * below, above), static)
        if self.path.decide(f"{key} comes out even", even, z3.BoolVal(True)):
            self.path.zeros.append(whole * below - above)
            return dim_of(self.path, whole)
        return None

    def _refuse(self, what: str) -> NoReturn:
        self.path.refuse(f"it {what} an unknown size")

    def _term(self, other: object) -> Dim:
        if not is_number(other):
            self.path.refuse("it computes with an unknown size and what is not an int")
        return term_of(other)

    def __hash__(self) -> int:
        self._refuse("hashes")

    def __index__(self) -> int:
        self._refuse("counts with")

    __int__ = __index__

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse(f"reads '{name}' of")


def _refuser(operation: str) -> Callable[..., object]:
    def refuse(size: Size, *_: object, **__: object) -> NoReturn:
        size._refuse(f"computes {operation} of")

    return refuse


# What an int answers, and what NumPy asks of anything.
REFUSED = [
    "pos", "invert", "truediv", "rtruediv", "pow", "rpow", "rmod", "divmod", "rdivmod", "round",
    "trunc", "floor", "ceil", "float", "complex", "lshift", "rlshift", "rshift", "rrshift", "and",
    "rand", "or", "ror", "xor", "rxor", "array", "array_ufunc", "array_function",
]  # fmt: skip
for _name in REFUSED:
    setattr(Size, f"__{_name}__", _refuser(_name))


def is_number(value: object) -> bool:
    return type(value) is Size or isinstance(value, int)


def term_of(value: object) -> Dim:
    """The polynomial that `value` stands for."""
    if type(value) is Size:
        return value.term
    if isinstance(value, int):
        return int(value)
    raise Undecided(f"it computes with {value!r} as a size")


def dim_of(path: Path, term: Dim) -> Dim:
    """`term` as a rule's functions see it."""
    if isinstance(term, int):
        return term
    return cast(Dim, Size(path, term))


def terms_of(values: tuple[object, ...]) -> tuple[Dim, ...]:
    return tuple(term_of(value) for value in values)


def named_quotient(path: Path, numerator: Dim, denominator: Dim) -> SymbolicDim:
    """`numerator // denominator`, as a number whose meaning the solver is told."""
    quotient = unknown(f"({numerator})//({denominator})")
    above, below, whole = formula(numerator), formula(denominator), formula(quotient)
    rest = above - whole * below
    path.assume(
        z3.Implies(below > 0, z3.And(rest >= 0, rest < below)),
        z3.Implies(below < 0, z3.And(rest <= 0, rest > below)),
        z3.Implies(is_static(numerator, denominator), is_static(quotient)),
        z3.Implies(is_static(quotient), whole == generic(quotient)),
    )
    return quotient
