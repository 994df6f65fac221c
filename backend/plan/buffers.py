"""The arena: intermediate buffers share memory where their lifetimes do not overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from satura.backend.cache_lines import whole_lines
from satura.rewrite.types.dims import static

if TYPE_CHECKING:
    from satura.rewrite.extract.schedule import Schedule


@dataclass(frozen=True)
class Lifetime:
    """A buffer of `size` bytes that is written by step `first` and last read by step `last`."""

    buffer: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """Where each buffer starts, and how many bytes there are in all."""

    offsets: Mapping[int, int]
    size: int


def lifetimes(schedule: Schedule) -> list[Lifetime]:
    """Lifetimes of the intermediate buffers, in dispatches; sizes are concrete."""
    program = schedule.program
    fixed = {*program.inputs, *program.output_nodes}
    spans: dict[int, tuple[int, int]] = {}
    for step, dispatch in enumerate(schedule.dispatches):
        homes = [dispatch.target, *(schedule.homes[n] for n in dispatch.operands)]
        homes += [schedule.homes[n] for n in dispatch.nodes if n in schedule.homes]
        for home in homes:
            first, _ = spans.get(home.buffer, (step, step))
            spans[home.buffer] = (first, step)
    return [
        Lifetime(buffer, buffer_size(schedule, buffer), first, last)
        for buffer, (first, last) in spans.items()
        if buffer not in fixed and program.nodes[buffer].op.name != "constant"
    ]


def buffer_size(schedule: Schedule, node: int) -> int:
    """Bytes of a node's tensor."""
    type_ = schedule.program.nodes[node].type
    return prod(map(static, type_.shape)) * type_.dtype.itemsize


def plan_arena(buffers: Sequence[Lifetime]) -> Arena:
    """Offsets by best fit, largest buffers first."""
    return Packing(buffers).arena([buffer.size for buffer in buffers])


class Packing:
    """Packs the same buffers once and again, for sizes that differ."""

    def __init__(self, buffers: Sequence[Lifetime]) -> None:
        self._buffers = tuple(buffers)
        order = sorted(range(len(buffers)), key=lambda i: (buffers[i].first, buffers[i].buffer))
        self._order = tuple(order)
        self._beside: list[list[int]] = [[] for _ in buffers]
        alive: list[int] = []
        for new in order:
            alive = [old for old in alive if buffers[old].last >= buffers[new].first]
            for old in alive:
                self._beside[old].append(new)
            self._beside[new] += alive
            alive.append(new)

    def arena(self, sizes: Sequence[int]) -> Arena:
        """Where the buffers start when they have these sizes."""
        rounded = [whole_lines(max(size, 1)) for size in sizes]
        places: list[tuple[int, int]] = [(0, 0)] * len(rounded)  # from where to where
        for buffer in sorted(self._order, key=lambda i: -sizes[i]):
            size = rounded[buffer]
            gap, at, end = 0, -1, 0
            for start, stop in sorted([places[other] for other in self._beside[buffer]]):
                if start - end >= size and (at < 0 or start - end < gap):
                    gap, at = start - end, end
                if stop > end:
                    end = stop
            start = end if at < 0 else at
            places[buffer] = start, start + size
        offsets = {
            each.buffer: start for each, (start, _) in zip(self._buffers, places, strict=True)
        }
        return Arena(offsets, max((stop for _, stop in places), default=0))
