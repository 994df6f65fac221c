"""Planted faults: each on the list can be planted, and is caught."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.fault import ROOT
from tests.faults import FAULTS
from tests.planted_faults import TIERS, main


@cache
def parsed(file: str) -> str:
    """What a file of the product says, comments and layout left out."""
    return ast.dump(ast.parse((ROOT / file).read_text()))


def test_each_fault_can_be_planted() -> None:
    for fault in FAULTS:
        assert (ROOT / fault.file).read_text().count(fault.old) == 1, fault
        assert ast.dump(ast.parse(fault.faulty_text())) != parsed(fault.file), fault
        assert fault.tier in TIERS
        for name in fault.tests.split():
            file, _, function = name.partition("::")
            assert f"def {function}(" in (ROOT / file).read_text() if function else True, fault
            assert (ROOT / file).exists(), fault


@pytest.mark.long
def test_every_fault_is_caught() -> None:
    assert main([]) == 0
