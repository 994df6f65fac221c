"""The checker is tested by mutation: each mistake in a rule of the book must be refuted."""

from __future__ import annotations

import pytest

from satura.rewrite.check.refute import refutation
from satura.rewrite.prove import prove
from satura.rules import DEFAULT
from satura.testing import check
from tests.rule_mutants import mutants
from tests.tiers import deep_but

# Mutants whose change never shows, by what their names hold: laws as sound as their rule's.
EQUIVALENT = {
    "gather_biases_of_conv, swapped": "+ of two operands may be swapped",
    "gather_biases_of_matmul, swapped": "+ of two operands may be swapped",
    "another value for no_bias": "scores that all have as much more have the same softmax",
    "zero_point_out_of_conv, shifted by one in conv": "there is no border to be shifted",
    "zero_point_out_of_conv, another fill": "there is no border to be filled",
    "without keeps_products": "f16 products are rounded; tests/test_one_row.py shows what is lost",
}
# Those that are proved to be as sound: what they lack or swap only keeps the e-graph small.
PROVED = (
    "without reorders", "without has_value(broadcast_before_reshape", "without is_smaller_joint",
    "without is_small(w.type)", "without is_small(x.type)",
    "swapped arguments in pad(x, v, summed_padding(a, b))",
)  # fmt: skip


NAMES = [entry.name for entry in DEFAULT]


@pytest.mark.parametrize("name", deep_but(NAMES[::12], NAMES))
def test_every_mutant_is_refuted(name: str) -> None:
    for what, mutant in mutants(DEFAULT[name]):
        if not any(part in what for part in (*EQUIVALENT, *PROVED)):
            is_refuted = refutation(mutant, attempts=1500) is not None
            assert is_refuted or check(mutant, shrink=False).verdict == "refuted", what


@pytest.mark.parametrize("part", deep_but(PROVED[-1:], PROVED))
def test_a_mutant_that_need_not_be_refuted_is_proved(part: str) -> None:
    found = [mutant for each in DEFAULT for what, mutant in mutants(each) if part in what]
    assert found and all(prove(mutant, range(3)).is_proved for mutant in found)


def test_few_mutants_are_excused_and_every_excuse_is_used() -> None:
    names = [what for entry in DEFAULT for what, _ in mutants(entry)]
    excused = {part: [what for what in names if part in what] for part in EQUIVALENT}
    assert all(excused.values())
    assert len(names) > 400
    assert sum(map(len, excused.values())) <= 0.01 * len(names)
