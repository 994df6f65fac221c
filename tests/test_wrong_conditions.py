"""A wrong side condition in any one rule makes the tests of rules fail, by that rule's name."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace

import pytest

from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import Rule
from satura.rewrite.language.expressions import Apply, Expression
from satura.rules import DEFAULT
from satura.testing import check
from tests.equivalent_mutants import excuse
from tests.function_mutants import DECIDED, FunctionMutant, function_mutants, functions_of, plant
from tests.reach import reach, read_record
from tests.tiers import deep_but


def shows(rule: Rule) -> str:
    """What tests/test_rules.py says that is wrong with `rule`; empty where it passes."""
    try:
        if reach(rule) != read_record()[rule.name]:
            return f"{rule.name} fires elsewhere"
    except RuleError as error:
        return str(error)
    report = check(rule, shrink=False)
    return "" if report.is_sound else str(report)


def with_wrong_condition(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule with each of its conditions dropped, and with each inverted."""
    for at, direction in enumerate(rule.directions):
        for number, condition in enumerate(direction.conditions):
            inverted: tuple[Expression, ...] = (Apply(operator.not_, (condition,)),)
            for what, instead in (("without", ()), ("inverted", inverted)):
                conditions = list(direction.conditions)
                conditions[number : number + 1] = instead
                directions = list(rule.directions)
                directions[at] = replace(direction, conditions=tuple(conditions))
                yield f"{what} {condition}", replace(rule, directions=tuple(directions))


CONDITIONAL = [rule.name for rule in DEFAULT if any(each.conditions for each in rule.directions)]


@pytest.mark.deep
def test_a_rule_without_mistake_passes() -> None:
    assert shows(DEFAULT[CONDITIONAL[0]]) == ""


@pytest.mark.parametrize("name", deep_but(CONDITIONAL[::25], CONDITIONAL))
def test_a_wrong_condition_of_a_rule_shows(name: str) -> None:
    for what, wrong in with_wrong_condition(DEFAULT[name]):
        assert name in shows(wrong), what


def wrong_conditions(name: str) -> list[FunctionMutant]:
    """Conditions dropped or inverted in the functions of a rule."""
    kinds = ("condition dropped", "condition inverted")
    functions = functions_of(DEFAULT[name])
    return [mutant for function in functions for mutant in function_mutants(function, kinds)]


@pytest.mark.parametrize(
    "name",
    deep_but(["compose_transposes", "multiply_by_reciprocals"], DECIDED, DECIDED[::2]),
)
def test_a_wrong_condition_in_a_function_shows(name: str) -> None:
    assert reach(DEFAULT[name]) == read_record()[name]  # drawn before any mistake is planted
    for mutant in wrong_conditions(name):
        if excuse(str(mutant), name) is None:
            with plant(mutant):
                assert name in shows(DEFAULT[name]), str(mutant)
