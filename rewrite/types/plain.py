"""Plain values: attributes with nothing of a class in them that is not satura's or Python's own.

What attribute functions compute may hold NumPy's integers, or ints and tuples of classes of their
author's own. They are equal to plain ones, but other code meets them much later.
"""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from functools import cache
from typing import TypeVar, cast, get_args

import numpy as np

from satura.rewrite.types.attributes import Attribute, Constant, UserAttribute
from satura.rewrite.types.dims import Quotient, SymbolicDim
from satura.rewrite.types.tensor_type import TensorType

T = TypeVar("T")

_LEAVES = frozenset({int, float, bool, str, bytes, type(None)})
_WHOLES = {*get_args(Attribute), SymbolicDim, Quotient, TensorType}


def plain(value: T) -> T:
    """`value`, or what is equal to it and plain. Raises TypeError for what cannot be made so."""
    return value if _is_plain(value) else cast(T, _made_plain(value))


def _is_plain(value: object) -> bool:
    kind: type = type(value)
    if kind in _LEAVES:
        return True
    if kind is tuple:
        return all(map(_is_plain, cast(tuple[object, ...], value)))
    if kind is Constant:
        return type(cast(Constant, value).array) is np.ndarray
    if isinstance(value, Enum):
        return True
    return _is_whole(kind) and all(_is_plain(getattr(value, name)) for name in _names(kind))


def _made_plain(value: object) -> object:
    if _is_plain(value):
        return value
    if isinstance(value, np.generic):
        return value.item()
    # With the methods of the plain class: those of another could do anything.
    if isinstance(value, tuple):
        return tuple(map(_made_plain, tuple.__iter__(value)))
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Constant):
        return Constant(np.array(value.array))
    kind: type = type(value)
    if _is_whole(kind):
        return kind(*(_made_plain(getattr(value, name)) for name in _names(kind)))
    raise TypeError(f"the {kind.__name__} {value!r} cannot stand in an attribute")


def _is_whole(kind: type) -> bool:
    return kind in _WHOLES or issubclass(kind, UserAttribute)


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
