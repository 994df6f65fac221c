"""Plain values: attributes and types that are of satura's and Python's classes, and within bounds.

What attribute functions compute may hold NumPy's integers, or ints and tuples of a user's classes.
They are equal to plain ones, and are made plain. Numbers out of all bounds and extents below 0 are
refused here, because other code would fail on them much later.
"""

from __future__ import annotations

import math
from dataclasses import fields
from enum import Enum
from functools import cache
from itertools import repeat
from typing import TypeVar, cast, get_args

import numpy as np

from satura.rewrite.types.attributes import Attribute, UserAttribute
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Quotient, SymbolicDim
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import TensorType

T = TypeVar("T")


class KindError(TypeError):
    """A value of a kind that cannot stand where it does, whatever the operands."""


_LEAVES = frozenset({str, bytes, type(None)})
_LEAVES_OF_USERS = frozenset({float, bool})  # in attributes of users' classes
_WHOLES = {*get_args(Attribute), SymbolicDim, Quotient, TensorType, SizeCondition}

# Bounds that no program comes near; beyond them arithmetic overflows further on.
_LARGEST_NUMBER = 1 << 60
_LARGEST_TENSOR = 1 << 48


def as_plain(value: T) -> T:
    """`value`, or what is equal to it and plain. Raises TypeError for what cannot be made so."""
    return value if _is_plain(value) else cast(T, _make_plain(value))


def _is_plain(value: object, of_user: bool = False) -> bool:
    kind: type = type(value)
    if kind is int:
        return -_LARGEST_NUMBER <= cast(int, value) <= _LARGEST_NUMBER
    if kind is tuple:
        return all(map(_is_plain, cast(tuple[object, ...], value), repeat(of_user)))
    if _is_leaf(kind):
        return True
    if kind is Constant:
        return type(cast(Constant, value).kept) in (np.ndarray, type(None))
    if not _is_whole(kind):
        return of_user and kind in _LEAVES_OF_USERS
    of_user = issubclass(kind, UserAttribute)
    for name in field_names(kind):
        if not _is_plain(getattr(value, name), of_user):
            return False
    return _flaw(value) is None


def _make_plain(value: object, of_user: bool = False) -> object:
    if _is_plain(value, of_user):
        return value
    if isinstance(value, np.generic):
        return _make_plain(value.item(), of_user)
    # With the methods of the plain class: those of another could do anything.
    if isinstance(value, tuple):
        return tuple(_make_plain(part, of_user) for part in tuple.__iter__(value))
    if isinstance(value, int) and not isinstance(value, bool):
        number = int.__int__(value)
        if not _is_plain(number):
            raise TypeError(f"the number {str(number)[:40]} is out of all bounds")
        return number
    if isinstance(value, float) and of_user:
        return float.__float__(value)
    if isinstance(value, Constant):
        return Constant(np.array(value.array))
    kind: type = type(value)
    if not _is_whole(kind):
        raise KindError(f"the {kind.__name__} {value!r} cannot stand in an attribute")
    of_user = issubclass(kind, UserAttribute)
    made = kind(*(_make_plain(getattr(value, name), of_user) for name in field_names(kind)))
    if flaw := _flaw(made):
        raise TypeError(flaw)
    return made


def _flaw(value: object) -> str | None:
    """Why a scalar or type is impossible although its parts are plain; None where it is not."""
    if isinstance(value, Scalar) and len(value.bits) != value.dtype.itemsize:
        return f"a {value.dtype.value} has {value.dtype.itemsize} bytes, not {len(value.bits)}"
    if isinstance(value, TensorType):
        extents = [dim for dim in value.shape if isinstance(dim, int)]
        if min(extents, default=0) < 0:
            return f"there is no {value}: an extent is negative"
        if math.prod(extents) > _LARGEST_TENSOR:
            return f"there is no {value}: it is out of all bounds"
    return None


@cache
def _is_leaf(kind: type) -> bool:
    return kind in _LEAVES or issubclass(kind, Enum)


@cache
def _is_whole(kind: type) -> bool:
    return kind in _WHOLES or issubclass(kind, UserAttribute)


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Names of the fields of a dataclass, in order."""
    return tuple(field.name for field in fields(kind))
