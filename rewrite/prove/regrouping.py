"""The meaning of reshape: which index of the operand has the same row-major position.

Positions are kept as lists of digits, each an index with its extent, from the outermost in. Digits
of extent 1 are dropped; a position that was put together from digits is taken apart again. Where a
prefix of the digits has as many elements as a prefix of the operand's axes, they can be matched
separately: a run of digits that makes up one axis is its index; digits that have to be split or
mixed get names of their own, by the extents that they are split into and the position. The same
position split into the same extents gives the same names, and all of those names together stand
for that position: this is all that is used, and it holds since digits below given extents are
unique.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import z3

from satura.rewrite.attributes import Shape
from satura.rewrite.dims import Dim, SymbolicDim, exact_quotient, product, symbol
from satura.rewrite.prove.equalities import Equalities
from satura.rewrite.prove.paths import Path
from satura.rewrite.prove.size import terms_of
from satura.rewrite.prove.tensors import Elements, Index, Judge
from satura.rewrite.prove.terms import formula, within

Digit = tuple[Dim, Dim]  # an index and its extent


@dataclass
class Positions:
    """What is known of the positions on one path."""

    equalities: Equalities
    parts: dict[Dim, tuple[Digit, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[tuple[Digit, ...], tuple[Digit, ...]]] = field(default_factory=dict)

    def normal(self, dim: Dim) -> Dim:
        return self.equalities.normal(dim)

    def digits(self, digits: list[Digit]) -> list[Digit]:
        """The finest digits of the same position."""
        for _ in range(10):
            new = self._collapsed(self._expanded(digits))
            if new == digits:
                break
            digits = new
        return digits

    def _expanded(self, digits: list[Digit]) -> list[Digit]:
        result: list[Digit] = []
        for index, extent in digits:
            extent = self.normal(extent)
            if extent == 1:
                continue
            parts = self.parts.get(self.normal(index), ())
            whole = parts and self.equalities.same(product(n for _, n in parts), extent)
            result += list(parts) if whole else [(self.normal(index), extent)]
        return result

    def _collapsed(self, digits: list[Digit]) -> list[Digit]:
        for start, (first, _) in enumerate(digits):
            group = self.groups.get(str(first))
            if group is not None:
                names, whole = group
                if digits[start : start + len(names)] == list(names):
                    return [*digits[:start], *whole, *digits[start + len(names) :]]
        return digits

    def position(self, digits: list[Digit]) -> Dim:
        """The digits as one number."""
        total: Dim = 0
        for index, extent in digits:
            total = total * extent + index
        total = self.normal(total)
        if len(digits) > 1 and isinstance(total, SymbolicDim):
            self.parts.setdefault(total, tuple(digits))
        return total

    def split(self, digits: list[Digit], extents: list[Dim]) -> list[Dim]:
        """The position of `digits` as an index below `extents`, none of which is 1."""
        if len(extents) == 1:
            return [self.position(digits)]
        position = self.position(digits)
        text = f"{position} in {extents}"
        names = tuple(
            (symbol(f"<{text}>{number}"), extent) for number, extent in enumerate(extents)
        )
        self.groups[str(names[0][0])] = (names, tuple(digits))
        return [name for name, _ in names]

    def matched(self, digits: list[Digit], extents: list[Dim]) -> list[Dim]:
        """The index below `extents` (none of which is 1) with the position of `digits`."""
        result: list[Dim] = []
        while extents:
            count, width = self._first_block(digits, extents)
            result += self.split(digits[:count], extents[:width])
            digits, extents = digits[count:], extents[width:]
        return result

    def _first_block(self, digits: list[Digit], extents: list[Dim]) -> tuple[int, int]:
        """How many digits have as many elements as how many extents, as few as possible."""
        for total in range(2, len(digits) + len(extents)):
            for count in range(max(1, total - len(extents)), min(total, len(digits) + 1)):
                width = total - count
                mine = product(extent for _, extent in digits[:count])
                if self.equalities.same(mine, product(extents[:width])):
                    return count, width
        return len(digits), len(extents)


def positions_of(path: Path) -> Positions:
    """The positions of this path; new equalities make a new table."""
    positions: Positions | None = path.positions
    if positions is None or positions.equalities is not path.equalities:
        positions = path.positions = Positions(path.equalities)
    return positions


def compare_rows(path: Path, position: Dim, bound: Dim) -> None:
    """A position of several digits is below a number of whole rows when its first digit is."""
    positions = positions_of(path)
    digits = positions.parts.get(positions.normal(position), ())
    if digits:
        row = positions.normal(product(extent for _, extent in digits[1:]))
        rows = exact_quotient(positions.normal(bound), row)
        if rows is not None:
            below = formula(position) < formula(bound)
            inside = z3.And(*(within(*digit) for digit in digits))
            first = formula(digits[0][0]) < formula(rows)
            path.assume(z3.Implies(inside, below == first))


def reshape(judge: Judge, x: Elements, shape: Shape) -> Elements:
    new = terms_of(shape.dims)
    judge.same(product(x.shape), product(new), "the number of elements differs")
    for dim in new:
        judge.natural(dim, "a size is negative")

    def at(index: Index) -> z3.ExprRef:
        positions = positions_of(judge.path)
        digits = positions.digits(list(zip(index, new, strict=True)))
        extents = [positions.normal(dim) for dim in x.shape]
        found = iter(positions.matched(digits, [dim for dim in extents if dim != 1]))
        read = tuple(0 if dim == 1 else next(found) for dim in extents)
        inside = [within(*digit) for digit in zip(index, new, strict=True)]
        reached = [within(*digit) for digit in zip(read, x.shape, strict=True)]
        judge.path.assume(z3.Implies(z3.And(*inside), z3.And(*reached)))
        return x.at(read)

    return x.moved(new, at)
