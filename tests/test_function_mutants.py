"""A mistake in any function that decides where a rule holds is caught."""

from __future__ import annotations

from collections import Counter

import pytest

from satura.rewrite.language.dsl import Rule
from satura.rules import DEFAULT
from tests.equivalent_mutants import EQUIVALENT, excuse
from tests.function_mutants import DECIDED, FunctionMutant, function_mutants, functions_of, plant
from tests.tiers import deep_but
from tests.verdicts import CAUGHT, MutantVerdict, draw_matches, verdict

Tried = tuple[FunctionMutant, MutantVerdict]


def tried(rule: Rule, attempts: int) -> list[Tried]:
    """Every mutant of the rule's functions, and what became of it."""
    found: list[Tried] = []
    draw_matches(rule.name, attempts)  # before any mistake is planted
    for function in functions_of(rule):
        for mutant in function_mutants(function):
            with plant(mutant):
                found.append((mutant, verdict(rule, attempts)))
    return found


def escaped(rule: Rule, found: list[Tried]) -> list[str]:
    """Mutants that are neither caught nor excused."""
    return [
        f"{what}: {mutant}"
        for mutant, what in found
        if what not in CAUGHT and excuse(str(mutant), rule.name) is None
    ]


LONG = (  # ten seconds and more
    "reshape_out_of_binary_yx", "transpose_past_reshape", "compose_transposes",
    "transpose_past_slice", "broadcast_out_of_unlike_binary", "round_what_is_scaled_back",
    "transpose_of_units", "reshape_past_slice", "reshape_into_concat",
)  # fmt: skip
DEEP = [name for name in DECIDED[::4] if name not in LONG]


@pytest.mark.parametrize("name", deep_but((), DECIDED, DEEP))
def test_a_mistake_in_a_function_is_caught(name: str) -> None:
    assert not escaped(DEFAULT[name], tried(DEFAULT[name], 6000))


@pytest.mark.long
def test_few_mutants_are_excused() -> None:
    counts: Counter[str] = Counter()
    used: set[object] = set()
    for name in DECIDED:
        for mutant, what in tried(DEFAULT[name], 6000):
            counts[what] += 1
            if what not in CAUGHT:
                used.add(excuse(str(mutant), name))
    caught = sum(counts[what] for what in CAUGHT)
    assert caught > 1000 and caught >= 0.9 * counts.total(), counts  # the others are excused
    assert used == set(EQUIVALENT)
