"""What stands for an unknown value while a rule's own functions run in a proof."""

from __future__ import annotations

from satura.rewrite.types.dims import SymbolicDim, symbol

UNKNOWN = "?"


class StandIn:
    """An unknown value; it prints as `?`, which only messages of refusals may show."""

    __slots__ = ()
    stands_in = True

    def __repr__(self) -> str:
        return UNKNOWN

    def __str__(self) -> str:
        return UNKNOWN

    def __format__(self, how: str) -> str:
        return UNKNOWN


class Name(str):
    """The name of an unknown number, which texts of dims show as it is, without quotes."""

    __slots__ = ()

    def isidentifier(self) -> bool:
        return True


def unknown(name: str) -> SymbolicDim:
    """The unknown number called `name`."""
    return symbol(Name(name))
