"""The machine's own rates, as `satura calibrate` has measured them, in the user's cache folder.

What is kept is data for one CPU: it is checked when it is read, and what does not pass counts as
absent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from typing import NoReturn

from satura.backend.jit.cache import default_cache
from satura.backend.target import host_target
from satura.rewrite.errors import CallError, FileError, brief
from satura.rewrite.extract.cost import CostModel, given_or_default
from satura.rewrite.extract.features import RATES

VERSION = 6
COSTS = ("reference", "default", "calibrated")


def store_rates(rates: Mapping[str, float]) -> None:
    """Keep rates for this CPU; they appear whole or not at all.

    Raises FileError where they cannot be kept.
    """
    content = {"version": VERSION, "target": host_target().identity, "rates": dict(rates)}
    default_cache("rates").store(_key(), json.dumps(content, allow_nan=False).encode())
    if stored_rates() != rates:
        _refuse_cache()


def check_cache() -> None:
    """Raise FileError where rates could not be kept: before they are measured, that is."""
    cache, probe = default_cache("rates"), hashlib.sha256(b"probe").hexdigest()
    cache.store(probe, b"probe")
    if cache.load(probe) != b"probe":
        _refuse_cache()


def _refuse_cache() -> NoReturn:
    folder = default_cache("rates").folder
    raise FileError(
        f"rates cannot be kept in {folder}: make it a folder that only you can write to, or name"
        " another one in SATURA_CACHE"
    )


def stored_rates() -> dict[str, float] | None:
    """The rates kept for this CPU; None where there are none that can be used."""
    found = default_cache("rates").load(_key())
    try:
        content = None if found is None else json.loads(found)
    except (ValueError, RecursionError):
        return None
    return checked_rates(content, host_target().identity)


def _key() -> str:
    return hashlib.sha256(f"rates {VERSION} {host_target().identity}".encode()).hexdigest()


def checked_rates(content: object, target: str) -> dict[str, float] | None:
    """The rates in what a file holds; None where it is not of this version and target, or where a
    rate is unknown, missing, not a number, negative or absurd."""
    if not isinstance(content, dict) or content.get("version") != VERSION:
        return None
    if content.get("target") != target or not isinstance(content.get("rates"), dict):
        return None
    found: dict[str, float] = {}
    for name, seconds in content["rates"].items():
        if type(seconds) is not float or not isfinite(seconds) or not 0 <= seconds <= 1:
            return None
        found[str(name)] = seconds
    return found if found.keys() == set(RATES) else None


def cost_model(
    cost: CostModel | str | None = None,
    threads: int = 1,
    sizes: Mapping[str, int] | None = None,
    is_exact: bool = False,
) -> CostModel:
    """The cost model to search with: this CPU's by its instructions, or by rates measured here.
    Where sums must be exact, f32 are not multiplied in parts.

    "reference" is the same on every machine: that of one thread and vectors of 16 lanes.

    Raises CallError for an unknown name, what is not a cost model, or where "calibrated" is asked
    for and nothing was.
    """
    if isinstance(cost, str) and cost not in COSTS:
        raise CallError(f"there is no cost model {brief(cost)}; choose from {list(COSTS)}")
    if not isinstance(cost, str | None):
        given = given_or_default(cost)
        return given.with_sizes(sizes) if sizes else given
    if cost == "reference":
        return CostModel().with_sizes(sizes or {})
    target = host_target()
    in_parts = target.multiplies_matrices_of_bf16 and not is_exact
    model = CostModel.of_vectors(target.lanes, threads, target.multiplies_matrices, in_parts)
    model = model.with_sizes(sizes or {})
    if cost != "calibrated":
        return model
    rates = stored_rates()
    if rates is None:
        raise CallError("there are no rates of this machine yet: run `satura calibrate` first")
    return model.with_measured(rates)
