"""Typical sizes of symbols, which costs are computed for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isqrt

from satura.pipeline.inputs import one_by_one
from satura.rewrite.errors import CallError
from satura.rewrite.program.arguments import check_named
from satura.rewrite.program.program import Program

Dims = Mapping[str, int | tuple[int, int]]
"""For each symbol a typical size, or the range that its size mostly lies in."""

LARGEST = 48  # binary digits of an address: no axis is longer


def typical_sizes(program: Program, dims: Dims | None) -> dict[str, int]:
    """One size per symbol of `dims`; of a range the geometric mean, as sizes differ by factors.

    A range says what to expect, and not what is allowed: calls outside are just as right. Raises
    CallError for a symbol that the program does not have, and for what is neither size nor range.
    """
    found: dict[str, int] = {}
    if dims is not None:
        check_named(dims, "dims")
    for name, given in (dims or {}).items():
        if name not in program.symbols:
            raise CallError(
                f"there is no size {name!r} in the model; its sizes are {sorted(program.symbols)}"
            )
        limits = given if isinstance(given, tuple) else (given, given)
        if len(limits) != 2 or not all(type(each) is int for each in limits):
            raise CallError(f"dims[{name!r}] must be a size or a range (low, high), not {given!r}")
        low, high = limits
        if not 1 <= low <= high <= 2**LARGEST:
            order = ", the lower first" if isinstance(given, tuple) else ""
            raise CallError(f"dims[{name!r}] is {given!r}; sizes are from 1 to 2**{LARGEST}{order}")
        found[name] = low if low == high else isqrt(low * high)
    return found


def parse_dims(texts: Iterable[str]) -> dict[str, int | tuple[int, int]]:
    """Sizes and ranges from texts like `seq=1:512` or `batch=1,seq=1:512`. Raises CallError for
    others."""
    found: dict[str, int | tuple[int, int]] = {}
    for text in one_by_one(texts):
        name, _, value = text.partition("=")
        low, colon, high = value.partition(":")
        if not name or not low.isdecimal() or (colon and not high.isdecimal()):
            raise CallError(f"a size is NAME=N or NAME=LOW:HIGH, as in seq=1:512; got {text!r}")
        found[name] = (int(low), int(high)) if colon else int(low)
    return found
