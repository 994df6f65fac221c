"""The checker is tested by mutation: each mistake in a rule of the book must be refuted."""

from __future__ import annotations

import pytest

from satura.rewrite.check.refute import refutation
from satura.rules import DEFAULT
from tests.rule_mutants import mutants
from tests.tiers import deep_but

SYMMETRIC = "+ and * of two operands may be swapped"
SAVES_WORK = "the condition only keeps the e-graph small"

# Mutants that say the same as their rule, or whose change never shows: by what their names hold.
EQUIVALENT = {
    "without reorders": SAVES_WORK,
    "without has_value(broadcast_before_reshape": SAVES_WORK,
    "without a.type.shape != ": SAVES_WORK,
    "without is_smaller_joint": SAVES_WORK,
    "without is_small(w.type)": SAVES_WORK,
    "swapped arguments in pad(x, v, summed_padding(a, b))": "paddings add in any order",
    "constant_to_the_right, swapped": "it is commutativity itself",
    "gather_biases_of_conv, swapped": SYMMETRIC,
    "gather_biases_of_matmul, swapped": SYMMETRIC,
    "dims reversed in reshape(c, ones)": "all dims are 1",
    "dims reversed in reshape(a, ones)": "all dims are 1",
    "dims reversed in reshape(only_element(value)": "all dims are 1",
    "dims reversed in reshape(exact_reciprocal(c), ones)": "all dims are 1",
    "dims reversed in reshape(one_like": "all dims are 1",
    "dims reversed in reshape(float_like": "all dims are 1",
}


NAMES = [entry.name for entry in DEFAULT]


@pytest.mark.parametrize("name", deep_but(NAMES[::12], NAMES))
def test_every_mutant_is_refuted(name: str) -> None:
    for what, mutant in mutants(DEFAULT[name]):
        if not any(part in what for part in EQUIVALENT):
            assert refutation(mutant, attempts=1500) is not None, what


def test_few_mutants_are_excused() -> None:
    names = [what for entry in DEFAULT for what, _ in mutants(entry)]
    excused = [what for what in names if any(part in what for part in EQUIVALENT)]
    assert len(names) > 400
    assert len(excused) <= 0.05 * len(names)


@pytest.mark.parametrize("part", EQUIVALENT)
def test_every_excuse_is_used(part: str) -> None:
    assert any(part in what for entry in DEFAULT for what, _ in mutants(entry))
