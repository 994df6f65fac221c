"""The arena: intermediate buffers share memory where their lifetimes do not overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from satura.backend.run.workspace import ALIGNMENT
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.types.dims import static


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
    placed: list[tuple[int, int, Lifetime]] = []  # (start, end, lifetime) by start
    offsets: dict[int, int] = {}
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first, b.buffer)):
        size = -(-max(buffer.size, 1) // ALIGNMENT) * ALIGNMENT
        best: tuple[int, int] | None = None  # (gap, start)
        end = 0
        for start, stop, other in placed:
            if other.last < buffer.first or buffer.last < other.first:
                continue
            if start - end >= size and (best is None or start - end < best[0]):
                best = (start - end, end)
            end = max(end, stop)
        at = end if best is None else best[1]
        offsets[buffer.buffer] = at
        placed.append((at, at + size, buffer))
        placed.sort(key=lambda entry: entry[:2])
    return Arena(offsets, max((stop for _, stop, _ in placed), default=0))
