"""Proofs: exact laws of movement hold for all sizes, decided with z3 (the extra `prove`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from satura.rewrite.language.dsl import Rule
from satura.rewrite.prove.proof import Found, Proof

STEPS = 60_000  # half a minute to a minute
NOT_INSTALLED = "z3-solver is not installed: pip install 'satura[prove]'"


def prove(rule: Rule, ranks: Sequence[int] = range(5), steps: int = STEPS) -> Proof:
    """Try to prove `rule` for all sizes at each of `ranks`, within `steps` of a `Budget`."""
    if not rule.exact:
        return Proof(rule.name, "open", (), "it holds up to rounding")
    if importlib.util.find_spec("z3") is None:
        return Proof(rule.name, "open", (), NOT_INSTALLED)
    from satura.rewrite.prove.search import search

    return search(rule, ranks, steps)


__all__ = ["STEPS", "Found", "Proof", "prove"]
