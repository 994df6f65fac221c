"""Sizes cut off at a bound, written as dims: sums, products and floor divisions."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.types.dims import (
    Atom,
    Dim,
    Quotient,
    known_at_least,
    monomials_of,
    polynomial,
)


def largest(dim: Dim, bound: Dim) -> Dim | None:
    """The larger of the two; None where no dim is known to be that."""
    more = _positive_part(dim - bound)
    return None if more is None else bound + more


def smallest(dim: Dim, bound: Dim) -> Dim | None:
    """The smaller of the two; None where no dim is known to be that."""
    more = _positive_part(dim - bound)
    return None if more is None else dim - more


def is_positive(dim: Dim) -> Dim | None:
    """1 where `dim` is more than 0, else 0; None where no dim is known to be that.

    Its terms are p - n. 2n // (n+p+1) is 1 where n is more than p, else 0, and the other way round
    (2p+1) // (n+p+1) is 0 where n is more, else 1. None where both p and n depend on sizes.
    """
    if known_at_least(-dim, 0):
        return 0
    if known_at_least(dim, 1):
        return 1
    above = polynomial((monomial, c) for monomial, c in monomials_of(dim) if c > 0)
    below = polynomial((monomial, -c) for monomial, c in monomials_of(dim) if c < 0)
    if not all(_is_natural_atom(atom) for monomial, _ in monomials_of(dim) for atom in monomial):
        return None
    total = above + below + 1
    if isinstance(above, int):  # n may be equal to p, which is not more
        return 2 * above // total
    if isinstance(below, int):
        return 1 - (2 * below + 1) // total
    return None  # the division would take whole parts out, and leave a negative rest


def never_negative(dim: Dim, facts: Sequence[Dim] = ()) -> bool:
    """Whether a dim is known to be at least 0 wherever all `facts` are.

    One that is cut off at bounds is asked once with 0, and once with 1, in place of each quotient
    that is one of these.
    """
    if known_at_least(dim, 0) or any(known_at_least(dim - fact, 0) for fact in facts):
        return True
    for monomial, _ in monomials_of(dim):
        for atom in monomial:
            if isinstance(atom, Quotient) and _is_truth(atom):
                below, above = _with(dim, atom, 0), _with(dim, atom, 1)
                least = atom.denominator - atom.numerator
                return never_negative(below, (*facts, least - 1)) and never_negative(
                    above, (*facts, -least)
                )
    return False


def _is_truth(atom: Quotient) -> bool:
    """Whether a quotient is 0 or 1, as `is_positive` writes them."""
    return (
        known_at_least(2 * atom.denominator - atom.numerator, 1)
        and known_at_least(atom.denominator, 1)
        and _is_natural_atom(atom)
    )


def _with(dim: Dim, atom: Quotient, number: int) -> Dim:
    """`dim` with a number in place of an atom."""
    return polynomial(
        (tuple(each for each in monomial if each != atom), c * number ** monomial.count(atom))
        for monomial, c in monomials_of(dim)
    )


def _positive_part(dim: Dim) -> Dim | None:
    """`dim` where it is positive, else 0."""
    if known_at_least(dim, 0):
        return dim
    positive = is_positive(dim)
    return None if positive is None else dim * positive


def _is_natural_atom(atom: Atom) -> bool:
    """Whether an atom is at least 0 for all sizes: a quotient may be of negative terms."""
    if not isinstance(atom, Quotient):
        return True
    dims = (atom.numerator, atom.denominator)
    inner = (each for dim in dims for monomial, _ in monomials_of(dim) for each in monomial)
    return (
        known_at_least(atom.numerator, 0)
        and known_at_least(atom.denominator, 1)
        and all(map(_is_natural_atom, inner))
    )
