"""Collection of garbage, which what makes many objects does without."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """No search for cycles: candidates of an extraction, and what Numba makes, are many objects
    that stay until the end. Looking through them over and over took up to a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
