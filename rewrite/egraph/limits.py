"""Limits: when a saturation stops short. None reads a clock."""

from __future__ import annotations

from dataclasses import dataclass

from satura.rewrite.errors import CallError, brief
from satura.rewrite.program.arguments import as_number


@dataclass(frozen=True)
class Limits:
    """When to stop short of saturation.

    An e-graph is large that has `enough` times as many e-nodes as the program has nodes. When one
    has doubled `gainless` times without a cheaper program, the saturation ends.
    """

    rounds: int = 1_000
    nodes: int = 60_000
    enough: int = 4
    gainless: int = 1

    def __new__(cls, *limits: int, **named: int) -> Limits:
        """Raise CallError for a limit that there is not."""
        known = list(cls.__dataclass_fields__)
        for name in named.keys() - known:
            raise CallError(f"there is no limit {name!r}; the limits are {', '.join(known)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Raise CallError for what is not a number of rounds, e-nodes or times."""
        for name, limit in [*vars(self).items()]:
            number = as_number(limit)
            if number is None or number < 0:
                raise CallError(
                    f"Limits({name}={brief(limit)}): a limit is a whole number from 0 on"
                )
            object.__setattr__(self, name, number)
