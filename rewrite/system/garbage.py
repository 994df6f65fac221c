"""Collection of garbage, which what makes many objects does without."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """No search for cycles: e-graphs, candidates of an extraction, and what Numba makes, are many
    objects that stay until the end. Looking through them over and over took a third of the time.

    Afterwards they count as old, or the next collection of young objects would look through all.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not _has_frozen():
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()


def _has_frozen() -> bool:
    """Whether the process froze anything, which is for good: to count it takes a walk over all."""
    global _FROZEN
    _FROZEN = _FROZEN or gc.get_freeze_count() > 0
    return _FROZEN


_FROZEN = False
