"""Index spaces: the loop variables that a dispatch runs over.

Each axis of a space has one loop variable, or several where a reshape cuts through the axis
(4096 as 64 × 64), and each variable runs over a range: a *box* is a space with smaller ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from satura.rewrite.types.dims import Dim, SymbolicDim, is_one, symbol
from satura.rewrite.types.index_map import VARIABLE, Index, row_major

TAPS = f"{VARIABLE}t"  # what the names of variables that are reduced begin with


@dataclass(frozen=True)
class Range:
    """A loop variable, counted from 0 to `length`, stands for `start` and what follows."""

    name: str
    start: int
    length: int


@dataclass(frozen=True)
class Space:
    """Per axis its variables, outermost first, with the extents that they split the axis into."""

    axes: tuple[tuple[Range, ...], ...]
    extents: tuple[tuple[int, ...], ...]

    @cached_property
    def variables(self) -> tuple[Range, ...]:
        """All loop variables, axis by axis."""
        return tuple(variable for axis in self.axes for variable in axis)

    @cached_property
    def ranges(self) -> dict[str, Dim]:
        """How many values each variable takes."""
        return {variable.name: variable.length for variable in self.variables}

    @cached_property
    def index(self) -> Index:
        """Position along every axis."""
        result: list[Dim] = []
        for variables, extents in zip(self.axes, self.extents, strict=True):
            at: Dim = 0
            for variable, stride in zip(variables, row_major(extents), strict=True):
                at = at + (_value(variable)) * stride
            result.append(at)
        return tuple(result)

    @property
    def is_empty(self) -> bool:
        return any(variable.length == 0 for variable in self.variables)

    def split(self, name: str, inner: int) -> Space:
        """The same space with a variable split so that its fastest part has extent `inner`.

        `inner` divides the variable's extent, start and length.
        """
        axes, splits = [], []
        for variables, extents in zip(self.axes, self.extents, strict=True):
            new_variables: list[Range] = []
            new_extents: list[int] = []
            for variable, extent in zip(variables, extents, strict=True):
                if variable.name == name:
                    start, length = variable.start // inner, variable.length // inner
                    new_variables += [Range(f"{name}o", start, length), Range(f"{name}i", 0, inner)]
                    new_extents += [extent // inner, inner]
                else:
                    new_variables.append(variable)
                    new_extents.append(extent)
            axes.append(tuple(new_variables))
            splits.append(tuple(new_extents))
        return Space(tuple(axes), tuple(splits))

    def cut(self, name: str, cuts: Sequence[int]) -> list[Space]:
        """Boxes between the `cuts` (values of the variable, counted from its start)."""
        found = next(variable for variable in self.variables if variable.name == name)
        edges = [0]
        for at in sorted(cuts):
            if edges[-1] < at < found.length:
                edges.append(at)
        edges.append(found.length)
        return [
            self._with(replace(found, start=found.start + low, length=high - low))
            for low, high in pairwise(edges)
        ]

    def _with(self, changed: Range) -> Space:
        axes = tuple(
            tuple(changed if v.name == changed.name else v for v in axis) for axis in self.axes
        )
        return Space(axes, self.extents)

    def divisible(self, numerator: SymbolicDim, divisor: int) -> tuple[str, int] | None:
        """A variable and where to split it, so that `numerator // divisor` needs no division."""
        extents = {
            variable.name: (variable, extent)
            for variables, splits in zip(self.axes, self.extents, strict=True)
            for variable, extent in zip(variables, splits, strict=True)
        }
        for monomial, factor in numerator.terms:
            name = monomial[0] if len(monomial) == 1 else None
            if not isinstance(name, str) or name not in extents:
                continue
            if factor <= 0 or divisor % factor:
                continue
            inner = divisor // factor
            variable, extent = extents[name]
            even = all(n % inner == 0 for n in (extent, variable.start, variable.length))
            if even and 1 < inner < variable.length:
                return name, inner
        return None


def _value(variable: Range) -> Dim:
    if is_one(variable.length):
        return variable.start
    return symbol(variable.name) + variable.start


def space_of(shape: Sequence[int], prefix: str = VARIABLE) -> Space:
    """The whole space over `shape`, one variable per axis."""
    axes = tuple((Range(f"{prefix}{axis}", 0, n),) for axis, n in enumerate(shape))
    return Space(axes, tuple((n,) for n in shape))
