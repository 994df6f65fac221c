"""What is said of an index that is outside of an axis.

A negative index counts from the end. Where a number must not be negative, lowerings move those that
are refused, and are `NEAR` to 0, down by `FAR`: no axis has so many elements, and no other index
lies there but by intent.
"""

from __future__ import annotations

FAR = 0x5D3C_59A1_7B62_E80F
NEAR = 1 << 40  # farther from 0 no axis has an element


def outside(index: int, least: int, extent: int) -> tuple[str, int]:
    """What is wrong with an index, and the number that it was before it was moved."""
    number = index + FAR
    if -NEAR < number < NEAR:
        least, index = 0, number
    return f"an index lies outside [{least}, {extent})", index
