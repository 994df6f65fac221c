"""What dims are at some sizes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import cast

from satura.rewrite.errors import ProgramError
from satura.rewrite.types.dims import Atom, Dim, Quotient, SymbolicDim, symbol


def evaluate(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The value of `dim` where every symbol has its size from `sizes`.

    Raises ProgramError for a symbol without a size.
    """
    if isinstance(dim, int):
        return dim
    return sum(
        coefficient * prod(_atom_value(atom, sizes) for atom in monomial)
        for monomial, coefficient in dim.terms
    )


def probe(dim: Dim, sizes: Mapping[str, int], otherwise: int) -> int:
    """The value of `dim` at sizes that no call need have; `otherwise` where it divides by zero."""
    try:
        return evaluate(dim, sizes)
    except ProgramError:
        return otherwise


def _atom_value(atom: Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, Quotient):
        below = evaluate(atom.denominator, sizes)
        if below == 0:
            raise ProgramError(f"{atom} divides by zero for the sizes {dict(sizes)}")
        return evaluate(atom.numerator, sizes) // below
    if atom not in sizes:
        raise ProgramError(f"size '{atom}' is not known; known sizes: {sorted(sizes)}")
    return sizes[atom]


def substitute(dim: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """`dim` with the sizes named in `sizes` replaced."""
    if not isinstance(dim, SymbolicDim) or not dim.symbols & sizes.keys():
        return dim
    given = {name: sizes.get(name, symbol(name)) for name in dim.symbols}
    return evaluate(dim, cast(Mapping[str, int], given))  # the same sums and products
