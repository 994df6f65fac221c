"""The meaning of reshape: which index of the operand has the same row-major position.

Positions are kept as lists of digits, each an index with its extent, from the outermost in. Digits
of extent 1 are dropped; a position that was put together from digits is taken apart again. Where a
prefix of the digits has as many elements as a prefix of the operand's axes, they can be matched
separately: a run of digits that makes up one axis is its index; digits that have to be split or
mixed get names of their own, by the extents that they are split into and the position. The same
position split into the same extents gives the same names, and all of those names together stand
for that position: this is all that is used, and it holds since digits below given extents are
unique. A whole number of rows added to a position is added to its first digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import z3

from satura.rewrite.prove.equalities import Equalities
from satura.rewrite.prove.paths import Path
from satura.rewrite.prove.size import terms_of
from satura.rewrite.prove.stand_in import unknown
from satura.rewrite.prove.tensors import Elements, Index, Judge
from satura.rewrite.prove.z3_terms import formula, within
from satura.rewrite.types.attributes import Shape
from satura.rewrite.types.dims import Dim, SymbolicDim, monomials_of, polynomial, product

Digit = tuple[Dim, Dim]  # an index and its extent


@dataclass
class Positions:
    """What is known of the positions on one path."""

    path: Path
    equalities: Equalities
    parts: dict[Dim, tuple[Digit, ...]] = field(default_factory=dict)
    inside: dict[str, bool] = field(default_factory=dict)
    groups: dict[str, tuple[Dim, tuple[Digit, ...]]] = field(default_factory=dict)

    def normal(self, dim: Dim) -> Dim:
        return self.equalities.normal(dim)

    def quotient(self, dim: Dim, divisor: Dim) -> Dim | None:
        return self.equalities.quotient(self.normal(dim), divisor)

    def finest_digits(self, digits: list[Digit]) -> list[Digit]:
        """The finest digits of the same position."""
        for _ in range(10):
            new = self._collapse(self._expand(digits))
            if new == digits:
                break
            digits = new
        return digits

    def _expand(self, digits: list[Digit]) -> list[Digit]:
        result: list[Digit] = []
        for index, extent in digits:
            index, extent = self.normal(index), self.normal(extent)
            if extent != 1:
                result += self.parts_of(index, extent) or [(index, extent)]
        return result

    def parts_of(self, index: Dim, extent: Dim) -> list[Digit]:
        """The digits that make up `index`, some rows added to the first; empty where none do."""
        parts = self.parts.get(index, ())
        if (
            parts
            and self.are_digits(parts)
            and self.equalities.same(product(n for _, n in parts), extent)
        ):
            return list(parts)
        for position, ((first, _), *rest) in self.parts.items():
            row = self.row_size(rest)
            rows, more = self.quotient(extent, row), self.quotient(index - position, row)
            if rows is not None and more is not None and self.are_digits(rest):
                return [(self.normal(first + more), self.normal(rows)), *rest]
        return []

    def are_digits(self, digits: Sequence[Digit]) -> bool:
        """Whether each digit is below its extent, without which the position has other digits."""
        key = str(digits)
        if key not in self.inside:
            self.inside[key] = self.path.follows(z3.And(*(within(*digit) for digit in digits)))
        return self.inside[key]

    def row_size(self, digits: Sequence[Digit]) -> Dim:
        """How many positions there are for these digits."""
        return self.normal(product(extent for _, extent in digits))

    def _collapse(self, digits: list[Digit]) -> list[Digit]:
        for start, (first, extent) in enumerate(digits):
            found = self.position_of(first)
            if found is not None:
                position, rest = found
                end = start + 1 + len(rest)
                if digits[start + 1 : end] == list(rest):
                    merged = (position, self.normal(extent * self.row_size(rest)))
                    return [*digits[:start], merged, *digits[end:]]
        return digits

    def position_of(self, first: Dim) -> tuple[Dim, tuple[Digit, ...]] | None:
        """The position whose first digit is `first`, and its other digits."""
        for name in sorted(first.symbols) if isinstance(first, SymbolicDim) else ():
            if name in self.groups:
                position, rest = self.groups[name]
                more = first - unknown(name)
                if isinstance(more, int) or name not in more.symbols:
                    return self.normal(position + more * self.row_size(rest)), rest
        return None

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
        """The digits below `extents` of the position of `digits`; no extent is 1."""
        if len(extents) == 1:
            return [self.position(digits)]
        position, row = (
            self.position(digits),
            self.row_size([(0, extent) for extent in extents[1:]]),
        )
        if isinstance(position, int):
            inner: list[Dim] = []
            for extent in extents[:0:-1]:
                if not isinstance(extent, int):
                    break
                inner.append(position % extent)
                position = position // extent
            else:
                return [position, *inner[::-1]]
            position = self.position(digits)
        rows: Dim = 0  # whole rows go to the first digit and leave the others alone
        for monomial, coefficient in monomials_of(position):
            part = polynomial([(monomial, coefficient)])
            rows = rows + (self.equalities.quotient(part, row) or 0)
        rest = self.normal(position - rows * row)
        text = f"{rest} in {extents[1:]}"
        names = [unknown(f"<{text}>{number}") for number in range(len(extents))]
        self.groups[str(names[0])] = (rest, tuple(zip(names[1:], extents[1:], strict=True)))
        return [self.normal(names[0] + rows), *names[1:]]

    def index_of(self, digits: list[Digit], extents: list[Dim]) -> list[Dim]:
        """The index below `extents` (none of which is 1) with the position of `digits`."""
        result: list[Dim] = []
        while extents:
            count, width = self._first_block(digits, extents)
            result += self.split(digits[:count], extents[:width])
            digits, extents = digits[count:], extents[width:]
        return result

    def _first_block(self, digits: list[Digit], extents: list[Dim]) -> tuple[int, int]:
        """The fewest digits and extents that have equally many elements: how many of each."""
        for total in range(2, len(digits) + len(extents)):
            for count in range(max(1, total - len(extents)), min(total, len(digits) + 1)):
                width = total - count
                mine = product(extent for _, extent in digits[:count])
                if self.equalities.same(mine, product(extents[:width])):
                    return count, width
        return len(digits), len(extents)


def positions_of(path: Path) -> Positions:
    """The positions of this path; new equalities make a new table."""
    known = (path.equalities, len(path.actual_zeros))
    if path.positions is None or path.positions[0] != known:
        path.positions = (known, Positions(path, path.equalities.with_actual(path.actual_zeros)))
    positions: Positions = path.positions[1]
    return positions


def compare_rows(path: Path, position: Dim, extent: Dim, bound: Dim) -> None:
    """Tell the solver that a position is below whole rows exactly where its first digit is."""
    positions = positions_of(path)
    position, bound = positions.normal(position), positions.normal(bound)
    whole = positions.position_of(position)
    if whole is not None:  # of a position that was split, by its own digits
        row = positions.row_size(whole[1])
        same = (formula(position) < formula(bound)) == (formula(whole[0]) < formula(bound * row))
        path.assume(z3.Implies(z3.And(within(position, extent), formula(row) > 0), same))
        compare_rows(path, whole[0], extent * row, bound * row)
    found = [positions.parts_of(position, positions.normal(extent))]
    for name, (start, rest) in positions.groups.items():
        if start == position:
            found.append([(unknown(name), 0), *rest])
    for digits in found:
        row = positions.row_size(digits[1:])
        rows = positions.quotient(bound, row)
        if digits and rows is not None:
            below = formula(position) < formula(bound)
            first = formula(digits[0][0]) < formula(rows)
            inside = z3.And(within(position, extent), *(within(*digit) for digit in digits[1:]))
            path.assume(z3.Implies(inside, below == first))


def reshape(judge: Judge, x: Elements, shape: Shape) -> Elements:
    new = terms_of(shape.dims)
    judge.same(product(x.shape), product(new), "the number of elements differs")
    for dim in new:
        judge.natural(dim, "a size is negative")

    def at(index: Index) -> z3.ExprRef:
        positions = positions_of(judge.path)
        digits = positions.finest_digits(list(zip(index, new, strict=True)))
        extents = [positions.normal(dim) for dim in x.shape]
        found = iter(positions.index_of(digits, [dim for dim in extents if dim != 1]))
        read = tuple(0 if dim == 1 else next(found) for dim in extents)
        inside = [within(*digit) for digit in zip(index, new, strict=True)]
        reached = [within(*digit) for digit in zip(read, x.shape, strict=True)]
        judge.path.assume(z3.Implies(z3.And(*inside), z3.And(*reached)))
        return x.at(read)

    return x.moved(new, at)
