"""One kernel cache for the whole run, and the budgets of the property tests."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# Shared runners stall for seconds now and then: a deadline or a health check on time would only
# make tests fail at random.
_PATIENT = [HealthCheck.too_slow]
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=50, suppress_health_check=_PATIENT
)
settings.register_profile(
    "deep", deadline=None, max_examples=1000, suppress_health_check=_PATIENT, print_blob=True
)
settings.load_profile("ci")

_OWN_CACHE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with a cold cache that xdist's workers inherit through the environment."""
    if "SATURA_CACHE" not in os.environ:
        config.stash[_OWN_CACHE] = tempfile.mkdtemp(prefix="satura-tests-")
        os.environ["SATURA_CACHE"] = config.stash[_OWN_CACHE]
    # Each core runs tests already: compilers beside them would only take turns.
    os.environ.setdefault("SATURA_COMPILERS", "0")


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE in config.stash:
        shutil.rmtree(config.stash[_OWN_CACHE], ignore_errors=True)
        del os.environ["SATURA_CACHE"]
