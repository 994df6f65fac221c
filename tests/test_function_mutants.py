"""A mistake in any function that decides where a rule holds is caught, by that rule's name."""

from __future__ import annotations

from collections import Counter

import pytest

from satura.rewrite.dsl import Rule
from satura.rules import DEFAULT
from satura.testing import check
from tests.equivalent_mutants import EQUIVALENT, reason_for
from tests.function_mutants import FunctionMutant, function_mutants, functions_of, planted
from tests.verdicts import CAUGHT, MutantVerdict, drawn, verdict

Tried = tuple[FunctionMutant, MutantVerdict]


def tried(rule: Rule, attempts: int, kinds: tuple[str, ...] = ()) -> list[Tried]:
    """Every mutant of the rule's functions, of the given kinds if any, and what became of it."""
    found: list[Tried] = []
    drawn(rule.name, attempts)  # before any mistake is planted
    for function in functions_of(rule):
        for mutant in function_mutants(function):
            if not kinds or mutant.kind in kinds:
                with planted(mutant):
                    found.append((mutant, verdict(rule, attempts)))
    return found


def escaped(rule: Rule, found: list[Tried]) -> list[str]:
    """Mutants that are neither caught, nor excused, nor narrower than the rule and so right."""
    return [
        f"{what}: {mutant}"
        for mutant, what in found
        if what not in (*CAUGHT, "narrower") and reason_for(str(mutant), rule.name) is None
    ]


DECIDED = [entry.name for entry in DEFAULT if functions_of(entry)]
WRONG_CONDITION = ("condition dropped", "condition inverted")


@pytest.mark.parametrize("name", DECIDED)
def test_a_wrong_side_condition_is_caught(name: str) -> None:
    found = tried(DEFAULT[name], 1200, WRONG_CONDITION)
    assert not escaped(DEFAULT[name], found)


@pytest.mark.deep
@pytest.mark.parametrize("name", DECIDED)
def test_a_mistake_in_a_function_is_caught(name: str) -> None:
    assert not escaped(DEFAULT[name], tried(DEFAULT[name], 6000))


@pytest.mark.deep
def test_few_mutants_are_excused() -> None:
    counts: Counter[str] = Counter()
    used: set[str] = set()
    for name in DECIDED:
        for mutant, what in tried(DEFAULT[name], 6000):
            reason = reason_for(str(mutant), name)
            excused = what not in (*CAUGHT, "narrower") and reason is not None
            counts["excused" if excused else what] += 1
            used.update(start for start, *_ in EQUIVALENT if str(mutant).startswith(start))
    caught = sum(counts[what] for what in CAUGHT)
    assert caught >= 0.95 * (counts.total() - counts["excused"] - counts["narrower"]), counts
    assert caught > 1000 and counts["excused"] < 0.15 * counts.total(), counts
    assert used == {start for start, *_ in EQUIVALENT}


def planted_in(name: str) -> list[FunctionMutant]:
    """Wrong side conditions of the rule's functions."""
    mutants = [
        each for function in functions_of(DEFAULT[name]) for each in function_mutants(function)
    ]
    return [
        mutant
        for mutant in mutants
        if mutant.kind in WRONG_CONDITION and reason_for(str(mutant), name) is None
    ]


@pytest.mark.parametrize("name", [name for name in DECIDED if planted_in(name)])
def test_the_property_test_of_the_rule_fails_by_its_name(name: str) -> None:
    """As tests/test_rules.py runs it, with one wrong condition after the other until one shows."""
    for mutant in planted_in(name):
        with planted(mutant):
            report = check(DEFAULT[name])
        if not report.is_sound:
            assert name in str(report)
            return
    pytest.fail("no wrong side condition shows")
