"""Floats that come next to others: a law may hold at a number, and not beside it."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from satura.rewrite.types.tensor_type import Array


def next_floats(floats: Array, steps: int | Array) -> Array:
    """The floats so many steps above each of `floats`, or below it where steps are negative; none
    goes beyond the ends of its type."""
    info, counts = ml_dtypes.finfo(floats.dtype), np.abs(steps)
    ends = np.where(np.asarray(steps) < 0, float(info.min), float(info.max)).astype(floats.dtype)
    for number in range(int(np.max(counts, initial=0))):
        floats = np.where(counts > number, np.nextafter(floats, ends), floats)
    return floats
