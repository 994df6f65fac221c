"""Memory that the allocator keeps after it was freed."""

from __future__ import annotations

import ctypes
import sys

_WORTH_IT = 1 << 24  # bytes: to look through a heap takes milliseconds


def give_back_freed(used: int) -> None:
    """Give freed memory back to the system, where its allocator does not do so by itself.

    `used` are the bytes of what was or will be worked on: nothing is done for few.
    """
    if used >= _WORTH_IT and sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)
