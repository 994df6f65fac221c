"""Memory that the allocator keeps after it was freed."""

from __future__ import annotations

import ctypes
import sys


def give_back_freed() -> None:
    """Give freed memory back to the system, where its allocator does not do so by itself."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)
