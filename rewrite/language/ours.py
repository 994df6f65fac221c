"""What is satura's own, and not written by an author of laws."""

from __future__ import annotations

from types import FrameType, FunctionType

OURS = "satura.rewrite."  # what the names of our modules begin with


def is_ours(written: FunctionType | type | FrameType) -> bool:
    """Whether a function, a class, or what a frame runs is satura's own."""
    if isinstance(written, FrameType):
        module: object = written.f_globals.get("__name__")
    else:
        module = written.__module__
    return str(module).startswith(OURS)
