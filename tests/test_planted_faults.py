"""The list of planted faults stays one of mistakes that can be planted."""

from __future__ import annotations

import ast

import pytest

from tests.planted_faults import FAULTS, ROOT, TIERS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.new.strip())
def test_a_fault_can_be_planted(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    assert text.count(fault.old) == 1
    assert ast.dump(ast.parse(fault.planted())) != ast.dump(ast.parse(text))
    assert fault.tier in TIERS
    for name in fault.tests.split():
        file, _, function = name.partition("::")
        assert (
            f"def {function}(" in (ROOT / file).read_text() if function else (ROOT / file).exists()
        )
