"""Panels: the weights of a recurrence as its kernel reads them, some units with all their gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from satura.backend.target import Target, host_target
from satura.rewrite.ops.cells import Phase
from satura.rewrite.types.tensor_type import Array, DType

TALLEST = 12
_WIDEST = 8  # vectors
_SEVERAL = 8  # sequences
_LEAST = 2  # vectors of units that formulas take at a time: their instructions overlap
_OF_PANEL = 0.1  # cycles for a vector that comes from the second cache
_SPARE = 2  # registers besides those of sums and columns


@dataclass(frozen=True)
class Panel:
    """The weights of some units: `columns` for each of the `gates`, in parts of so many vectors
    that a tile is `vectors` wide."""

    gates: tuple[int, ...]
    hidden: int
    columns: int
    vectors: int
    heights: tuple[int, ...]
    itemsize: int

    @property
    def width(self) -> int:
        return len(self.gates) * self.columns

    @property
    def count(self) -> int:
        return -(-self.hidden // self.columns)

    @property
    def size(self) -> int:
        """Bytes of one panel."""
        return self.hidden * self.width * self.itemsize

    @property
    def parts(self) -> int:
        return self.width // self.part

    @property
    def part(self) -> int:
        """Columns of a part."""
        return self.vectors * host_target().vector_bytes // self.itemsize

    @property
    def part_size(self) -> int:
        return self.size // self.parts

    @property
    def sums(self) -> int:
        """Bytes of the sums of the largest tile of all parts."""
        return self.heights[0] * self.width * self.itemsize


def panel_of(phase: Phase, batch: int, hidden: int, dtype: DType, target: Target) -> Panel:
    """The panel whose tiles take the fewest cycles. A batch that is not known counts as one
    sequence, and as several."""
    lanes = target.vector_bytes // dtype.itemsize
    batches = (int(batch),) if type(batch) is int else (1, _SEVERAL)
    gates = len(phase.gates)
    found = []
    for across in (1, 2, 4, 8):
        if across > _LEAST and across * lanes >= 2 * hidden:
            break
        for together in range(1, gates + 1):  # the gates of a part
            vectors = across * together
            if gates % together or vectors > _WIDEST:
                continue
            tallest = max(1, min(TALLEST, (target.registers - _SPARE - vectors) // vectors))
            cycles = sum(_cycles(rows, vectors, tallest) for rows in batches)
            filled = hidden / (-(-hidden // (across * lanes)) * across * lanes)
            found.append((across < _LEAST, cycles / filled, across, vectors, tallest))
    *_, across, vectors, tallest = min(found)
    if len(batches) == 1:
        tallest = min(tallest, -(-batches[0] // -(-batches[0] // tallest)))
    heights = tuple(dict.fromkeys((tallest, -(-tallest // 2), 1)))
    return Panel(phase.gates, hidden, across * lanes, vectors, heights, dtype.itemsize)


def _cycles(rows: int, vectors: int, tallest: int) -> float:
    """About what one step of the depth takes per sequence and vector: multiply-adds and loads go
    two at a time, and a sum can go on after four cycles. Each tile reads the panel anew."""
    tiles = -(-rows // tallest)
    height = -(-rows // tiles)
    busy = max(height * vectors / 2, (height + vectors) / 2, 4.0)
    return tiles * (busy + _OF_PANEL * vectors) / (rows * vectors)


def pack_phases(weights: Array, panels: Sequence[Panel]) -> Array:
    """Weights [side, unit, gate · unit] as the panels of all phases, side by side."""
    sides, hidden, _ = weights.shape
    parts = []
    for panel in panels:
        columns = panel.count * panel.columns
        wide = np.zeros((sides, hidden, len(panel.gates), columns), weights.dtype)
        gates = weights.reshape(sides, hidden, -1, hidden)
        wide[..., :hidden] = gates[:, :, panel.gates]
        cut = wide.reshape(sides, hidden, len(panel.gates), panel.count, panel.columns)
        lines = cut.transpose(0, 3, 1, 2, 4).reshape(sides, panel.count, hidden, panel.parts, -1)
        parts.append(lines.transpose(0, 1, 3, 2, 4).reshape(sides, -1))
    return np.ascontiguousarray(np.concatenate(parts, 1))
