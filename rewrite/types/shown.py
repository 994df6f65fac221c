"""How errors show the arrays that they are about."""

from __future__ import annotations

from satura.rewrite.types.tensor_type import Array

_MOST_SHOWN = 16  # elements


def kind_of(array: Array) -> str:
    """Its element type and shape."""
    name = "str" if array.dtype.kind == "U" else array.dtype.name  # NumPy's has the bits, too
    return f"{name}{list(array.shape)}"


def refused_kind(array: Array, advice: str = "convert it by astype({!r})") -> str:
    """Its element type and shape, and where its bytes are in another order what to do."""
    if array.dtype.isnative:
        return kind_of(array)
    return f"{kind_of(array)} in another byte order: {advice.format(array.dtype.name)}"


def shown(array: Array) -> str:
    """Its elements, or of a large one what kind it is."""
    return str(array.tolist()) if array.size <= _MOST_SHOWN else kind_of(array)
