"""The onnx package's own node tests: each loads, and gives the shipped outputs.

All of them are interpreted as they are; compiled they are in the deep and the long tier. What has
no lowering must be listed here, by op; what is refused must be refused for a listed reason.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from satura.commands.coverage import CASES_ON_HOST, CASES_REFUSED
from satura.rewrite.program.host_call import missing_package
from tests.onnx_cases import Outcome, cases, compiled_outcomes, interpreted, outcome_of

SAMPLE = sorted(cases())[::16]


@cache
def outcomes() -> tuple[Outcome, ...]:
    """All cases, interpreted once."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tuple(outcome_of(case, interpreted) for case in cases().values())


def test_results_equal_the_shipped_ones() -> None:
    assert not {outcome.name: outcome.wrong for outcome in outcomes() if outcome.wrong}


def test_most_cases_run_without_the_host() -> None:
    native = [o for o in outcomes() if not o.host and not o.refused and not o.wrong]
    assert len(native) > 0.91 * len(outcomes())


def test_only_listed_ops_run_on_the_host() -> None:
    found = {op for outcome in outcomes() for op in outcome.host}
    listed = {op for ops in CASES_ON_HOST.values() for op in ops}
    assert found == {op for op in listed if missing_package(op) is None}


def test_few_are_refused_and_for_listed_reasons() -> None:
    refused = [outcome for outcome in outcomes() if outcome.refused]
    assert len(refused) < 0.04 * len(outcomes())
    assert not [o for o in refused if not any(reason in o.refused for reason in CASES_REFUSED)]
    assert not [r for r in CASES_REFUSED if not any(r in o.refused for o in refused)]


@pytest.mark.deep
def test_a_sample_compiles() -> None:
    check_compiled(compiled_outcomes(SAMPLE))


@pytest.mark.long
def test_all_compile() -> None:
    check_compiled(compiled_outcomes(sorted(cases())))


def check_compiled(found: dict[str, Outcome]) -> None:
    """None is wrong or kills its process, and none is refused that the interpreter runs."""
    assert not {name: outcome.wrong for name, outcome in found.items() if outcome.wrong}
    refused = {outcome.name for outcome in outcomes() if outcome.refused}
    assert {name for name, outcome in found.items() if outcome.refused} <= refused
