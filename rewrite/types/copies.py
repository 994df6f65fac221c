"""Copies of arrays whose elements lie in another order than the copy has them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from satura.rewrite.types.tensor_type import Array

_LAST, _OTHERS = 32, 1024  # extents of a block: along the last axis, and along all others together


def reshaped(x: Array, shape: Sequence[int]) -> Array:
    """The elements in row-major order under another shape: where possible the same memory."""
    try:
        return np.reshape(x, shape, copy=False)
    except ValueError:
        return row_major(x, shape)


def row_major(x: Array, shape: Sequence[int]) -> Array:
    """A new C-contiguous array of the elements, copied in blocks.

    What is side by side in `x` is read while its cache lines are near.
    """
    result = np.empty(shape, x.dtype)
    target = result.reshape(x.shape)
    moving = [axis for axis, extent in enumerate(x.shape) if extent > 1]
    nearest = sorted(moving, key=lambda axis: abs(x.strides[axis]))
    if not moving or nearest[0] == moving[-1]:
        target[...] = x
        return result
    sides = [1] * x.ndim
    for axis in nearest:
        if axis != moving[-1]:
            sides[axis] = min(x.shape[axis], max(1, _OTHERS // prod(sides)))
    sides[moving[-1]] = max(_LAST, _LAST * _OTHERS // prod(sides))
    starts = (range(0, extent, side) for extent, side in zip(x.shape, sides, strict=True))
    for start in product(*starts):
        block = tuple(slice(at, at + side) for at, side in zip(start, sides, strict=True))
        target[block] = x[block]
    return result
