"""What is said of an index that is outside of an axis.

A negative index counts from the end. Where a number must not be negative, lowerings move those that
are refused down by `FAR`, where no axis has an element.
"""

from __future__ import annotations

FAR = 1 << 62
_NEAR = 1 << 32  # numbers so far from 0 are told from others after they were moved


def outside(index: int, least: int, extent: int) -> tuple[str, int]:
    """What is wrong with an index, and the number that it was before it was moved."""
    number = index + FAR
    if -_NEAR < number < _NEAR:
        least, index = 0, number
    return f"an index lies outside [{least}, {extent})", index
