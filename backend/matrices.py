"""Matrices in registers of their own (Intel's AMX): sizes, and which of them are multiplied."""

from __future__ import annotations

from dataclasses import dataclass

EDGE = 16  # rows of a register, and words of a row
GROUPS = VECTORS = 2  # of rows, and of columns, that are summed at a time

PARTS = 3  # bf16 whose sum is an f32
LARGE, TINY = (127 + 64) << 23, (127 - 60) << 23  # the bits of 2^64 and 2^-60
WEIGHTS = 2.0**-40, 2.0**20  # between which the largest magnitude of each column is, if not 0


@dataclass(frozen=True)
class Multiplication:
    """An instruction, how many parts a chunk has, and which of rows and panel it multiplies, in
    each pass over all taps."""

    instruction: str
    parts: int
    passes: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def products(self) -> int:
        """How many products of registers there are per chunk."""
        return sum(map(len, self.passes))


OF_OCTETS = Multiplication("tdpbusd", 1, (((0, 0),),))
OF_PARTS = Multiplication("tdpbf16ps", PARTS, (((2, 0), (1, 0), (1, 1), (0, 1), (0, 2)), ((0, 0),)))
"""Of nine products of high, middle and low parts those that matter; those of high ones are added to
the sum of all others, which is small."""
