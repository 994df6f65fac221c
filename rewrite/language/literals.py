"""Attributes that stand in a law as they are: those that no program can have are mistakes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from satura.rewrite.language.mistakes import MistakeError, suggestion
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.reductions import REDUCTIONS
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    UnaryFn,
    Window,
)
from satura.rewrite.types.dims import Dim

FUNCTIONS: Mapping[type, Collection[str]] = {
    UnaryFn: UNARY, BinaryFn: BINARY, ReduceFn: REDUCTIONS,
}  # fmt: skip


def check_literal(value: object) -> None:
    """Raise MistakeError for a scalar function that does not exist, and for what no axes have."""
    if isinstance(value, UnaryFn | BinaryFn | ReduceFn):
        names = FUNCTIONS[type(value)]
        if value.name not in names:
            advice = suggestion(value.name, names) or f"; there are {', '.join(names)}"
            raise MistakeError(f"there is no {type(value).__name__} '{value.name}'{advice}")
    axes = (value.index,) if isinstance(value, Axis) else ()
    if any(axis < 0 for axis in (value.indices if isinstance(value, Axes) else axes)):
        raise MistakeError(f"{value!r}: axes are counted from 0, from the first one")
    if isinstance(value, Axes) and list(value.indices) != sorted({*value.indices}):
        raise MistakeError(f"{value!r}: axes stand in order, each once")
    if isinstance(value, Slices) and 0 in value.steps:
        raise MistakeError(f"{value!r}: a step is never 0")
    amounts = _amounts(value)
    if any(isinstance(each, int) and each < 0 for each in amounts):
        raise MistakeError(f"{value!r}: what a {type(value).__name__} counts is never negative")
    if isinstance(value, Perm) and sorted(value.order) != [*range(len(value.order))]:
        raise MistakeError(
            f"{value!r} is no permutation: each of the axes 0 to {len(value.order) - 1} stands in"
            " it once"
        )


def _amounts(value: object) -> tuple[Dim, ...]:
    """The numbers of elements that an attribute is made of."""
    match value:
        case Shape(dims):
            return dims
        case Padding(lo, hi):
            return (*lo, *hi)
        case Slices(starts, sizes, _):
            return (*starts, *sizes)
        case Window(sizes, strides, dilations):
            return (*sizes, *strides, *dilations)
    return ()
