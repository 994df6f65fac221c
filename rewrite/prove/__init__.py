"""Proofs: exact laws of movement hold for all sizes, decided with z3 (the extra `prove`)."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Sequence
from contextlib import redirect_stdout

from satura.rewrite.errors import brief
from satura.rewrite.language.dsl import Rule
from satura.rewrite.prove.proof import Found, Proof

STEPS = 60_000  # half a minute to a minute
NOT_INSTALLED = "z3-solver is not installed: pip install 'satura[prove]'"


def prove(rule: Rule, ranks: Sequence[int] = range(5), steps: int = STEPS) -> Proof:
    """Try to prove `rule` for all sizes at each of `ranks`, within `steps` of a `Budget`."""
    if not rule.exact:
        return Proof(rule.name, "open", (), "it holds up to rounding")
    if missing := missing_solver():
        return Proof(rule.name, "open", (), missing)
    from satura.rewrite.prove.search import search

    return search(rule, ranks, steps)


def missing_solver() -> str:
    """Why there is no z3 to prove with; empty where there is one."""
    if importlib.util.find_spec("z3") is None:
        return NOT_INSTALLED
    try:
        with redirect_stdout(io.StringIO()):  # it prints where it seeks its library
            importlib.import_module("z3")
    except Exception as error:  # what it raises without its library is a class of its own
        said = " ".join(str(error).split())
        return (
            f"z3-solver is installed, and importing it fails ({type(error).__name__}:"
            f" {brief(said)}): pip install --force-reinstall z3-solver"
        )
    return ""


__all__ = ["STEPS", "Found", "Proof", "prove"]
