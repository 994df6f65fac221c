"""Where the arrays lie that kernels read."""

from __future__ import annotations

import numpy as np
import pytest

from satura.backend.cache_lines import CACHE_LINE, address, aligned_bytes
from satura.backend.constants import ConstantStore
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import Array


def between_lines(size: int) -> Array:
    """Random octets whose first one stands 16 bytes behind the start of a cache line."""
    octets = aligned_bytes(size + 16)[16:]
    octets[...] = np.random.default_rng(size).integers(0, 256, size)
    return octets


@pytest.mark.parametrize("size", [0, 1, 64, 5000, 100_000])
def test_arrays_start_at_a_cache_line(size: int) -> None:
    """What is packed does, and what is small; its elements are the same."""
    store, octets = ConstantStore(), between_lines(size)
    numbers = [store.made(store.derived(b"packed", lambda: octets))]
    if size <= 5000:
        numbers.append(store.number(Constant(octets)))
    for number in numbers:
        found = store.arrays[number]
        np.testing.assert_array_equal(found, octets)
        assert size == 0 or address(found) % CACHE_LINE == 0
