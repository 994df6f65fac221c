"""Equalities between dims as rewrite rules, so that equal products are seen to be equal.

z3 is slow with products. The equalities on a path are few and simple: `a = 1`, `a = b`,
`a*b = c`, `a*b = c*d`. Each becomes a rule that replaces a symbol or a product; a factor that is
not 0 is cancelled first. Dims with the same normal form are equal; the converse need not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce

from satura.rewrite.types.dims import (
    Atom,
    Dim,
    Monomial,
    Quotient,
    SymbolicDim,
    exact_quotient,
    monomial_quotient,
    of_atom,
    polynomial,
    product,
)

STEPS = 100  # rules may lead in a circle; a normal form of the book was seen to take four


class Equalities:
    """Rewrite rules that follow from dims that are 0."""

    def __init__(
        self, zeros: Iterable[Dim], nonzero: Iterable[str], natural: Iterable[str] = ()
    ) -> None:
        self._symbols: dict[str, Dim] = {}
        self._products: list[tuple[Monomial, Dim]] = []
        self._nonzero, self._natural = set(nonzero), set(natural)
        self._pending = sorted(
            (zero for zero in zeros if isinstance(zero, SymbolicDim)),
            key=lambda zero: len(zero.terms[0][0]),
        )
        self._settle()

    def with_actual(self, zeros: Iterable[Dim]) -> Equalities:
        """These rules, and rules for dims that are 0 at the actual sizes only.

        There no factor cancels: what is not 0 for all sizes may be 0 for some.
        """
        result = Equalities((), (), self._natural)
        result._symbols, result._products = dict(self._symbols), list(self._products)
        result._pending = [zero for zero in zeros if isinstance(zero, SymbolicDim)]
        result._settle()
        return result

    def _settle(self) -> None:
        while any(map(self._eliminate, list(self._pending))) or any(
            map(self._orient, list(self._pending))
        ):
            pass

    def normal(self, dim: Dim) -> Dim:
        """The normal form of `dim`."""
        for _ in range(STEPS):
            if isinstance(dim, int):
                return dim
            new = self._step(dim)
            if new == dim:
                return dim
            dim = new
        return dim

    def same(self, left: Dim, right: Dim) -> bool:
        """Whether the rules show that both are equal."""
        return self.normal(left - right) == 0

    def reduce(self, dim: Dim) -> Dim:
        """A dim that is 0 exactly where `dim` is: its normal form without nonzero factors."""
        return self._cancel(self.normal(dim))

    def quotient(self, dim: Dim, divisor: Dim) -> Dim | None:
        """`dim / divisor`; None where the rules do not show that it comes out even."""
        exact = exact_quotient(dim, divisor)
        if exact is not None or isinstance(dim, int):
            return exact
        for pattern, value in self._products:
            (monomial, coefficient), *more = dim.terms
            if not more and value == _dim_of(monomial):
                exact = exact_quotient(_dim_of(pattern) * coefficient, divisor)
                if exact is not None:
                    return exact
        return None

    def zeros(self) -> list[Dim]:
        """Dims that are 0 by the rules for symbols; more than were given, as factors cancel."""
        return [of_atom(name) - value for name, value in self._symbols.items()]

    def _step(self, dim: SymbolicDim) -> Dim:
        total: Dim = 0
        for monomial, coefficient in dim.terms:
            total = total + self._rewrite(monomial) * coefficient
        return total

    def _rewrite(self, monomial: Monomial) -> Dim:
        for pattern, value in self._products:
            rest = monomial_quotient(monomial, pattern)
            if rest is not None:
                return _dim_of(rest) * value
        return product(
            self._symbols.get(atom, of_atom(atom)) if isinstance(atom, str) else of_atom(atom)
            for atom in monomial
        )

    def _eliminate(self, zero: SymbolicDim) -> bool:
        """Make a rule for a symbol; False where none can be made."""
        dim = self.reduce(zero)
        if isinstance(dim, int):
            self._pending.remove(zero)
            return True
        ones = self._factors_of_one(dim)
        if ones:
            self._add_symbol_rule(ones[0], 1)
            return True
        for monomial, coefficient in dim.terms[::-1]:
            if len(monomial) == 1 and abs(coefficient) == 1 and isinstance(monomial[0], str):
                name = monomial[0]
                value = (dim - _dim_of(monomial) * coefficient) * -coefficient
                if isinstance(value, int) or name not in value.symbols:
                    self._add_symbol_rule(name, value)
                    return True
        return False

    def _factors_of_one(self, zero: SymbolicDim) -> list[str]:
        """The factors of `zero` where it says that a product of natural numbers is 1: each is 1."""
        if len(zero.terms) == 2 and zero.terms[1][0] == ():
            (factors, coefficient), (_, constant) = zero.terms
            names = [atom for atom in factors if isinstance(atom, str)]
            plain = len(names) == len(factors) and self._natural.issuperset(names)
            if plain and coefficient == -constant and abs(constant) == 1:
                return names
        return []

    def _add_symbol_rule(self, name: str, value: Dim) -> None:
        self._symbols = {
            old: _substitute(other, name, value) for old, other in self._symbols.items()
        }
        self._symbols[name] = value
        again = [_dim_of(pattern) - other for pattern, other in self._products]
        self._pending += [dim for dim in again if isinstance(dim, SymbolicDim)]
        self._products = []

    def _orient(self, zero: SymbolicDim) -> bool:
        """Make a rule for a product where `zero` equates two; False where it does not."""
        dim = self.reduce(zero)
        if isinstance(dim, int) or sorted(n for _, n in dim.terms) != [-1, 1]:
            return False
        (large, _), (small, _) = dim.terms  # terms are sorted, larger products first
        if len(large) == len(small) and any(map(_is_quotient, large)):
            large, small = small, large  # towards quotients: their divisor may cancel
        self._products.append((large, _dim_of(small)))
        self._pending.remove(zero)
        return True

    def _cancel(self, dim: Dim) -> Dim:
        """`dim` divided by the nonzero factors that all its terms share."""
        if isinstance(dim, int):
            return dim
        first, *others = (Counter(monomial) for monomial, _ in dim.terms)
        shared = reduce(Counter.__and__, others, first)
        nonzero = self._known_nonzero()
        factors = tuple(atom for atom in shared.elements() if atom in nonzero)
        if not factors:
            return dim
        rests = ((monomial_quotient(monomial, factors), n) for monomial, n in dim.terms)
        return polynomial((rest, n) for rest, n in rests if rest is not None)

    def _known_nonzero(self) -> set[str]:
        """Symbols that are not 0, and the factors of products that are not 0."""
        known = set(self._nonzero)
        for name in self._nonzero:
            value = self.normal(of_atom(name))
            if isinstance(value, SymbolicDim) and len(value.terms) == 1:
                known |= value.symbols
        return known


def _is_quotient(atom: Atom) -> bool:
    """Whether a factor is a quotient, or a number that is named as one."""
    return isinstance(atom, Quotient) or "/" in atom


def _dim_of(monomial: Monomial) -> Dim:
    return polynomial([(monomial, 1)])


def _substitute(dim: Dim, name: str, value: Dim) -> Dim:
    """`dim` with `value` in the place of a size, but for inside of divisions: these are atoms here,
    and `at_sizes.substitute` would raise an error where a divisor becomes 0."""
    if isinstance(dim, int) or name not in dim.symbols:
        return dim
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        factors = (value if atom == name else of_atom(atom) for atom in monomial)
        total = total + product(factors) * coefficient
    return total
