"""What runs where: a sample in `make test`, the rest deep, and new seeds in the long run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

import pytest


def deep_but(kept: Collection[object], values: Iterable[object]) -> list[object]:
    """`values` for parametrize; all but `kept` are deep."""
    return [v if v in kept else pytest.param(v, marks=pytest.mark.deep) for v in values]


def seeds(count: int, first: int = 0) -> range:
    """`count` seeds from `first` on; under `make test-long` from a number that it prints."""
    start = int(os.environ.get("SATURA_TEST_SEED", "0")) + first
    return range(start, start + count)
