"""Every rule of the book passes its property test; rules that say too little do not."""

from __future__ import annotations

import pytest

from satura.rewrite.check.testing import FIRINGS, assert_sound, check
from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import Law, Tensor, attribute_function, equates, rewrites, rule
from satura.rewrite.language.terms import binary, transpose, unary
from satura.rewrite.types.attributes import BinaryFn, Perm, UnaryFn
from satura.rules import BOOK, DEFAULT, EXACT, NONE
from tests.museum import MUSEUM
from tests.reach import reach, recorded
from tests.tiers import seeds


@pytest.mark.parametrize("name", [entry.name for entry in DEFAULT])
def test_rule_is_sound(name: str) -> None:
    result = check(DEFAULT[name])
    assert result.is_sound, str(result)
    assert all(direction.firings >= FIRINGS for direction in result.directions)


@pytest.mark.parametrize("name", [entry.name for entry in DEFAULT])
def test_rule_fires_where_it_did(name: str) -> None:
    """Where this fails and a change was meant, `make docs` makes the record anew."""
    assert reach(DEFAULT[name]) == recorded().get(name)


@pytest.mark.deep
@pytest.mark.parametrize("name", [entry.name for entry in DEFAULT])
def test_rule_is_sound_on_ten_times_as_many_instances(name: str) -> None:
    result = check(DEFAULT[name], seed=1, deep=True)
    assert result.is_sound, str(result)


@pytest.mark.long
@pytest.mark.parametrize("name", [entry.name for entry in DEFAULT])
def test_rule_is_sound_on_new_instances(name: str) -> None:
    result = check(DEFAULT[name], seed=seeds(1)[0], deep=True)
    assert result.is_sound, str(result)


def test_sets() -> None:
    assert len(NONE) == 0
    assert sum(map(len, BOOK.values())) == len(DEFAULT) > len(EXACT) > 0
    assert all(entry.exact for entry in EXACT)


def test_a_check_repeats_itself() -> None:
    entry = MUSEUM["transpose_of_a_unit"]
    assert str(check(entry, seed=3)) == str(check(entry, seed=3))


# Rules that say too little.


def test_a_condition_that_is_always_true_is_reported() -> None:
    @rule
    def with_idle_condition(f: UnaryFn, x: Tensor, p: Perm) -> Law:
        """f(transpose(x, p)) = transpose(f(x), p), under a condition that always holds"""
        return equates(
            unary(f, transpose(x, p)), transpose(unary(f, x), p), p[p.inverse].is_identity
        )

    result = check(with_idle_condition, attempts=300)
    assert result.verdict == "vacuous"
    assert "p[p.inverse].is_identity was True for all" in result.reason


def test_a_rule_that_never_fires_is_reported() -> None:
    @attribute_function
    def never(f: BinaryFn) -> bool:
        """False."""
        return f.name == "no such function"

    @rule
    def idle(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
        """f(x, y) = f(y, x), never"""
        return rewrites(binary(f, x, y), binary(f, y, x), never(f))

    assert check(idle, attempts=300).verdict == "vacuous"
    with pytest.raises(RuleError, match="fired on only 0 of"):
        assert_sound(idle)
