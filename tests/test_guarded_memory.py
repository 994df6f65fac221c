"""Kernels stay inside their operands, and threads of a step write apart: see guarded_memory.py."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.documents import ENVIRONMENT, ROOT
from tests.guarded_memory import PARTS
from tests.tiers import deep_but, seeds

SECONDS = 1200  # to end a hang


def run(*words: str) -> None:
    """Check programs in a process that may die of them."""
    command = [sys.executable, "-m", "tests.guarded_memory", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("first", deep_but([], range(0, 400, 8), [0, 8, 16, 24]))
def test_random_programs_stay_inside(first: int) -> None:
    run(*map(str, seeds(8, first)))


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
def test_larger_programs_of_one_op_stay_inside(part: int) -> None:
    run(f"part{part}")
