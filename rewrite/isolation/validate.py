"""What attributes and types may not contain, whoever computed them.

Type rules check how attributes fit their operands; they take it for granted that a permutation
holds ints.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Integral

import numpy as np

from satura.rewrite.types.attributes import Constant, Scalar, UserAttribute
from satura.rewrite.types.dims import SymbolicDim
from satura.rewrite.types.tensor_type import TensorType

# Bounds that no program comes near; beyond them arithmetic overflows further on.
_LARGEST_NUMBER = 1 << 60
_LARGEST_TENSOR = 1 << 48
_LARGEST_CONSTANT = 1 << 26  # bytes, where the program itself has no larger ones

_HASHED_AGAIN = 1 << 20  # bytes: larger constants are too many to hash after each call


def flaw(value: object, constant_bytes: int = 0) -> str | None:
    """Why `value` cannot stand in an attribute; None where nothing is wrong.

    `constant_bytes` is the size of the program's largest constant.
    """
    if value is None or isinstance(value, str | bytes | Enum):
        return None
    if isinstance(value, Integral) and not isinstance(value, bool):
        if abs(int(value)) > _LARGEST_NUMBER:
            return f"the number {str(value)[:40]} is out of all bounds"
        return None
    if isinstance(value, Constant):
        size = value.array.nbytes
        most = max(_LARGEST_CONSTANT, 4 * constant_bytes)
        return f"a constant of {size:,} bytes" if size > most else None
    if isinstance(value, Scalar) and len(value.bits) != value.dtype.itemsize:
        return f"a {value.dtype.value} of {len(value.bits)} bytes"
    if isinstance(value, tuple):
        parts = value
    elif is_dataclass(value) and not isinstance(value, type):
        parts = tuple(getattr(value, field.name) for field in fields(value))
        if isinstance(value, UserAttribute):
            parts = tuple(part for part in parts if not isinstance(part, bool | float))
    else:
        return f"the {type(value).__name__} {value!r} cannot stand in an attribute"
    return next(filter(None, (flaw(part, constant_bytes) for part in parts)), None)


def type_flaw(result: TensorType) -> str | None:
    """Why no tensor can be of this type; None where nothing is wrong."""
    size = 1
    for dim in result.shape:
        if isinstance(dim, SymbolicDim):
            continue
        if not isinstance(dim, Integral):
            return f"the extent {dim} is no integer"
        if dim < 0:
            return "an extent is negative"
        size *= int(dim)
    return "it is out of all bounds" if size > _LARGEST_TENSOR else None


def is_intact(value: object) -> bool:
    """Whether a constant still has the elements that it is known by."""
    if not isinstance(value, Constant):
        return True
    array = value.array
    if array.flags.writeable:
        return False
    return array.nbytes > _HASHED_AGAIN or Constant(np.array(array)).digest == value.digest
