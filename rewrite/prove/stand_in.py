"""What stands for an unknown value while a rule's own functions run in a proof."""

from __future__ import annotations

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
