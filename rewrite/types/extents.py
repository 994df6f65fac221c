"""Sizes as callers give them: ints and symbolic ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

from satura.rewrite.errors import ProgramError, brief
from satura.rewrite.types.dims import Dim, SymbolicDim, TracedSize

_SIZES = (int, SymbolicDim, TracedSize, SupportsIndex)


def dims_of(sizes: Iterable[Dim]) -> tuple[Dim, ...]:
    """The sizes of several axes. Raises ProgramError for what is no size."""
    if isinstance(sizes, str):
        raise ProgramError(f"sizes are several, one per axis, as in [symbol({sizes!r})]")
    dims = tuple(sizes)
    for dim in dims:
        if isinstance(dim, str):
            raise ProgramError(f"the size {dim!r} is a text: an open size is {_open(dim)}")
        if not isinstance(dim, _SIZES):
            raise ProgramError(
                f"the size {brief(dim)} is of type {type(dim).__name__}: sizes are ints, or open"
                f" ones, as {_open('n')}"
            )
    return dims


def _open(name: str) -> str:
    """How an open size of that name is made."""
    return f"symbol({name!r}), from satura.language"
