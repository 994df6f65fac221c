"""Who calls: for messages about what has no place of its own."""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import FrameType


def caller(modules: Collection[str]) -> FrameType:
    """The innermost frame that is in none of `modules`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in modules:
        frame = frame.f_back
    return frame
