"""Typical sizes: at which all conditions of a program hold, and for costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from itertools import chain

from satura.rewrite.types.at_sizes import probe
from satura.rewrite.types.dims import Dim, symbols_of
from satura.rewrite.types.size_condition import SizeCondition

TYPICAL = (16, 64, 256, 1024, 4096)
SMALL = (1, 2, 3, 5, 7, 4, 8, 12)
_DOUBLINGS = 20
_FEW = (1, 2, 3, 4, 6, 8, 12)
_Sizes = dict[str, int]


def samples(names: Set[str], numbers: Sequence[int] = TYPICAL) -> list[_Sizes]:
    """Sizes to look at: each number for all of them, and then another one for each."""
    ordered, count = sorted(names), len(numbers)
    same = [dict.fromkeys(ordered, number) for number in numbers]
    mixed = [
        {name: numbers[(first + at) % count] for at, name in enumerate(ordered)}
        for first in range(count if len(ordered) > 1 else 0)
    ]
    return same + mixed


def allowed_sizes(conditions: Sequence[SizeCondition], names: Set[str], usual: int) -> _Sizes:
    """A size for each of `names`: `usual`, else what all conditions allow, mostly the same for all.

    Where none is found it is `usual`, and some condition does not hold.
    """
    least = [each.right for each in conditions if each.relation == ">="]
    more = sorted(bound for bound in least if isinstance(bound, int) and bound > usual)
    more += [usual << doublings for doublings in range(1, _DOUBLINGS)]
    same = [dict.fromkeys(sorted(names), size) for size in (usual, *range(1, 2 * usual), *more)]
    found = (sizes for sizes in same if not _failing(conditions, sizes))
    changed = (_changed(conditions, sizes) for sizes in same)
    return next(found, None) or next((sizes for sizes in changed if sizes), same[0])


def running_sizes(
    sizes: Mapping[str, int], names: Set[str], runs: Callable[[Mapping[str, int]], bool]
) -> _Sizes | None:
    """Sizes at which a program `runs`: these, else with more or less for one of `names`, or for all
    of them; None where there are none among those that are tried."""
    one = ({**sizes, name: sizes[name] << more} for more in range(1, 11) for name in sorted(names))
    few = ({**sizes, name: size} for size in _FEW for name in sorted(names))
    numbers = (*_FEW, 16, 32, *(64 << more for more in range(11)))
    every = ({**sizes, **dict.fromkeys(names, size)} for size in numbers)
    return next((each for each in chain([dict(sizes)], one, few, every) if runs(each)), None)


def _failing(conditions: Collection[SizeCondition], sizes: Mapping[str, int]) -> int:
    """How many conditions do not hold."""
    return sum(not condition.holds(sizes) for condition in conditions)


def _changed(conditions: Sequence[SizeCondition], sizes: _Sizes) -> _Sizes | None:
    """Sizes that all conditions allow, by changes of one size each that let more of them hold."""
    failing = _failing(conditions, sizes)
    while failing:
        nearer = min(
            (
                sizes | {name: size}
                for condition in conditions if not condition.holds(sizes)
                for name, size in _met(condition, sizes)
            ),
            key=lambda each: _failing(conditions, each), default=sizes,
        )  # fmt: skip
        before, sizes, failing = failing, nearer, _failing(conditions, nearer)
        if failing >= before:
            return None
    return sizes


def _met(condition: SizeCondition, sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Each size of which a change lets a condition hold, and what it is then."""
    more = condition.left - condition.right
    for name in sorted(symbols_of([more])):
        size = sizes[name]
        missing, next_ = (probe(more, {**sizes, name: at}, 0) for at in (size, size + 1))
        slope = next_ - missing
        for better in (size - missing // slope, size + -missing // slope) if slope else ():
            if better > 0 and condition.holds({**sizes, name: better}):
                yield name, better


def representative(dim: Dim, size: int = 64, sizes: Mapping[str, int] | None = None) -> int:
    """A typical value of `dim`, for costs: a symbol counts as in `sizes`, or as `size`, and so does
    what divides by zero then: calls have other sizes."""
    if isinstance(dim, int):
        return dim
    return max(0, probe(dim, {**dict.fromkeys(dim.symbols, size), **(sizes or {})}, size))
