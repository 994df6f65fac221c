"""Random models of open sizes against onnxruntime, in any order of calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.open_models import differences
from tests.tiers import deep_but, seeds


@pytest.mark.parametrize("seed", deep_but(range(1), seeds(1000), range(60)))
def test_random_models_of_open_sizes(seed: int, tmp_path: Path) -> None:
    """`python -m tests.open_models SEED 1` shows the model and what differs."""
    assert not differences(seed, tmp_path)
