"""Arrays that start at a cache line: vectors of kernels then lie on one each."""

from __future__ import annotations

from ctypes import addressof, c_char
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satura.rewrite.types.tensor_type import Array

CACHE_LINE = 64
_SMALL = 4096  # bytes, for which it is not worth the time


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Uninitialised bytes."""
    memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -int(memory.ctypes.data) % CACHE_LINE
    return memory[start : start + size]


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An uninitialised array, anywhere if it is small."""
    size = prod(shape) * dtype.itemsize
    if size < _SMALL:
        return np.empty(shape, dtype)
    memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -addressof(c_char.from_buffer(memory.data)) % CACHE_LINE  # sooner than `ctypes.data`
    return np.ndarray(shape, dtype, memory, start)
