"""Long runs in parts, and resumed.

`SATURA_TEST_PART=2/8` runs the second eighth of the tests. `SATURA_TEST_PASSED=FILE` leaves out the
tests that FILE names, and adds those that pass: the same command goes on where it was stopped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

_PASSED = "SATURA_TEST_PASSED"
_BEFORE = "SATURA_TEST_PASSED_BEFORE"


def remember_passed() -> None:
    """Keep what had passed when the run began: each of its processes must leave out the same."""
    file = os.environ.get(_PASSED)
    if file is not None:
        before = Path(f"{file}.before")
        before.write_text(Path(file).read_text() if Path(file).exists() else "")
        os.environ[_BEFORE] = str(before.absolute())


def take_part(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The part of the tests that is asked for, without those that have passed before."""
    part, _, parts = os.environ.get("SATURA_TEST_PART", "1/1").partition("/")
    if not (part + parts).isdecimal() or not 1 <= int(part) <= int(parts):
        raise pytest.UsageError("SATURA_TEST_PART is one of how many, as 2/8")
    before = os.environ.get(_BEFORE)
    passed = set(Path(before).read_text().splitlines()) if before is not None else set()
    return [item for item in items[int(part) - 1 :: int(parts)] if item.nodeid not in passed]


def note_report(report: pytest.TestReport) -> None:
    """Add a test that passed to the file."""
    file = os.environ.get(_PASSED)
    if file is not None and report.when == "call" and report.passed:
        with Path(file).open("a") as lines:
            lines.write(f"{report.nodeid}\n")
