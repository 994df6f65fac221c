"""What runs where: a sample in `make test`, the rest deep, and new seeds in the long run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

import pytest


def deep_but(
    kept: Collection[object], values: Iterable[object], deep: Collection[object] | None = None
) -> list[object]:
    """`values` for parametrize; all but `kept` are deep, or those that `deep` lacks are long."""

    def tiered(value: object) -> object:
        is_deep = deep is None or value in deep
        return pytest.param(value, marks=pytest.mark.deep if is_deep else pytest.mark.long)

    return [value if value in kept else tiered(value) for value in values]


def seeds(count: int, first: int = 0) -> range:
    """`count` seeds from `first` on; under `make test-long` from a number that it prints."""
    start = int(os.environ.get("SATURA_TEST_SEED", "0")) + first
    return range(start, start + count)
