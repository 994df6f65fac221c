"""An exam of the checker: laws by people who had not read it. All wrong ones are to be refuted, no
right one."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from satura.rewrite.check.report import RuleReport
from satura.rewrite.language.dsl import Family, Rule
from satura.testing import check

FILES = sorted(path.stem for path in Path(__file__).with_name("exam").glob("*.py"))
WRONG, RIGHT = (
    [name for name in FILES if name.startswith(f"{each}_")] for each in ("wrong", "right")
)
SEEDS = (0, 1009, 424242)
Law = Rule | Family


def laws(name: str) -> list[Law]:
    """The laws of a file of tests/exam."""
    module = importlib.import_module(f"tests.exam.{name}")
    return [each for each in vars(module).values() if isinstance(each, Law)]


def law_in_turn(name: str) -> Law:
    """One law of a file: of neighbouring files not the law at the same place."""
    found = laws(name)
    return found[FILES.index(name) % len(found)]


def reports(law: Law, seed: int) -> list[RuleReport]:
    """The checker's reports on a law, and of a family on each of its rules."""
    rules = law.rules if isinstance(law, Family) else (law,)
    return [check(rule, seed, shrink=False) for rule in rules]


def is_refuted(law: Law, seed: int) -> bool:
    return any(report.verdict == "refuted" for report in reports(law, seed))


def test_every_file_says_whether_its_laws_are_right() -> None:
    assert len(WRONG) >= 50 and len(RIGHT) >= 40 and len(WRONG) + len(RIGHT) == len(FILES)


@pytest.mark.deep
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_law_of_each_file_is_refuted(name: str) -> None:
    assert is_refuted(law_in_turn(name), 0), str(law_in_turn(name))


@pytest.mark.deep
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_law_of_each_file_is_not_refuted(name: str) -> None:
    assert not is_refuted(law_in_turn(name), 0), str(law_in_turn(name))


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_laws_are_refuted(name: str, seed: int) -> None:
    assert not [str(law) for law in laws(name) if not is_refuted(law, seed)]


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", RIGHT)
def test_right_laws_are_not_refuted(name: str, seed: int) -> None:
    assert not [str(law) for law in laws(name) if is_refuted(law, seed)]
