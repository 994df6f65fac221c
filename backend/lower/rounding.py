"""Rounding to integers of 8 bits in few instructions.

Bounds that are whole numbers hold for a number as for what it is rounded to, and a whole number
that is added to this can be taken from the bounds. What is left between them is rounded by an
addition (see `helpers/nearest.py`), and is a float again without having been an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from satura.backend.lower.body import Value
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType

_MOST = 255  # of a whole number that is added


@dataclass(frozen=True)
class Rounded:
    """What `dtype` has nearest to value `number` plus `zero_point`; 0 for NaN."""

    number: int
    zero_point: int
    dtype: DType

    @property
    def bounds(self) -> tuple[int, int]:
        """Those of the number."""
        least, most = self.dtype.bounds
        return int(least) - self.zero_point, int(most) - self.zero_point


class Roundings:
    """What is rounded among the values of a body, to which `add` and `scalar` add others."""

    def __init__(
        self, values: Sequence[Value], add: Callable[[Value], int], scalar: Callable[[Scalar], int]
    ) -> None:
        self._values, self._add, self._scalar = values, add, scalar
        self._known: dict[int, Rounded] = {}

    def cast(self, value: int, wanted: DType) -> int | None:
        """The cast of a value in few instructions; None for one that is not of an rounded."""
        if wanted is DType.F32:
            return self._steps(value)
        rounded = self._rounded(value, wanted)
        if rounded is None:
            return None
        op, operands = "nearest", (rounded.number, *self._bounds(rounded))
        if rounded.zero_point:
            zero_point = self._scalar(Scalar.of(rounded.zero_point, wanted))
            op, operands = "moved", (*operands, zero_point)
        found = self._add(Value(f"{op}_{wanted.value}", wanted, operands))
        self._known[found] = rounded
        return found

    def _rounded(self, value: int, dtype: DType) -> Rounded | None:
        """What is cast to 8 bits, if it is rounded."""
        if dtype not in (DType.I8, DType.U8) or self._values[value].dtype is not DType.F32:
            return None
        while (inner := unbounded(self._values, value, dtype)) is not None:
            value = inner
        zero_point = 0
        if self._values[value].op == "add":
            one, other = self._values[value].operands
            if self._values[one].op == "scalar":
                one, other = other, one
            if self._values[other].op != "scalar":
                return None
            added = float_of(self._values[other])
            if not added.is_integer() or abs(added) > _MOST:
                return None
            value, zero_point = one, int(added)
        # NaN becomes the least number, which is 0 of u8, and of i8 the middle.
        if self._values[value].op != "round" or (zero_point and dtype is DType.I8):
            return None
        (number,) = self._values[value].operands
        return Rounded(number, zero_point, dtype)

    def _steps(self, value: int) -> int | None:
        """An rounded as f32, less an integer of 16 bits where there is one."""
        taken = 0
        difference = self._values[value]
        if difference.op == "sub" and difference.dtype is DType.I16:
            wide, other = (self._values[operand] for operand in difference.operands)
            if wide.op != "cast" or other.op != "scalar":
                return None
            (value,) = wide.operands
            taken = int(np.uint16(other.literal).astype(np.int16))
        rounded = self._known.get(value)
        if rounded is None or abs(taken) > _MOST:
            return None
        shift = self._scalar(Scalar.of(rounded.zero_point - taken, DType.F32))
        operands = (rounded.number, *self._bounds(rounded), shift)
        return self._add(Value(f"steps_{rounded.dtype.value}", DType.F32, operands))

    def _bounds(self, rounded: Rounded) -> list[int]:
        return [self._scalar(Scalar.of(bound, DType.F32)) for bound in rounded.bounds]


def unbounded(values: Sequence[Value], index: int, dtype: DType) -> int | None:
    """What a value is a bound of that no element of `dtype` exceeds; None if it is not one."""
    value = values[index]
    if value.op not in ("max", "min") or not value.dtype.is_float:
        return None
    least, most = dtype.bounds
    for operand, other in zip(value.operands, reversed(value.operands), strict=True):
        found = values[operand]
        if found.op == "scalar" and found.dtype in (DType.F32, DType.F64):
            bound = float_of(found)
            if bound <= least if value.op == "max" else bound >= most:
                return other
    return None


def float_of(scalar: Value) -> float:
    """The number that a scalar of floats is."""
    size = scalar.dtype.itemsize
    return float(np.frombuffer(scalar.literal.to_bytes(8, "little")[:size], scalar.dtype.numpy)[0])
