"""Every rule of the book passes its property test, and fires where it did."""

from __future__ import annotations

import pytest

from satura.rewrite.check.refute import refutation
from satura.rewrite.check.testing import FIRINGS, check
from satura.rules import BOOK, DEFAULT, EXACT, NONE
from tests.museum import MUSEUM
from tests.reach import QUICK, reach, read_record
from tests.tiers import deep_but, seeds

NAMES = [entry.name for entry in DEFAULT]
LAWS = {entry.family or entry.name: entry.name for entry in DEFAULT}  # a rule of each
FEW = 60  # draws per direction


@pytest.mark.parametrize("name", LAWS.values())
def test_no_instance_refutes_a_rule(name: str) -> None:
    assert refutation(DEFAULT[name], attempts=FEW) is None


@pytest.mark.parametrize("name", deep_but(NAMES[::8], NAMES))
def test_rule_fires_where_it_did(name: str) -> None:
    """Where this fails and a change was meant, `make docs` makes the record anew."""
    assert reach(DEFAULT[name], QUICK) == read_record(QUICK).get(name)


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
def test_rule_is_sound(name: str) -> None:
    result = check(DEFAULT[name])
    assert result.is_sound, str(result)
    assert all(direction.firings >= FIRINGS for direction in result.directions)


@pytest.mark.parametrize("name", deep_but((), NAMES, NAMES[::3]))
def test_rule_fires_where_it_did_on_many_matches(name: str) -> None:
    assert reach(DEFAULT[name]) == read_record().get(name)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_rule_is_sound_on_ten_times_as_many_instances(name: str) -> None:
    result = check(DEFAULT[name], seed=1, deep=True)
    assert result.is_sound, str(result)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_rule_is_sound_on_new_instances(name: str) -> None:
    result = check(DEFAULT[name], seed=seeds(1)[0], deep=True)
    assert result.is_sound, str(result)


def test_sets() -> None:
    assert len(NONE) == 0
    assert sum(map(len, BOOK.values())) == len(DEFAULT) > len(EXACT) > 0
    assert all(entry.exact for entry in EXACT)


def test_a_check_repeats_itself() -> None:
    entry = MUSEUM["transpose_of_a_unit"]
    first, second = (check(entry, seed=3, attempts=60, shrink=False) for _ in range(2))
    assert str(first) == str(second)
