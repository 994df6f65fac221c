"""Planted faults: each on the list can be planted, and is caught."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.faults import FAULTS, ROOT, Fault
from tests.planted_faults import TIERS, main


@cache
def parsed(file: str) -> str:
    """What a file of the product says, comments and layout left out."""
    return ast.dump(ast.parse((ROOT / file).read_text()))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.new.strip())
def test_a_fault_can_be_planted(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    assert text.count(fault.old) == 1
    assert ast.dump(ast.parse(fault.faulty_text())) != parsed(fault.file)
    assert fault.tier in TIERS
    for name in fault.tests.split():
        file, _, function = name.partition("::")
        assert (
            f"def {function}(" in (ROOT / file).read_text() if function else (ROOT / file).exists()
        )


@pytest.mark.long
def test_every_fault_is_caught() -> None:
    assert main([]) == 0
