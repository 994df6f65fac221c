"""What runs where: a sample in `make test`, the rest deep, and new seeds in the long run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

import pytest


def deep_but(
    kept: Collection[object], values: Iterable[object], deep: Collection[object] | None = None
) -> list[object]:
    """`values` for parametrize; all but `kept` are deep, or those that `deep` lacks are long.

    Where neither is run, one stands for all of them: pytest would make thousands only to leave
    them out.
    """

    def tiered(value: object) -> object:
        is_deep = deep is None or value in deep
        return pytest.param(value, marks=pytest.mark.deep if is_deep else pytest.mark.long)

    others = 0
    chosen = []
    for value in values:
        if value in kept:
            chosen.append(value)
        elif not (_ARE_LEFT_OUT and others):
            chosen.append(tiered(value))
            others += 1
    return chosen


def leave_out(expression: str) -> None:
    """Tell what `-m` asks for, before parameters are made."""
    global _ARE_LEFT_OUT
    _ARE_LEFT_OUT = expression == "not (deep or long)"


_ARE_LEFT_OUT = False


def seeds(count: int, first: int = 0) -> range:
    """`count` seeds from `first` on; under `make test-long` from a number that it prints."""
    start = int(os.environ.get("SATURA_TEST_SEED", "0")) + first
    return range(start, start + count)
