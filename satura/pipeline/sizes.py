"""Typical sizes of symbols, which costs are computed for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from math import isqrt
from typing import TYPE_CHECKING

from satura.pipeline.inputs import one_by_one, refuse_twice
from satura.rewrite.errors import CallError, brief
from satura.rewrite.program.arguments import as_number, check_named, unknown_size
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import open_sizes
from satura.rewrite.types.typical import representative

if TYPE_CHECKING:
    from satura.rewrite.onnx.files import ModelApart

Dims = Mapping[str, int | tuple[int, int]]
"""For each symbol a typical size, or the range that its size mostly lies in."""

LARGEST = 48  # binary digits of an address: no axis is longer


def typical_sizes(program: Program, dims: Dims | None) -> dict[str, int]:
    """The sizes of a program's symbols that `dims` say, one for each, and of others those at which
    it runs, where it does not at the usual ones.

    A range says what to expect, and not what is allowed: calls outside are just as right. Raises
    CallError for what is neither size nor range.
    """
    given = {name: size for name, size in middles(dims).items() if name in program.symbols}
    usual = representative(symbol("usual"))
    found = program.typical_beside(given) if given else program.typical
    return given | {name: size for name, size in found.items() if size != usual}


def check_sizes(names: Iterable[str], known: Set[str]) -> None:
    """Raise CallError for a size that is not among the `known` ones of a model."""
    for name in names:
        if name not in known:
            raise unknown_size(name, known)


def declared_sizes(model: ModelApart) -> frozenset[str]:
    """The names of sizes that a model declares: of its inputs, and of what it computes."""
    from satura.rewrite.onnx.inputs import declared_inputs

    graph = model.proto.graph
    values = (*graph.value_info, *graph.output)
    dims = (dim for value in values for dim in value.type.tensor_type.shape.dim)
    named = {dim.dim_param for dim in dims if dim.dim_param}
    return open_sizes(declared_inputs(graph).values()) | named


def middles(dims: Dims | None) -> dict[str, int]:
    """One size for each that `dims` name: of a range the geometric mean, as sizes differ by
    factors, where 0 counts as 1. Raises CallError for what is neither size nor range."""
    found: dict[str, int] = {}
    if dims is not None:
        check_named(dims, "dims")
    for name, given in (dims or {}).items():
        ends = given if isinstance(given, tuple) else (given, given)
        limits = [number for each in ends if (number := as_number(each)) is not None]
        if not len(limits) == len(ends) == 2:
            raise CallError(
                f"the typical size of {name!r} must be a size or a range (low, high), not"
                f" {brief(given)}"
            )
        low, high = limits
        is_range = isinstance(given, tuple)
        if not (0 if is_range else 1) <= low <= high <= 2**LARGEST or not high:
            order = ", ranges from 0, the lower first" if is_range else ""
            raise CallError(
                f"the typical size of {name!r} is {brief(given)}; such sizes are from 1 to"
                f" 2**{LARGEST}{order}"
            )
        found[name] = low if low == high else isqrt(max(1, low) * high)
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
        refuse_twice("size", name, found)
        found[name] = (int(low), int(high)) if colon else int(low)
    return found
