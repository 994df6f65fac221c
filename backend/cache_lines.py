"""Arrays that start at a cache line: vectors of kernels then lie on one each."""

from __future__ import annotations

from ctypes import c_ssize_t
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satura.rewrite.types.tensor_type import Array

CACHE_LINE = 64
SMALL = 4096  # bytes, for which it is not worth the time
_DATA = object.__basicsize__  # where `PyArray_DATA` of NumPy's C interface finds it in an array


def address(array: Array) -> int:
    """Where the array starts, in a tenth of the time that `ctypes.data` takes."""
    return c_ssize_t.from_address(id(array) + _DATA).value


def whole_lines(size: int) -> int:
    """The bytes of the cache lines that `size` bytes take, from the start of one on."""
    return -(-size // CACHE_LINE) * CACHE_LINE


def room_for(size: int) -> NDArray[np.uint8]:
    """Uninitialised bytes, so many from the first cache line on."""
    return np.empty(size + CACHE_LINE, np.uint8)


def aligned_in(
    memory: NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> Array:
    """An array that starts at the first cache line of what `room_for` gave."""
    return np.ndarray(shape, dtype, memory, -address(memory) % CACHE_LINE)


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Uninitialised bytes."""
    memory = room_for(size)
    start = -address(memory) % CACHE_LINE
    return memory[start : start + size]


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An uninitialised array, anywhere if it is small."""
    size = prod(shape) * dtype.itemsize
    return np.empty(shape, dtype) if size < SMALL else aligned_in(room_for(size), shape, dtype)


def on_whole_lines(array: Array) -> Array:
    """The array, or its copy where it does not start at a cache line: a vector of it would lie on
    two, and take twice as long to load."""
    if address(array) % CACHE_LINE == 0:
        return array
    copy = aligned_in(room_for(array.nbytes), array.shape, array.dtype)
    copy[...] = array
    return copy
