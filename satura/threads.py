"""How many threads there are to use."""

from __future__ import annotations

import os


def available_threads() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
