"""Movements: where transposes and reshapes bring the elements of a tensor, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Protocol

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.features import Amount
from satura.rewrite.extract.shares import NOTHING
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.dims import Dim, known_at_least, static, symbol, symbols_of
from satura.rewrite.types.index_map import (
    Index,
    coefficient,
    is_affine,
    offset,
    pull,
    push,
    row_major,
    variable_name,
    variables,
)

Shape = tuple[Dim, ...]

_FEW, _MIXED = 4, 0.25  # elements side by side, and what they cost of those of a longer axis


@lru_cache(maxsize=1 << 14)
def arrival(
    op: str,
    attributes: tuple[Attribute, ...],
    stored: Index | None,
    shape: Shape,
    source: Shape,
    result: Shape,
    inner: int | None = None,
) -> Index | None:
    """Where what has the shape `result` is stored after a layout op from `source` to `shape`.

    None where the store is not affine, or the axis `inner` of `result` not contiguous in it.
    """
    identity, ranges = variables(result)
    before = identity if stored is None else stored
    index = push(op, attributes, before, shape, source, ranges)
    position = offset(index, row_major(shape))
    if not is_affine(position):
        return None
    if inner is None:
        return index
    last = variable_name(len(result) + inner)
    return index if result[inner] == 1 or coefficient(position, last) == 1 else None


Step = tuple[str, tuple[Attribute, ...], tuple[int, ...], tuple[int, ...]]
"""A layout op: its name and attributes, and the shapes of its operand and its result."""


def is_turned(work: Iterable[Amount]) -> bool:
    """Whether another axis becomes the innermost one in some step."""
    return any(name == "turned" for name, _ in work)


class View(Protocol):
    """Layout ops over one tensor."""

    @property
    def cls(self) -> int: ...

    @property
    def node(self) -> ENode: ...

    @property
    def parts(self) -> tuple[View | None, ...]: ...


def runs_read(classes: EClasses, view: View) -> float | None:
    """How many runs of neighbours are read through several layout ops, whatever was turned between
    them; None where neighbours of the result are none of the tensor that is read."""
    steps: list[Step] = []
    each: View | None = view
    while each is not None:
        source, shape = (
            tuple(map(static, classes.sized[cls].shape))
            for cls in (each.node.operands[0], each.cls)
        )
        steps.append((each.node.op, each.node.attributes, source, shape))
        each = each.parts[0]
    return _runs_through(tuple(steps))


@lru_cache(maxsize=1 << 14)
def _runs_through(steps: tuple[Step, ...]) -> float | None:
    """As `runs_read`; the last op comes first."""
    result = steps[0][3]
    index, ranges = variables(result)
    for op, attributes, source, shape in steps:
        index = pull(op, attributes, index, shape, source, ranges)
    moving = [axis for axis, extent in enumerate(result) if extent != 1]
    if not moving or not prod(result):
        return None
    last, strides = variable_name(moving[-1]), row_major(steps[-1][2])
    holding = [at for at, dim in enumerate(index) if last in symbols_of([dim])]
    side_by_side = len(holding) == 1 and index[holding[0]] == symbol(last)
    return prod(result) / result[moving[-1]] if side_by_side and strides[holding[0]] == 1 else None


@lru_cache(maxsize=1 << 14)
def moved_work(
    index: Index, source: tuple[int, ...], result: tuple[int, ...], size: float,
    pieces: tuple[int, ...],
) -> Amount:  # fmt: skip
    """What storing a tensor of shape `source` at `index` of one of shape `result` costs: much where
    another axis becomes the innermost one, unless so few elements lie along it that whole vectors
    are read and mixed. Along an axis of several short `pieces` elements are stored one by one."""
    if not prod(source):
        return NOTHING
    position = offset(index, row_major(result))
    moving = [axis for axis, extent in enumerate(source) if extent != 1]
    steps = [coefficient(position, variable_name(axis)) for axis in moving]
    if all(known_at_least(a - b, 1) for a, b in pairwise(steps)):
        return NOTHING
    if steps[-1] == 1:
        return "run", prod(source) / source[moving[-1]]
    inner = next((axis for axis, step in zip(moving, steps, strict=True) if step == 1), None)
    length, parts = (1, 1) if inner is None else (source[inner], pieces[inner])
    if parts > 1 and length < parts * _FEW:
        return "picked", float(prod(source))
    return "turned", size * (_MIXED if length <= _FEW else 1.0)
