"""One kernel cache for the whole run, and the budgets of the property tests."""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.parts import note_report, remember_passed, take_part
from tests.tiers import leave_out

if TYPE_CHECKING:
    from tests.user_ops import UserOps

# Shared runners stall for seconds now and then: a deadline or a health check on time would only
# make tests fail at random.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
for _name, _examples, _is_repeatable in (
    ("test", 15, True), ("deep", 100, True), ("long", 2000, False),
):  # fmt: skip
    settings.register_profile(
        _name, settings.get_profile("patient"), max_examples=_examples, derandomize=_is_repeatable
    )
settings.load_profile("test")

# Two processes run tests beside one another: threads of libraries would only spin for each other.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

_OWN_CACHE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with a cold cache and one seed, which xdist's workers inherit with the environment."""
    leave_out(config.getoption("-m"))
    if "PYTEST_XDIST_WORKER" not in os.environ:
        remember_passed()
    gc.disable()  # until the tests are collected: nothing of them is garbage
    if config.getoption("--hypothesis-profile") == "long":
        os.environ.setdefault("SATURA_TEST_SEED", str(secrets.randbelow(10**9)))
    if "SATURA_CACHE" not in os.environ:
        config.stash[_OWN_CACHE] = tempfile.mkdtemp(prefix="satura-tests-")
        os.environ["SATURA_CACHE"] = config.stash[_OWN_CACHE]
    # What is started in the background ignores interrupts, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Each core runs tests already: compilers beside them would only take turns.
    os.environ.setdefault("SATURA_COMPILERS", "0")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """In a new clone one process imports before the others do: what it compiles they only read."""
    with Path(__file__).open() as held:
        if "PYTEST_XDIST_WORKER" in os.environ and not sys.dont_write_bytecode:
            fcntl.flock(held, fcntl.LOCK_EX)
            if any(Path(__file__).with_name("__pycache__").glob("test_*.pyc")):
                fcntl.flock(held, fcntl.LOCK_UN)
            else:  # what tests import when they run, too
                for name in ("egglog", "numba", "onnxruntime", "scipy.optimize", "z3"):
                    importlib.import_module(name)
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the part of the tests that is asked for."""
    items[:] = take_part(items)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what passed, in the process that started the others."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        note_report(report)


def pytest_collection_finish() -> None:
    """Keep what is imported by now out of every later collection of garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_report_header() -> list[str]:
    """How to repeat a run whose seeds were drawn."""
    seed = os.environ.get("SATURA_TEST_SEED")
    return [f"seeds begin at SATURA_TEST_SEED={seed}"] if seed else []


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE in config.stash:
        shutil.rmtree(config.stash[_OWN_CACHE], ignore_errors=True)
        del os.environ["SATURA_CACHE"]


@pytest.fixture(scope="module")
def ops() -> Iterator[UserOps]:
    """The ops of `tests/user_ops.py`, declared for the tests of one file."""
    from tests.user_ops import user_ops

    with user_ops() as declared:
        yield declared
