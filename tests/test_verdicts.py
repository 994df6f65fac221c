"""What rules/verdicts.json records is what the prover finds."""

from __future__ import annotations

import pytest

from satura.commands.verdicts import recorded_verdicts, verdict
from satura.rewrite.prove import prove
from satura.rules import DEFAULT
from tests.tiers import deep_but

NAMES = [rule.name for rule in DEFAULT]
PROVED = [name for name in NAMES if recorded_verdicts()[name].ranks]
LONG = (  # ten seconds and more of proofs
    "reshape_out_of_broadcast", "reshape_out_of_concat", "reshape_into_concat",
    "reshape_out_of_pad", "reshape_into_broadcast", "compose_transposes", "transpose_past_pool",
    "transpose_past_reshape", "broadcast_out_of_reduce", "reshape_past_reduce",
    "transpose_past_reduce", "reshape_past_select", "slice_inside_pad", "slice_into_reduce",
)  # fmt: skip
LOW = (0, 1)  # the ranks that are proved at once


@pytest.mark.parametrize("name", deep_but(NAMES[1::16], NAMES))
def test_the_prover_finds_what_is_recorded_at_low_ranks(name: str) -> None:
    proof = prove(DEFAULT[name], LOW)
    if (
        "the prover found no sizes at which" not in proof.reason
    ):  # else it is about higher ranks only
        assert proof.ranks == tuple(rank for rank in recorded_verdicts()[name].ranks if rank in LOW)


@pytest.mark.parametrize("name", deep_but((), PROVED, [n for n in PROVED if n not in LONG]))
def test_the_prover_finds_what_is_recorded(name: str) -> None:
    known = recorded_verdicts()[name]
    assert prove(DEFAULT[name], known.ranks, steps=600_000).ranks == known.ranks


def test_what_is_not_recorded_as_proved_has_a_reason() -> None:
    for name, known in recorded_verdicts().items():
        assert known.status in ("proved", "tested"), name
        assert known.status == "proved" or known.reason, name
        assert known.status == "tested" or known.ranks == (0, 1, 2, 3, 4), name


def test_a_verdict_is_what_the_prover_says() -> None:
    known = verdict(DEFAULT["drop_zero_pad"])
    assert (known.status, known.ranks) == ("proved", (0, 1, 2, 3, 4))
    assert str(verdict(DEFAULT["fold_unary"])).startswith("tested: ")
    assert verdict(DEFAULT["fold_unary"]).ranks == ()
