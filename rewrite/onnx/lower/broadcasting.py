"""Which extents that differ in form are equal, and which are 1, where operands broadcast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from satura.rewrite.errors import ProgramError
from satura.rewrite.onnx.lower.refused import NumbersDifferError
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import Dim, SymbolicDim, symbols_of
from satura.rewrite.types.typical import SMALL, samples

_SEVERAL = 3


@dataclass(frozen=True)
class Meeting:
    """How often two extents are the same at some sizes, and how often only one of them is 1.

    At others they do not broadcast, so that no call has those.
    """

    equal: int
    first_is_one: int
    second_is_one: int

    @property
    def runs(self) -> bool:
        """Whether there is one of these sizes at which they broadcast."""
        return bool(self.equal or self.first_is_one or self.second_is_one)

    @property
    def is_mostly_one(self) -> bool:
        """Whether the first is 1, and not as long as the second, at most of these sizes."""
        return self.first_is_one > max(self.equal, self.second_is_one)


def meeting(dim: Dim, other: Dim, likely: Mapping[str, int]) -> Meeting:
    """How two extents meet at sizes that are typical, and at small ones where they meet at none of
    these."""
    names = symbols_of([dim, other])
    typical = samples(names)
    given = {name: size for name, size in likely.items() if name in names}
    as_given = [{**sizes, **given} for sizes in typical if given]
    for sizes in (as_given, typical, samples(names, SMALL)):
        found = _meeting_at(dim, other, sizes)
        if found.runs:
            break
    return found


def _meeting_anywhere(dim: Dim, other: Dim) -> Meeting:
    """How two extents meet at all sizes that are looked at."""
    names = symbols_of([dim, other])
    return _meeting_at(dim, other, samples(names) + samples(names, SMALL))


def is_equal_wherever_it_runs(dim: Dim, other: Dim) -> bool:
    """Whether at no size that is looked at one of two extents is 1 and not the other, and they are
    equal at several that are typical."""
    usual = _meeting_at(dim, other, samples(symbols_of([dim, other])))
    found = _meeting_anywhere(dim, other)
    return usual.equal >= _SEVERAL and not (found.first_is_one or found.second_is_one)


def is_one_wherever_it_runs(dim: Dim, other: Dim) -> bool:
    """Whether an extent is 1 wherever it meets another one, of those sizes that are looked at."""
    return not _meeting_anywhere(dim, other).equal


def _meeting_at(dim: Dim, other: Dim, looked_at: Sequence[Mapping[str, int]]) -> Meeting:
    pairs: list[tuple[int, int]] = []
    for sizes in looked_at:
        try:
            pairs.append((evaluate(dim, sizes), evaluate(other, sizes)))
        except ProgramError:
            continue  # it divides by 0
    return Meeting(
        sum(one == two != 1 for one, two in pairs),
        sum(one == 1 != two for one, two in pairs),
        sum(two == 1 != one for one, two in pairs),
    )


def is_single(dim: Dim, other: Dim, likely: Mapping[str, int]) -> bool:
    """Whether an extent that sizes decide counts as 1 where it meets another one.

    One that is a size of its own does not: it is equal, unless a call says otherwise.
    """
    if not isinstance(dim, SymbolicDim) or dim.name is not None or not may_be_equal(dim, other):
        return False
    return meeting(dim, other, likely).is_mostly_one


def common_shape(*shapes: Sequence[Dim], likely: Mapping[str, int] = {}) -> tuple[Dim, ...]:
    """The shape that all `shapes` broadcast to by NumPy's rule.

    Extents that may be equal are taken for equal, unless one is 1 at most sizes; `likely` are
    sizes that count more. Raises ProgramError where they do not broadcast.
    """
    rank = max(map(len, shapes))
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            longest = result[axis]
            if longest == 1 or is_single(longest, dim, likely):
                result[axis] = dim
            elif may_be_equal(dim, longest) and dim != 1 and not is_single(dim, longest, likely):
                result[axis] = simplest([longest, dim])
            elif dim not in (1, longest) and not is_single(dim, longest, likely):
                shown = " and ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
                is_open = isinstance(longest, SymbolicDim) or isinstance(dim, SymbolicDim)
                kind = ProgramError if is_open else NumbersDifferError
                raise kind(f"{shown} do not broadcast: {longest} against {dim}")
    return tuple(result)


def may_be_equal(dim: Dim, other: Dim) -> bool:
    """Whether two different extents are equal for some sizes, as far as can be told."""
    return dim != other and isinstance(dim - other, SymbolicDim)


def fits(shape: Sequence[Dim], other: Sequence[Dim]) -> bool:
    """Whether two shapes are equal for some sizes, as far as can be told."""
    pairs = zip(shape, other, strict=False)
    return len(shape) == len(other) and all(a == b or may_be_equal(a, b) for a, b in pairs)


def simplest(dims: Sequence[Dim]) -> Dim:
    """The dim with the shortest text, a number before all sizes."""
    return min(dims, key=lambda dim: (isinstance(dim, SymbolicDim), len(str(dim))))
