"""The onnx package's own backend tests: each loads, and gives the shipped outputs.

A sample is interpreted as it is, in the deep tier all; compiled they are in the deep and the long
tier. What has no lowering must be listed here, by op; what is refused must be refused for a listed
reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache

import numpy as np
import pytest
from onnx.backend.test.case.test_case import TestCase

from satura.commands.coverage import CASES_ON_HOST, CASES_REFUSED
from satura.rewrite.program.host_call import missing_package
from tests.onnx_cases import Outcome, cases, compiled_outcomes, interpreted, outcome_of, sample

LISTED_ON_HOST = {op for ops in CASES_ON_HOST.values() for op in ops}


def interpreted_outcomes(chosen: Iterable[TestCase]) -> tuple[Outcome, ...]:
    """What becomes of the cases in the interpreter."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tuple(outcome_of(case, interpreted) for case in chosen)


@cache
def outcomes() -> tuple[Outcome, ...]:
    """All cases, interpreted once."""
    return interpreted_outcomes(cases().values())


def test_a_sample_gives_the_shipped_results() -> None:
    found = interpreted_outcomes(sample().values())
    assert len(found) > 125
    assert not {outcome.name: outcome.wrong for outcome in found if outcome.wrong}
    assert {op for outcome in found for op in outcome.host} <= LISTED_ON_HOST
    assert all(any(reason in o.refused for reason in CASES_REFUSED) for o in found if o.refused)


@pytest.mark.deep
def test_results_equal_the_shipped_ones() -> None:
    assert not {outcome.name: outcome.wrong for outcome in outcomes() if outcome.wrong}


@pytest.mark.deep
def test_most_cases_run_without_the_host() -> None:
    native = [o for o in outcomes() if not o.host and not o.refused and not o.wrong]
    assert len(native) > 0.91 * len(outcomes())


@pytest.mark.deep
def test_only_listed_ops_run_on_the_host() -> None:
    found = {op for outcome in outcomes() for op in outcome.host}
    assert found == {op for op in LISTED_ON_HOST if missing_package(op) is None}


@pytest.mark.deep
def test_few_are_refused_and_for_listed_reasons() -> None:
    refused = [outcome for outcome in outcomes() if outcome.refused]
    assert len(refused) < 0.04 * len(outcomes())
    assert not [o for o in refused if not any(reason in o.refused for reason in CASES_REFUSED)]
    assert not [r for r in CASES_REFUSED if not any(r in o.refused for o in refused)]


@pytest.mark.deep
def test_a_sample_compiles() -> None:
    check_compiled(compiled_outcomes(sorted(cases())[::40]))


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_all_compile(part: int) -> None:
    check_compiled(compiled_outcomes(sorted(cases())[part::8]))


def check_compiled(found: dict[str, Outcome]) -> None:
    """None is wrong or kills its process, and none is refused that the interpreter runs."""
    assert not {name: outcome.wrong for name, outcome in found.items() if outcome.wrong}
    refused = [name for name, outcome in found.items() if outcome.refused]
    assert all(each.refused for each in interpreted_outcomes(cases()[name] for name in refused))
