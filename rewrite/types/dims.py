"""Dims: how long an axis is, as an int or as a symbolic expression in normal form.

A symbolic dim is a polynomial with integer coefficients over atoms. An atom is a named size
(`seq`) or a floor division that does not come out even (`(seq+1)//2`). The normal form of
polynomials is unique, so that `2*seq == seq + seq` is plain equality. A floor division is freed
of common factors and of whole multiples of its divisor: `(6*seq+8)//4` is `(seq)//2+seq+2`. Two
nested ones become a single one: `((seq+1)//2+1)//2` is `(seq+3)//4`.

A comparison that does not hold for all sizes is not decided: the functions `known_…` answer False
for "no" and for "cannot tell" alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from operator import index
from typing import cast

from satura.rewrite.errors import ProgramError


@dataclass(frozen=True, slots=True)
class Quotient:
    """The atom `numerator // denominator`, where the division is not known to come out even."""

    numerator: SymbolicDim
    denominator: Dim

    def __hash__(self) -> int:
        return hash(self.numerator)

    def __str__(self) -> str:
        below = str(self.denominator)
        return f"({self.numerator})//{below if below.isalnum() else f'({below})'}"


MOST_TERMS = 2**16
"""What a product may have before equal terms are added up; a file could ask for any number."""
MOST_FACTORS = 256
MOST_ATOMS = 4096
"""How many atoms a size may have, those inside of its divisions among them, each as often as it is
there: sizes are written and compared as trees."""

Atom = str | Quotient
Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class SymbolicDim:
    """A polynomial that is not a plain int: sorted (monomial, coefficient) pairs, no zeros."""

    terms: tuple[tuple[Monomial, int], ...]

    def __hash__(self) -> int:
        """Of the atoms alone: whether numbers are equal is always asked by comparing them."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple([monomial for monomial, _ in self.terms]))

    def __reduce__(self) -> tuple[type[SymbolicDim], tuple[object]]:
        """Hashes are other ones in another process."""
        return SymbolicDim, (self.terms,)

    @cached_property
    def atoms(self) -> int:
        """How many atoms there are, those inside of divisions among them."""
        found = [atom for monomial, _ in self.terms for atom in monomial]
        inside = [
            atom.numerator.atoms + _atoms_in(atom.denominator)
            for atom in found
            if isinstance(atom, Quotient)
        ]
        return len(found) + sum(inside)

    def __add__(self, other: Dim) -> Dim:
        if type(other) is int:
            return self._plus_number(other)
        return polynomial([*self.terms, *monomials_of(other)])

    def _plus_number(self, number: int) -> Dim:
        """The sum with a number, whose term is always the last."""
        *others, (monomial, before) = self.terms
        if monomial:
            return SymbolicDim((*self.terms, ((), number))) if number else self
        if not others:
            return before + number
        rest = (((), before + number),) if before + number else ()
        return SymbolicDim((*others, *rest))

    def __mul__(self, other: Dim) -> Dim:
        if type(other) is int:
            return self._times_number(other)
        others = monomials_of(other)
        degree = sum(
            max((len(atoms) for atoms, _ in each), default=0) for each in (self.terms, others)
        )
        if len(self.terms) * len(others) > MOST_TERMS or degree > MOST_FACTORS:
            raise ProgramError(
                f"a size would be the product of {len(self.terms)} by {len(others)} terms of up to"
                f" {degree} factors"
            )
        return polynomial(
            [(mine + theirs, a * b) for mine, a in self.terms for theirs, b in others]
        )

    def _times_number(self, number: int) -> Dim:
        """The product with a number, whose terms are in the same order."""
        if number in (0, 1):
            return self if number else 0
        return SymbolicDim(tuple([(monomial, c * number) for monomial, c in self.terms]))

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + -other

    def __rsub__(self, other: int) -> Dim:
        return -self + other

    def __floordiv__(self, other: Dim) -> Dim:
        return _floor_quotient(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _floor_quotient(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return self - (self // other) * other

    __radd__ = __add__
    __rmul__ = __mul__

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of the sizes that this dim depends on."""
        names: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    names.add(atom)
                else:
                    names |= atom.numerator.symbols | symbols_of([atom.denominator])
        return frozenset(names)

    def known_at_least(self, bound: int) -> bool:
        """See the function of that name."""
        low = 0
        for monomial, coefficient in self.terms:
            if monomial and coefficient < 0:
                return False
            if not monomial:
                low = coefficient
        return low >= bound

    def exact_quotient(self, numerator: Dim, denominator: Dim) -> Dim | None:
        """See the function of that name; this dim is one of the two."""
        if denominator == 0:
            return None
        whole, rest = _division(numerator, denominator)
        return whole if rest == 0 else None

    @property
    def name(self) -> str | None:
        """The name of the size that this dim is; None where it is computed from sizes."""
        (monomial, coefficient), *others = self.terms
        is_atom = coefficient == 1 and len(monomial) == 1 and not others
        return monomial[0] if is_atom and isinstance(monomial[0], str) else None

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            factors = list(map(_atom_text, monomial))
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            if len(factors) > 1 or coefficient < 0:
                factors = [f"({factor})" if "//" in factor else factor for factor in factors]
            sign = "-" if coefficient < 0 else "+" if text else ""
            text += sign + "*".join(factors)
        return text

    def __repr__(self) -> str:
        return self._text


Dim = int | SymbolicDim


def _atom_text(atom: Atom) -> str:
    """A size by its name, in quotes where that is not a word."""
    if isinstance(atom, Quotient) or atom.isidentifier():
        return str(atom)
    return json.dumps(atom, ensure_ascii=False)


def of_atom(atom: Atom) -> SymbolicDim:
    """The dim that is a single atom."""
    return SymbolicDim((((atom,), 1),))


def symbol(name: str) -> SymbolicDim:
    """The open size called `name`: any number of at least 0, which each call decides."""
    return of_atom(name)


class TracedSize:
    """A number that depends on sizes (see `backend.sizes`); `dim` says how."""

    __slots__ = ()
    dim: SymbolicDim


def is_one(extent: Dim) -> bool:
    """Whether an extent is 1 for all sizes."""
    return is_same(extent, 1)


def is_same(one: Dim, other: Dim) -> bool:
    """Whether two dims are equal for all sizes; where sizes are traced no fact comes of it."""
    return expression(one) == expression(other)


def expression(dim: Dim) -> Dim:
    """`dim`, or what a size that is traced stands for."""
    return dim.dim if isinstance(dim, TracedSize) else dim


def symbols_of(dims: Iterable[Dim]) -> frozenset[str]:
    """Names of all sizes that occur in `dims`."""
    return frozenset().union(*(dim.symbols for dim in dims if isinstance(dim, SymbolicDim)))


def operand_text(dim: Dim) -> str:
    """`dim` as it stands beside an operator."""
    is_computed = type(dim) is SymbolicDim and dim.name is None
    return f"({dim})" if is_computed else str(dim)


def product(dims: Iterable[Dim]) -> Dim:
    """The product of `dims`; 1 for none."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def exact_quotient(numerator: Dim, denominator: Dim) -> Dim | None:
    """`numerator / denominator` when it comes out even for all sizes, else None."""
    if isinstance(numerator, int) and isinstance(denominator, int):
        return None if denominator == 0 else _even_share(numerator, denominator)
    asked = denominator if isinstance(numerator, int) else numerator
    return cast(SymbolicDim, asked).exact_quotient(numerator, denominator)


def root(dim: Dim, number: Dim) -> tuple[str, int] | None:
    """The size of which `dim` is a multiple, and what it is where that is a positive `number`."""
    match monomials_of(dim):
        case [((str() as name,), factor)] if isinstance(number, int) and factor > 1:
            return (name, number // factor) if number % factor == 0 < number else None
    return None


def _even_share(numerator: int, denominator: int) -> int | None:
    """The quotient where it comes out even: of sizes that are traced, for all sizes."""
    above, below = expression(numerator), expression(denominator)
    if isinstance(above, int) and isinstance(below, int):
        return None if above % below else above // below
    return None if exact_quotient(above, below) is None else numerator // denominator


def _floor_quotient(numerator: Dim, denominator: Dim) -> Dim:
    """The normal form of `numerator // denominator`, of which at least one is symbolic."""
    exact = exact_quotient(numerator, denominator)
    if exact is not None:
        return exact
    if denominator == 0:
        return _quotient(numerator, 0)
    if monomials_of(denominator)[0][1] < 0:
        numerator, denominator = -numerator, -denominator
    whole, rest = _division(numerator, denominator)
    # The rest of a fixed divisor may lose what never reaches it: (2*n+1)//4 is (n)//2.
    is_fixed = isinstance(denominator, int)
    factors = [factor for monomial, factor in monomials_of(rest) if monomial or not is_fixed]
    scale = _common_factor([*factors, *(factor for _, factor in monomials_of(denominator))])
    above, below = (
        polynomial([(monomial, factor // scale) for monomial, factor in monomials_of(dim)])
        for dim in (rest, denominator)
    )
    if above == 0:
        return whole
    inner = _inner_quotient(above) if is_fixed else None
    if inner is not None:
        # (a//b + t) // c is (a + t*b) // (b*c).
        more = above - of_atom(inner)
        product_below = inner.denominator * below
        return whole + (inner.numerator + more * inner.denominator) // product_below
    return whole + _quotient(above, below)


def _quotient(numerator: Dim, denominator: Dim) -> SymbolicDim:
    """The size that is a division of its own."""
    above = SymbolicDim(monomials_of(numerator))
    if above.atoms + _atoms_in(denominator) > MOST_ATOMS:
        raise ProgramError(f"a size would have more than {MOST_ATOMS} atoms, of nested divisions")
    return of_atom(Quotient(above, denominator))


def _atoms_in(dim: Dim) -> int:
    return dim.atoms if isinstance(dim, SymbolicDim) else 0


def _common_factor(numbers: Sequence[int]) -> int:
    """The greatest common divisor; numbers after which it is 1 are not looked at."""
    return 1 if 1 in numbers or -1 in numbers else gcd(*numbers)


def _inner_quotient(dim: Dim) -> Quotient | None:
    """The only quotient in `dim`, where it stands there once and alone, by a fixed divisor."""
    found = [
        (monomial, factor)
        for monomial, factor in monomials_of(dim)
        if any(isinstance(atom, Quotient) for atom in monomial)
    ]
    if len(found) != 1 or found[0][1] != 1 or len(found[0][0]) != 1:
        return None
    quotient = found[0][0][0]
    assert isinstance(quotient, Quotient)
    return quotient if isinstance(quotient.denominator, int) else None


def _division(numerator: Dim, denominator: Dim) -> tuple[Dim, Dim]:
    """`whole` and `rest`, where `numerator == whole * denominator + rest`.

    No multiple of the denominator's leading term is left in `rest`, which makes both unique.
    """
    leading, factor = monomials_of(denominator)[0]
    whole: Dim = 0
    rest = numerator
    while True:
        shares = [
            (monomial_quotient(monomial, leading), _share(c, factor))
            for monomial, c in monomials_of(rest)
        ]
        taken = [(others, share) for others, share in shares if others is not None and share]
        if not taken:
            return whole, rest
        step = polynomial(taken)
        whole, rest = whole + step, rest - step * denominator


def _share(numerator: int, denominator: int) -> int:
    """The whole part of a quotient; of sizes that are traced, 0 where it does not come out even."""
    is_traced = type(numerator) is not int or type(denominator) is not int
    return _even_share(numerator, denominator) or 0 if is_traced else numerator // denominator


def monomial_quotient(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """`monomial / divisor`; None where it does not come out even."""
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def known_at_least(dim: Dim, bound: int) -> bool:
    """Whether `dim >= bound` for all sizes (a size is at least 0)."""
    return dim >= bound if isinstance(dim, int) else dim.known_at_least(bound)


def static(dim: Dim) -> int:
    """The value of a dim that is a number. Raises ValueError for one that depends on sizes."""
    if isinstance(dim, SymbolicDim):
        raise ValueError(f"{dim} depends on sizes")
    return dim if isinstance(dim, int) else index(dim)


def monomials_of(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    """The monomials of `dim` with their coefficients; those of an int are one empty monomial."""
    return dim.terms if isinstance(dim, SymbolicDim) else (((), dim),)


def polynomial(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    """The normal form of a sum of monomials with coefficients."""
    sums: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        key = monomial if len(monomial) < 2 else tuple(sorted(monomial, key=str))
        sums[key] = sums.get(key, 0) + coefficient
    kept = [(monomial, c) for monomial, c in sums.items() if c]
    if len(kept) > 1:
        kept.sort(key=lambda term: (-len(term[0]), [str(atom) for atom in term[0]]))
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return SymbolicDim(tuple(kept))
