"""Types of tensors, their dims, and the attributes of ops."""

from __future__ import annotations

_MOVED = ("Array", "DType", "FLOATS", "TensorType")


def __getattr__(name: str) -> object:
    """A name that stood here when this folder was one file."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from satura.rewrite.errors import warn_of_former_place
    from satura.rewrite.types import tensor_type

    warn_of_former_place(__name__)
    found: object = getattr(tensor_type, name)
    return found
