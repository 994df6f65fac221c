"""Matrices in registers of their own (Intel's AMX): sizes, and which of them are multiplied."""

from __future__ import annotations

from dataclasses import dataclass

EDGE = 16  # rows of a register, and words of a row
LINE = 4 * EDGE  # bytes of a row
GROUPS = VECTORS = 2  # of rows, and of columns, that are summed at a time

PARTS = 3  # bf16 whose sum is an f32
LARGE, TINY = (127 + 64) << 23, (127 - 60) << 23  # the bits of 2^64 and 2^-60
WEIGHTS = 2.0**-40, 2.0**20  # between which the largest magnitude of each column is, if not 0


@dataclass(frozen=True)
class Multiplication:
    """An instruction, how many parts a chunk has, and which of rows and panel it multiplies."""

    instruction: str
    parts: int
    pairs: tuple[tuple[int, int], ...]


OF_OCTETS = Multiplication("tdpbusd", 1, ((0, 0),))
OF_PARTS = Multiplication("tdpbf16ps", PARTS, ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)))
"""Of nine products of high, middle and low parts those that matter, the least first. An instruction
rounds its sum of a chunk's products before it adds it: fewer roundings than those of f32."""
