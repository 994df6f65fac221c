"""From a nest as lowered to its canonical form: few loops, the best one innermost.

Loops in order: outer ones (their iterations are split over threads), middle ones, and one inner
loop that vectorises. Three forms:

    plain   no reductions; inner is the loop with most unit strides; a middle loop, if any, is a
            short one along which the result is stored: all its iterations stand side by side
    row     inner is a reduced loop; reductions accumulate in registers
    column  inner is a kept loop; reductions accumulate in an array over it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from satura.backend.lower.body import Access, BodyBuilder, Nest, needed_values
from satura.backend.sizes.size import is_fixed, where_large
from satura.rewrite.types.dims import is_same

SHORT = 8  # an inner loop of fewer iterations hardly vectorises
MOST_OF_SHORT = 16  # cost of an inner loop of no iterations: as of two strided accesses
MORE_OF_DEAR = 4  # times as much, where an iteration computes longer than it loads and stores
LONGEST_RUN = 4  # iterations of a loop that stand side by side
MOST_OF_RUN = 96  # values that they compute for what they read: more take long to compile


@dataclass(frozen=True)
class Canonical:
    """A nest whose loops stand in the order outer, middle, inner (always exactly one inner)."""

    nest: Nest
    outer: int
    middle: int
    column: bool


def canonical(nest: Nest, is_alone: bool = True) -> Canonical:
    """The canonical form of `nest`, whose extents are all positive.

    Where it is not alone in its kernel, all boxes had better have the same loops inside.
    """
    nest = renumber(nest)
    if not nest.reductions:
        order = _by_stride(list(nest.outer), nest.target)
        run = _run(nest, order)
        if run is not None:
            loop, short = run
            order.remove(short)
            return _arrange(nest, order, [short], loop, False)
        is_short = is_alone and nest.is_dear and _is_last_apart(nest, order)
        shortness = MORE_OF_DEAR if is_short else 1
        inner = _best(nest, list(nest.outer), tuple(nest.accesses()), shortness)
        return _arrange(nest, order, [], inner, False)
    reads = _reads_of_reductions(nest)
    clipped = {clip.loop for clip in nest.clips}
    row = _best(nest, [loop for loop in nest.inner if loop not in clipped], reads)
    columns = [loop for loop in nest.outer if not _moves_clips(nest, loop)]
    column = _best(nest, columns, (*reads, nest.target))
    ordered = any(reduction.position is not None for reduction in nest.reductions)
    middle = list(nest.inner) if ordered else _by_stride(list(nest.inner), *reads)
    outer = _by_stride(list(nest.outer), nest.target)
    if column is not None and _is_column(nest, row, column, reads):
        return _arrange(nest, outer, middle, column, True)
    if ordered and row is not None:
        row = middle[-1]
    return _arrange(nest, outer, middle, row, False)


def _is_last_apart(nest: Nest, order: Sequence[int]) -> bool:
    """Whether the last of some loops is not one with the loop before it."""
    merged = _merge_loops(nest, [[loop] for loop in order], set())
    return bool(merged) and len(merged[-1]) == 1


def _run(nest: Nest, order: Sequence[int]) -> tuple[int, int] | None:
    """A loop, and a short one whose results stand between its results, as in upsampling; or, where
    results of the loop lie side by side, whose elements stand between those that it reads."""
    size = nest.dtype.itemsize
    found = _interleaved(nest, order, nest.target.strides, size)
    if found is not None or LONGEST_RUN * len(nest.values) > MOST_OF_RUN:
        return found
    for value in nest.values:
        if value.access is not None:
            found = _interleaved(nest, order, value.access.strides, value.dtype.itemsize)
            if found is not None and not _turns_others(nest, *found):
                return found
    return None


def _turns_others(nest: Nest, loop: int, short: int) -> bool:
    """Whether something is read or stored at a distance along a loop, and not between neighbours
    along a short one."""
    sizes, extent = _element_sizes(nest), nest.extents[short]
    for access in nest.accesses():
        size = sizes.get(access, 0)
        stride = access.strides[loop]
        is_between = access is not nest.target and is_same(abs(access.strides[short]), size)
        steps = (0, size, extent * size) if is_between else (0, size)
        if not any(is_same(stride, step) for step in steps):
            return True
    return False


def _interleaved(
    nest: Nest, order: Sequence[int], strides: Sequence[int], size: int
) -> tuple[int, int] | None:
    """The last of some loops that are one, and a short loop whose elements at `strides` stand
    between theirs."""
    for short in nest.outer:
        extent = nest.extents[short]
        if not is_fixed(extent) or not 1 < extent <= LONGEST_RUN or abs(strides[short]) != size:
            continue  # each number of them has kernels of its own
        for group in _merge_loops(nest, [[loop] for loop in order if loop != short], set()):
            length = prod(nest.extents[loop] for loop in group)
            if is_same(strides[group[-1]], extent * size) and length >= SHORT:
                return group[-1], short
    return None


def _is_column(nest: Nest, row: int | None, column: int, reads: Sequence[Access]) -> bool:
    """Whether the kept loop `column` makes a better inner loop than the reduced `row`."""
    if row is None:
        return True
    as_column = _strided(nest, column, (*reads, nest.target))
    return _least(nest, [(_strided(nest, row, reads), row), (as_column, column)]) == 1


def _moves_clips(nest: Nest, loop: int) -> bool:
    """Whether which taps are left out depends on this loop."""
    origins = needed_values(nest.values, [clip.origin for clip in nest.clips])
    accesses = (nest.values[index].access for index in origins)
    return any(access is not None and access.strides[loop] for access in accesses)


def _best(
    nest: Nest, loops: Sequence[int], accesses: Sequence[Access], shortness: int = 1
) -> int | None:
    """The loop with fewest strided accesses, the last of equals."""
    last_first = [*reversed(loops)]
    choices = [(_strided(nest, loop, accesses), loop) for loop in last_first]
    found = _least(nest, choices, shortness)
    return None if found is None else last_first[found]


def _least(nest: Nest, choices: Sequence[tuple[int, int]], shortness: int = 1) -> int | None:
    """Which of some costs of strided accesses, and loops, is the least, the first of equals.

    Too few iterations cost, too, `shortness` times as much as where little is computed. They are
    counted only where that decides: it makes classes of sizes.
    """
    order = sorted((strided, place) for place, (strided, _) in enumerate(choices))
    found: tuple[int, int] | None = None
    for number, (strided, place) in enumerate(order):
        if found is not None and (strided, place) > found:
            break
        extent = nest.extents[choices[place][1]]
        worst = strided + shortness * MOST_OF_SHORT // (1 if is_fixed(extent) else 2), place
        rivals = [*order[number + 1 :], *([found] if found else [])]
        if any(rival < worst for rival in rivals):
            worst = strided + shortness * _shortness(extent), place
        found = worst if found is None else min(found, worst)
    return None if found is None else found[1]


def _strided(nest: Nest, loop: int, accesses: Sequence[Access]) -> int:
    """Cost of accesses that are strided along `loop`."""
    sizes = _element_sizes(nest)
    strided = 0
    for access in accesses:
        stride = abs(access.strides[loop])
        dense = is_same(stride, 0) or is_same(stride, sizes.get(access, stride))
        dense = dense and not nest.is_led(access, loop)
        if not dense and not isinstance(access.start, int):
            strided += 8 if access is not nest.target else 12
    return strided


def _shortness(extent: int) -> int:
    """Cost of too few iterations; each count of one that depends on sizes would make a class."""
    if is_fixed(extent):
        return MOST_OF_SHORT // SHORT * (SHORT - min(SHORT, extent))
    return 0 if extent >= SHORT else MOST_OF_SHORT // 2


def _element_sizes(nest: Nest) -> dict[Access, int]:
    sizes = {v.access: v.dtype.itemsize for v in nest.values if v.access is not None}
    sizes[nest.target] = nest.dtype.itemsize
    return sizes


def _reads_of_reductions(nest: Nest) -> tuple[Access, ...]:
    """What the reductions read."""
    indices = needed_values(nest.values, [reduction.operand for reduction in nest.reductions])
    loads = (nest.values[index] for index in indices)
    return tuple(v.access for v in loads if v.access is not None and v.op == "load")


def _by_stride(loops: list[int], *accesses: Access) -> list[int]:
    """Loops by falling stride of the first access that moves with them."""

    def key(loop: int) -> tuple[int, ...]:
        return tuple(-abs(where_large(access.strides[loop])) for access in accesses)

    return sorted(loops, key=key)


def _arrange(
    nest: Nest, outer: list[int], middle: list[int], inner: int | None, column: bool
) -> Canonical:
    """The nest with loops in the given order, neighbours merged, and one inner loop."""
    outers = [[loop] for loop in outer if loop != inner]
    middles = [[loop] for loop in middle if loop != inner]
    inners = [] if inner is None else [[inner]]
    fixed = {clip.loop for clip in nest.clips}
    if inners and (column or not nest.reductions):
        *outers, inners[0] = _merge_loops(nest, [*outers, *inners], fixed)
    elif inners:
        *middles, inners[0] = _merge_loops(nest, [*middles, *inners], fixed)
    outers, middles = _merge_loops(nest, outers, fixed), _merge_loops(nest, middles, fixed)
    groups = [*outers, *middles, *inners]
    extents = [prod(nest.extents[loop] for loop in group) for group in groups]
    places = {loop: place for place, group in enumerate(groups) for loop in group}
    clips = tuple(replace(clip, loop=places[clip.loop]) for clip in nest.clips)
    dummy = (1,) if not inners else ()  # there is always an inner loop

    def restride(strides: tuple[int, ...]) -> tuple[int, ...]:
        return (*(strides[group[-1]] for group in groups), *(0 for _ in dummy))

    moved = nest.with_loops([*extents, *dummy], restride, clips)
    return Canonical(moved, len(outers), len(middles), column)


def _merge_loops(nest: Nest, groups: list[list[int]], fixed: set[int]) -> list[list[int]]:
    """Neighbouring loops made one wherever every access steps evenly through both."""
    accesses = tuple(nest.accesses())
    result: list[list[int]] = []
    for group in reversed(groups):
        if result and not fixed.intersection([*group, *result[0]]):
            first, second = group[-1], result[0]
            extent = prod(nest.extents[loop] for loop in second)
            if all(is_same(a.strides[first], a.strides[second[-1]] * extent) for a in accesses):
                result[0] = [*group, *second]
                continue
        result.insert(0, group)
    return result


def renumber(nest: Nest) -> Nest:
    """Only the values that are needed, in the order in which a walk from the results meets them."""
    body = BodyBuilder()
    places: dict[int, int] = {}

    def place(index: int) -> int:
        if index not in places:
            value = nest.values[index]
            operands = tuple(place(operand) for operand in value.operands)
            access = value.access
            if access is not None and access.extras:
                extras = tuple((place(source), scale) for source, scale in access.extras)
                access = replace(access, extras=extras)
            places[index] = body.add(replace(value, operands=operands, access=access))
        return places[index]

    clips = tuple(replace(clip, origin=place(clip.origin)) for clip in nest.clips)
    reductions = tuple(
        replace(
            reduction,
            operand=place(reduction.operand),
            position=None if reduction.position is None else place(reduction.position),
            fill=None if reduction.fill is None else place(reduction.fill),
        )
        for reduction in nest.reductions
    )
    result = place(nest.result)
    return replace(
        nest, values=tuple(body.values), clips=clips, reductions=reductions, result=result
    )
