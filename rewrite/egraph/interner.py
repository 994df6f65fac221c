"""Interned attributes: the e-graph knows every attribute value by a small number.

Values are told apart by class and content: `0`, `False` and `0.0` are three values, and a scalar
is its bit pattern.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable
from dataclasses import is_dataclass
from enum import Enum
from numbers import Integral

from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.plain import field_names
from satura.rewrite.types.tensor_type import TensorType

Value = Attribute | TensorType


class Interner:
    """Numbers attribute values from 0 in the order in which they are first seen."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self.values: list[Value] = []
        self._numbers: dict[Hashable, int] = {}
        for value in values:
            self.number(value)

    def number(self, value: Value) -> int:
        """The number of `value`; equal values have one number."""
        key = content(value)
        number = self._numbers.setdefault(key, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def __getitem__(self, number: int) -> Value:
        return self.values[number]


def content(value: object) -> Hashable:
    """A key that two values share only when they have one class and equal content."""
    if type(value) is int:  # most are: numbers and tuples of them
        return value
    if isinstance(value, tuple):
        return (tuple, *map(content, value))
    if isinstance(value, bool | str | bytes | Enum) or value is None:
        return (type(value), value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, float):
        return (float, struct.pack("<d", value))
    if isinstance(value, Constant):
        return (Constant, value.digest)
    if isinstance(value, TensorType):
        return value  # its parts are never equal without being the same
    kind: type = type(value)
    if is_dataclass(value):
        return (kind, *(content(getattr(value, name)) for name in field_names(kind)))
    raise TypeError(f"{value!r} cannot stand in an attribute")
